"""Run the lessons as other machines would, and say how far each number and picture moves.

`make machines` runs each in every world: three processors, two threads, and eight times with the first weights of each
training moved a little (`tools/moved`), since no list of processors is complete. It writes build/machines.md and fails
where something moved by more than two thirds of what it may. MOVED_BY=1e-6 moves weights as far as another seed would.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from math import inf
from pathlib import Path

from nbformat import NotebookNode
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from publish.lessons.cells import where
from publish.lessons.lessons import Course, LessonError, LessonFiles, read_notebook, to_cell
from publish.lessons.numbers import numbers, settle, texts
from publish.lessons.pictures import apart, differences, tolerated
from publish.lessons.rules import UNCHECKED
from publish.lessons.running import run, tidy
from publish.notebooks import pngs, tags_of

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "machines.md"
SHARE = 2 / 3  # of what may move, since worlds that nobody tried move things a little farther


def worlds() -> dict[str, dict[str, str]]:
    """The variables of each world that this machine can be."""
    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__[name]]  # numpy warns of what is not there
    oldest = processor("default", "SSE41", "SSE4_2", "Nehalem", dispatched)
    newer = [name for name in dispatched if "512" in name or name == "X86_V4"]
    found = {"plain": oldest, "avx2": processor("avx2", "AVX2", "AVX2", "Haswell", newer)}
    if __cpu_features__.get("AVX512F"):
        found["avx512"] = processor("avx512", "AVX512_CORE", "AVX512", "SkylakeX", [])
    found["two-threads"] = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
    return found | {f"moved-{seed}": moved(seed) for seed in range(1, 9)}


def processor(aten: str, onednn: str, mkl: str, openblas: str, disabled: Iterable[str]) -> dict[str, str]:
    """What tells each library that computes which instructions it may use."""
    chosen = {"ATEN_CPU_CAPABILITY": aten, "ONEDNN_MAX_CPU_ISA": onednn, "MKL_ENABLE_INSTRUCTIONS": mkl}
    return chosen | {"OPENBLAS_CORETYPE": openblas, "NPY_DISABLE_CPU_FEATURES": " ".join(disabled)}


def moved(seed: int) -> dict[str, str]:
    """What has first weights moved."""
    path = [str(Path(__file__).resolve().parent / "moved"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path)), "ATTNLIB_MOVED": str(seed)}


@dataclass(frozen=True)
class Move:
    """A number or a picture that moved: where it is, what it was and became, and the share of what it may move."""

    place: tuple[str, int, str, int]  # lesson, cell, kind of output, and which one there
    stored: str
    fresh: str
    allowed: float
    share: float


def visit(lesson: LessonFiles, world: Mapping[str, str]) -> tuple[list[Move], list[str], float]:
    """Run a lesson in a world: what moved, what is red, and how many seconds it took."""
    stored, start = read_notebook(lesson.notebook), time.perf_counter()
    fresh = deepcopy(stored)
    try:
        run(fresh, lesson.notebook.parent, world)
    except LessonError as error:
        return [], [str(error)], time.perf_counter() - start
    tidy(fresh)
    moves, red = [], []
    for number, (old, new) in enumerate(zip(stored.cells, fresh.cells, strict=True), 1):
        if old.cell_type == "code" and UNCHECKED not in tags_of(old):
            moves += movements((lesson.number, number), old, new)
            red += [f"{where(number, to_cell(old))}: {problem}" for problem in beyond(old, new)]
    return moves, red, time.perf_counter() - start


def beyond(old: NotebookNode, new: NotebookNode) -> Iterator[str]:
    """What a cell shows that it does not store, beyond what may move."""
    kinds = [[kind for kind, _, _ in texts(node.outputs)] for node in (old, new)]
    if kinds[0] != kinds[1]:
        yield f"{kinds[0]} are stored, a run gives {kinds[1]}"
    if wrong := settle(old.outputs, new.outputs, old.metadata.get("within"))[1]:
        yield wrong
    if wrong := differences(old.outputs, new.outputs, tags_of(old)):
        yield wrong


def movements(place: tuple[str, int], old: NotebookNode, new: NotebookNode) -> Iterator[Move]:
    """Each number and picture of a cell that is not what it was, as far as they can be told apart."""
    within, fresh = old.metadata.get("within"), defaultdict(list)
    for kind, home, key in texts(new.outputs):
        fresh[kind].append(home[key])
    for kind, home, key in texts(old.outputs):
        pair = [numbers(text, within) for text in (home[key], *fresh[kind][:1])]
        for index, (a, b) in enumerate(zip(pair[0], pair[-1], strict=False)):
            if (far := abs(a.value - b.value)) > 0:
                allowed = a.distance or b.distance or 0
                yield Move((*place, kind, index), a.text, b.text, allowed, far / allowed if allowed else inf)
        del fresh[kind][:1]
    for index, (a, b) in enumerate(zip(pngs(old.outputs), pngs(new.outputs), strict=False)):
        allowed = tolerated(tags_of(old))
        if (far := apart(a, b)) > 0:
            yield Move((*place, "picture", index), "", f"{far:.2g}", allowed, far / allowed)


def report(found: Iterable[tuple[str, Move]]) -> str:
    """A table of all that moved, each where it moved farthest."""
    farthest: dict[tuple, tuple[str, Move]] = {}
    for world, move in found:
        if move.place not in farthest or move.share > farthest[move.place][1].share:
            farthest[move.place] = world, move
    rows = [("lesson", "cell", "what", "stored", "farthest", "world", "allowed", "share"), ["---"] * 8]
    for (*place, kind, index), (world, m) in sorted(farthest.items(), key=lambda one: -one[1][1].share):
        shown = m.stored, m.fresh, world, f"{m.allowed:g}", f"{m.share:.2f}"
        rows.append((*place, f"{kind} {index + 1}", *shown))
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def main(arguments: Sequence[str], course: Course | None = None, to: Path = REPORT) -> int:
    """Visit the lessons in the worlds asked for; 1 if anything is red or moved too far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lessons", nargs="*")
    parser.add_argument("--worlds", type=str.split, default=[], help="names, such as 'avx2 moved-1'; all without it")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--moved-by", default="", help="how far first weights move, of their size; 1e-6 is much")
    asked, known = parser.parse_args(arguments), worlds()
    if strange := set(asked.worlds) - set(known):
        parser.error(f"no world is called {', '.join(sorted(strange))}; there are {', '.join(known)}")
    lessons = [x for x in (course or Course(ROOT)).lessons() if x.number in asked.lessons or not asked.lessons]
    pairs = [(lesson, name) for lesson in lessons for name in asked.worlds or known]
    variables = [known[name] | {"ATTNLIB_MOVED_BY": asked.moved_by} for _, name in pairs]
    found, bad = [], 0
    with ProcessPoolExecutor(asked.workers) as pool:
        visits = pool.map(visit, [lesson for lesson, _ in pairs], variables)
        for (lesson, name), (moves, red, seconds) in zip(pairs, visits, strict=True):
            found += [(name, move) for move in moves]
            largest = max((move.share for move in moves), default=0)
            bad += bool(red) or largest > SHARE + 1e-9
            print(f"{lesson.name}, {name}: {seconds:.0f} s, largest share {largest:.2f}, {len(red)} red")
            print(*(f"  {line}\n" for problem in red for line in problem.splitlines()), sep="", end="", flush=True)
            to.parent.mkdir(exist_ok=True)
            to.write_text(report(found), encoding="utf-8")
    print(f"{len(pairs) - bad} of {len(pairs)} hold; what moved stands in {to}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

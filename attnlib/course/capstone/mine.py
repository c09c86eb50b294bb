"""What a reader does with the parts: use them, hold them against the library's, train with them, write them out."""

from __future__ import annotations

import copy
import linecache
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from attnlib._base.checks import check_size
from attnlib.course.capstone.assemble import PARTS, TEMPLATE, assemble, opened, part_of
from attnlib.course.grading import registry
from attnlib.course.grading.standalone import standalone
from attnlib.course.progress_file import progress
from attnlib.data.corpus import Corpus
from attnlib.data.text import Pairs

__all__ = ["Mine", "mistakes"]

_CALLS = 12  # of each part, that are compared
_SLOW = 5  # times the library's parts; from here on a word is said


def mistakes(exercise: str) -> dict[str, Callable[..., Any]]:
    """The wrong answers to an exercise that `check` knows and that can be a part, by name.

    >>> sorted(mistakes("07.2"))
    ['every other row', 'mean', 'reshaped', 'reversed', 'summed first']
    """
    found = {}
    for mistake in registry.find(exercise).misconceptions:
        with suppress(ValueError):  # it is made of the library's functions
            assemble({exercise: standalone(mistake.function)})
            found[mistake.name] = mistake.function
    return found


class Mine:
    """A Transformer of a reader's own parts; where there is none of theirs, the library's formula stands in.

    >>> mine = Mine()
    >>> mine.put("03.1", lambda Q, K: Q @ K.T / Q.shape[1] ** 0.5)
    >>> mine
    03.1 scores: yours. The other 9 parts are the library's.
    """

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}

    def use(self, *exercises: str) -> None:
        """Use the answers to these exercises that `check` called right, in whatever notebook that was.

        Says which are not there. Raises ``ValueError`` for an exercise whose answer is no part.
        """
        known = progress()[0]
        kept = known.answers
        for exercise in exercises:
            part = part_of(exercise)
            if exercise in known.solved and exercise not in kept:
                print(
                    f"{exercise} {part}: your answer was right, but what it was is not kept, so the library's stands "
                    "in. Write it as a function, def, without a decorator, that makes its arrays itself, and check it "
                    "again."
                )
                continue
            if exercise not in kept:
                print(f"{exercise} {part}: not solved yet, so the library's stands in.")
                continue
            try:
                self._put(exercise, kept[exercise])
            except ValueError as error:
                print(f"{exercise} {part}: {error}.")

    def put(self, exercise: str, answer: Callable[..., Any]) -> None:
        """Use a function that was written here, right or wrong.

        Raises ``ValueError`` for an exercise whose answer is no part, and for a function that cannot stand alone.
        """
        self._put(exercise, standalone(answer))

    def _put(self, exercise: str, source: str) -> None:
        assemble({exercise: source})  # or say why not
        self.answers[exercise] = source

    def without(self, *exercises: str) -> Mine:
        """Another one, in which the library's formulas stand in for these."""
        other = Mine()
        other.answers = {one: source for one, source in self.answers.items() if one not in exercises}
        return other

    def __repr__(self) -> str:
        yours = ", ".join(f"{one} {PARTS[one]}" for one in sorted(self.answers))
        left = len(PARTS) - len(self.answers)
        said = f"{yours}: yours. " if yours else ""
        return said + (f"The {'other ' if yours else ''}{left} parts are the library's." if left else "").strip()

    @property
    def source(self) -> str:
        """The file that they make."""
        return assemble(self.answers)

    def model(self, corpus: Corpus, *, seed: int = 0, **sizes: int) -> nn.Module:
        """The model that they make, untrained. ``sizes`` are those of its ``Transformer``.

        Raises ``ValueError`` where a part cannot be trained through, and says which.
        """
        module = opened(self.source)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(check_size("seed", seed))
            model = module.Transformer(len(corpus.source), len(corpus.target), **sizes)
        self._try(module, model, corpus)
        self._say_what_is_slow(corpus)
        return model

    def _try(self, module: ModuleType, model: nn.Module, corpus: Corpus) -> None:
        """Does it run on a batch at once, and does every part let the gradient through?"""
        batch = corpus.batch(corpus.train[:2])
        try:
            model.loss(batch.source, batch.target).backward()
        except Exception:  # whatever a part may raise when its numbers are those of a batch
            model.at_once = False
            for exercise, calls in _recorded(batch).items():
                if exercise in self.answers:
                    _through(exercise, getattr(module, PARTS[exercise]), calls[0])
            model.loss(batch.source, batch.target).backward()
        for exercise, calls in _recorded(batch).items():
            if exercise in self.answers:
                _through(exercise, getattr(module, PARTS[exercise]), calls[0])
        model.zero_grad()

    def _say_what_is_slow(self, corpus: Corpus) -> None:
        plain, every = _steps({}, corpus), _steps(self.answers, corpus)
        if every < _SLOW * plain:
            return
        alone = {one: _steps({one: source}, corpus) / plain for one, source in self.answers.items()}
        slowest = max(alone, key=alone.__getitem__)
        print(
            f"Training will take long: torch takes {every / plain:.0f} times as many steps as with the library's "
            f"parts, {alone[slowest]:.0f} times with {slowest} {PARTS[slowest]} alone. Whole arrays in place of loops "
            "are quicker, and so are np.where and sums in place of `if` and of a mask as an index."
        )

    def compare(self, corpus: Corpus) -> dict[str, float | str]:
        """How far each part is from the library's formula on what a model meets, by name: a number, or what came.

        Both get what a model of the library's formulas gives to the part, on eight sentences.
        """
        mine, library = opened(self.source), opened(TEMPLATE, "library")
        recorded = _recorded(corpus.batch(corpus.train[:8]))
        return {
            f"{one} {PARTS[one]}": _farthest(getattr(mine, PARTS[one]), getattr(library, PARTS[one]), recorded[one])
            for one in sorted(self.answers)
        }

    def write(self, path: str | Path, model: nn.Module, corpus: Corpus) -> None:
        """Write the file, and beside it the weights of a ``model`` that was trained on ``corpus``."""
        path = Path(path)
        path.write_text(self.source, "utf-8")
        sizes = {
            "d_model": model.d_model,
            "n_heads": model.encoder[0].attention.n_heads,
            "d_ff": model.encoder[0].network[0].out_features,
            "n_layers": len(model.encoder),
        }
        kept = {
            "source": list(corpus.source.tokens),
            "target": list(corpus.target.tokens),
            "sizes": sizes,
            "weights": {name: weight.float() for name, weight in model.state_dict().items()},
        }
        torch.save(kept, path.with_suffix(".pt"))


class _Counted(TorchDispatchMode):
    """Counts what torch does, which says on any machine how slow it is."""

    n = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.n += 1
        return function(*args, **(kwargs or {}))


def _steps(answers: dict[str, str], corpus: Corpus) -> int:
    """How many steps torch takes with these answers as parts, for 32 sentences."""
    batch = corpus.batch(corpus.train[:2])
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        model = opened(assemble(answers), "counted").Transformer(len(corpus.source), len(corpus.target))
        try:
            with _Counted() as counted:
                model.loss(batch.source, batch.target)
            return counted.n
        except Exception:  # one by one
            model.at_once = False
            with _Counted() as counted:
                model.loss(batch.source, batch.target)
            return 16 * counted.n


def _recorded(batch: Pairs) -> dict[str, list[tuple[Any, ...]]]:
    """What each part is given while a model of the library's formulas reads a batch and writes, by exercise."""
    module = opened(TEMPLATE, "library")
    calls: dict[str, list[tuple[Any, ...]]] = {one: [] for one in PARTS}
    for exercise, name in PARTS.items():
        setattr(module, name, _recording(getattr(module, name), calls[exercise]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = module.Transformer(int(batch.source.max()) + 1, int(batch.target.max()) + 1).to(torch.float64)
        model.at_once = False
        for norm in (module for module in model.modules() if isinstance(module, nn.LayerNorm)):
            nn.init.normal_(norm.weight, 1.0, 0.1)  # as after training: each is another one
            nn.init.normal_(norm.bias, 0.0, 0.1)
        model.loss(batch.source, batch.target)
        for row in batch.source[:2]:
            model.write(row[row != module.PAD], n_max=4)
    return calls


def _recording(part: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        if len(calls) < _CALLS:
            calls.append(tuple(_detached(x) for x in given))
        return part(*given)

    return call


def _detached(x: Any) -> Any:
    return x.detach().clone() if isinstance(x, Tensor) else x


def _through(exercise: str, part: Callable[..., Any], given: tuple[Any, ...]) -> None:
    """Raise unless the gradient comes through a part, from its numbers or from the functions that it was given."""
    given = tuple(x.clone().requires_grad_() if isinstance(x, Tensor) and x.is_floating_point() else x for x in given)
    meanwhile = f'. Until then, mine.without("{exercise}") has the library\'s in its place'
    try:
        out = part(*given)
    except Exception as error:
        raise ValueError(
            f"{exercise} cannot be run on tensors{_line(exercise, error)}: {_said(error)}. Most of "
            "NumPy can: write this line another way. With torch, torch.as_tensor(x) takes arrays and tensors alike, "
            f"in place of torch.from_numpy(x), and what is returned is a tensor, without .numpy(){meanwhile}"
        ) from error
    if PARTS[exercise] in ("position_codes", "causal", "beam_step"):  # nothing that is trained goes through these
        return
    if not (isinstance(out, Tensor) and out.requires_grad):
        raise ValueError(
            f"{exercise} loses the gradient: somewhere its numbers become plain ones, by float(), math.exp, "
            f"torch.tensor or .item(). np.exp and torch.as_tensor keep it{meanwhile}"
        )
    try:
        out.sum().backward()
    except RuntimeError as error:
        raise ValueError(
            f"{exercise} changes an array that the gradient still needs, by +=, *= or a[...] = b. Make a new one: "
            f"a = a + b in place of a += b, and a = np.where(...) in place of a[...] = b{meanwhile}"
        ) from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _line(exercise: str, error: Exception) -> str:
    """The line of an answer in which an error came up."""
    file = "<my_transformer>"
    lines = linecache.getlines(file)
    begin = f"def from_{exercise.replace('.', '_')}():\n"
    if begin not in lines:
        return ""
    first = lines.index(begin)
    last = next((n for n in range(first + 1, len(lines)) if lines[n].strip() and lines[n][0] != " "), len(lines))
    frames = traceback.extract_tb(error.__traceback__)
    found = [frame.line for frame in frames if frame.filename == file and first < frame.lineno <= last]
    return f", at `{found[-1]}`" if found else ""


def _farthest(mine: Callable[..., Any], library: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> float | str:
    """The largest difference over these calls; or, in words, the first thing that is no number."""
    farthest = 0.0
    for given in calls:
        want = library(*given)
        try:
            got = torch.as_tensor(mine(*copy.copy(given)))
        except Exception as error:
            return _said(error)
        if got.shape != want.shape:
            return f"shape {tuple(got.shape)}, and the library's has {tuple(want.shape)}"
        difference = (got.double() - want.double()).abs().max().item()
        if not difference < float("inf"):
            return "NaN or infinite"
        farthest = max(farthest, difference)
    return farthest

"""Several processes that train one model do what one does, and can be killed like one."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import safetensors.torch
import torch
from test_training import Tied, bytes_of
from torch import nn
from torch.nn.functional import cross_entropy

from attnlib.training import checkpoint, fit
from attnlib.training.batches import moved, share

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


class Batch(NamedTuple):
    tokens: torch.Tensor
    target: torch.Tensor


class Small(nn.Module):
    """With what makes sharing awkward: tied weights, a parameter without a gradient, and one that is seldom used."""

    def __init__(self, p=0.0, seed=3):
        super().__init__()
        torch.manual_seed(seed)
        self.embed, self.mid, self.drop = nn.Embedding(8, 6), nn.Linear(6, 6), nn.Dropout(p)
        self.seldom, self.never, self.out = nn.Linear(6, 6), nn.Linear(2, 2), nn.Linear(6, 8, bias=False)
        self.out.weight = self.embed.weight

    def logits(self, tokens):  # not `forward`: a loss may call what it likes
        x = self.embed(tokens)
        rows = tokens[:, 0] == 0
        if rows.any():  # in some shares, in others not
            x = torch.where(rows[:, None, None], x + self.seldom(x), x)
        return self.out(self.drop(torch.tanh(self.mid(x)))).flatten(0, 1)


def ragged(step, rows=None):
    """Rows of different lengths, padded with -100; not as many as there are processes at every step."""
    rng = torch.Generator().manual_seed(step)
    rows = (7, 2, 1, 6)[step % 4] if rows is None else rows
    tokens = torch.randint(0, 8, (rows, 5), generator=rng)
    lengths = torch.randint(1, 6, (rows, 1), generator=rng)
    return Batch(tokens, torch.where(torch.arange(5) < lengths, (tokens + 1) % 8, -100))


def mean(model, batch):
    return cross_entropy(model.logits(batch.tokens), ((batch.tokens + 1) % 8).flatten())


def pair(model, batch):
    total = cross_entropy(model.logits(batch.tokens), batch.target.flatten(), reduction="sum")
    return total, (batch.target >= 0).sum()


def tied_pair(model, batch):
    total = cross_entropy(model(batch.tokens).flatten(0, 1), batch.target.flatten(), reduction="sum")
    return total, (batch.target >= 0).sum()


def lasting(folder, name="a", steps=23, end=None, model=None, **options):
    """A run with dropout, running means and checkpoints; process ``end[0]`` kills itself before step ``end[1]``."""

    def batches(step):
        if end == (int(os.environ.get("RANK", 0)), step):
            os.kill(os.getpid(), signal.SIGKILL)
        return ragged(step, rows=5 + step % 3)

    model = model or Tied()
    history = fit(model, batches, tied_pair, steps=steps, checkpoint=Path(folder) / name, save_every=5,
                  progress=False, **options)  # fmt: skip
    return [{name: data.hex() for name, data in bytes_of(model).items()}, history.loss]


def forked(size, what, patience=None):
    """``what(rank)`` of each of ``size`` processes; all are killed when one is, or when ``patience`` ends."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    children = {}
    for rank in range(size):
        ours, theirs = os.pipe()
        pid = os.fork()
        if not pid:
            told = dict(RANK=rank, WORLD_SIZE=size, LOCAL_WORLD_SIZE=size, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            os.environ.update({key: str(value) for key, value in told.items()})
            try:
                answer = what(rank)
            except BaseException:  # to be read in the answer
                answer = traceback.format_exc()
            os.write(theirs, json.dumps(answer).encode())
            os._exit(0)
        os.close(theirs)
        children[pid] = ours
    return _answers(children, patience)


def _answers(children, patience):
    answers, waiting, began = dict.fromkeys(children, b""), set(children), time.monotonic()
    while waiting:
        if time.monotonic() - began > (60 if patience is None else patience):
            for pid in waiting:
                os.kill(pid, signal.SIGKILL)
        for pid in sorted(waiting):
            os.set_blocking(children[pid], False)
            while part := _read(children[pid]):
                answers[pid] += part
            if os.waitpid(pid, os.WNOHANG)[0]:
                while part := _read(children[pid]):
                    answers[pid] += part
                waiting.remove(pid)
                patience = patience if answers[pid] else 0  # torchrun, too, kills those that a dead one leaves
        time.sleep(0.01)
    return [json.loads(answer) if answer else None for answer in answers.values()]


def _read(pipe):
    try:
        return os.read(pipe, 1 << 16)
    except BlockingIOError:
        return b""


def alike(rank):
    """Two runs, one after the other, without anything random."""
    found = []
    for loss in (mean, pair):
        model = Small(seed=3 + rank)  # the weights of process 0 are those that count
        metrics = {"rank": lambda model: rank + torch.rand(()).item()}
        history = fit(model, ragged, loss, steps=12, lr=0.01, metrics=metrics, every=5, progress=False)
        found.append([history.loss, history.metrics["rank"], torch.cat([p.flatten() for p in model.parameters()])])
        found[-1][-1] = found[-1][-1].tolist()
    model.logits(ragged(0).tokens).sum().backward()  # and nobody waits for anybody
    return found


def failing(rank):
    """What ``fit`` raises where only process 1 has a reason to."""

    def said(loss=pair, batches=lambda step: ragged(step, rows=7), model=None, **options):
        try:
            fit(model or Small(), batches, loss, steps=9, progress=False, **options)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def once(change):
        calls = iter(range(99))
        return lambda m, batch: change(*pair(m, batch)) if next(calls) == 4 and rank else pair(m, batch)

    def shout(*_):
        raise LookupError("mine")

    model, want = Small(), Small()
    fit(want, lambda step: ragged(step, rows=7), pair, steps=4, progress=False)
    answers = [said(once(lambda total, count: (total / 0, count)), model=model)]
    answers.append("as it was" if bytes_of(model) == bytes_of(want) else "changed")
    answers.append(said(once(shout)))
    answers.append(said(lambda m, batch: (pair(m, batch)[0], 0)))
    answers.append(said(batches=lambda step: {"x": torch.zeros(4, 2), "note": "hello"}))
    answers.append(said(batches=lambda step: (torch.zeros(4, 2), [torch.zeros(3)])))
    answers.append(said(metrics={"broken": shout}, every=3))
    return answers


def first_draws(rank):
    drawn = []
    fit(Small(), ragged, lambda m, b: drawn.append(torch.rand(()).item()) or pair(m, b), steps=3, progress=False)
    return drawn


def interrupted(rank, number, folder):
    """Process 1 is told twice to stop, at step 11; the handlers are afterwards what they were."""

    def batches(step):
        for _ in range(2 if rank and step == 11 else 0):
            os.kill(os.getpid(), number)
        return ragged(step, rows=5)

    history = fit(Tied(), batches, tied_pair, steps=23, checkpoint=Path(folder) / number.name, progress=False)
    usual = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    return [history.interrupted, history.steps, usual == (signal.default_int_handler, signal.SIG_DFL)]


def a_group_of_the_callers(rank):
    torch.distributed.init_process_group("gloo")
    fit(Small(), ragged, pair, steps=2, progress=False)
    return [torch.distributed.is_initialized(), torch.distributed.get_world_size()]


def written(rank, folder):
    """How often this process wrote, and what it finds when `fit` is done, on a slow disk."""
    write, calls = checkpoint.write, []

    def slow(*what):
        calls.append(time.sleep(0.2))
        write(*what)

    checkpoint.write = slow
    fit(Small(), ragged, pair, steps=5, save_every=2, checkpoint=Path(folder) / "slow", progress=False)
    there = safetensors.torch.load_file(Path(folder) / "slow" / "checkpoint.safetensors")
    return [len(calls), len(there["history/loss"])]


def everything(folder):
    """All that can be found out without starting Python anew: torch is imported once."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fit(Small(), ragged, pair, steps=1, progress=False)  # what torch imports late
    found = {"alike": {str(size): forked(size, alike) for size in (1, 2, 3)}}
    found["draws"] = {str(size): forked(size, first_draws) for size in (1, 2)}
    found["failing"], found["callers"] = forked(2, failing), forked(2, a_group_of_the_callers)
    found["written"] = forked(2, lambda rank: written(rank, folder))
    for number in (signal.SIGINT, signal.SIGTERM):
        found[number.name] = forked(2, lambda rank, number=number: interrupted(rank, number, folder))
    return found | killed(folder) | gone_on(folder)


def killed(folder):
    began = time.monotonic()
    found = {
        "whole": {
            str(size): forked(size, lambda rank, size=size: lasting(folder, f"whole {size}")) for size in (1, 2, 3)
        }
    }
    takes, chance = (time.monotonic() - began) / 3, random.Random(0)
    ends = [(1, 3), (0, 8), (1, 13)]  # before the first checkpoint, and after one and two
    found["killed"] = [forked(2, lambda rank, end=end: lasting(folder, "killed", end=end)) for end in ends]
    patience = [takes * (i + chance.random()) / 10 for i in range(10)]
    found["whenever"] = [forked(2, lambda rank: lasting(folder, "b"), some) for some in patience]
    found["resumed"] = [forked(2, lambda rank, name=name: lasting(folder, name)) for name in ("killed", "b")]
    found["files"] = sorted(os.listdir(Path(folder) / "killed"))
    return found


def gone_on(folder):
    """Runs of 7 steps that are continued by as many processes or others."""
    found = {}
    for before, after in [(3, 3), (2, 1), (1, 3)]:
        name = f"{before} to {after}"
        forked(before, lambda rank, name=name: lasting(folder, name, steps=7))
        found[name] = forked(after, lambda rank, name=name: lasting(folder, name))
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    code = "import sys, json, test_processes as t; print(json.dumps(t.everything(sys.argv[1])))"
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path_factory.mktemp("forked"))],
        capture_output=True,
        text=True,
        cwd=HERE,
        env=surroundings(),
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "find_unused_parameters" not in told.stderr  # no advice that helps nobody
    return json.loads(told.stdout.splitlines()[-1])


def surroundings():
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "TQDM_DISABLE": "1"}


@pytest.mark.parametrize("which", [0, 1], ids=["mean", "sum and count"])
@pytest.mark.parametrize("size", ["2", "3"])
def test_losses_and_weights_are_those_of_one_process(found, size, which):
    want = found["alike"]["1"][0][which]
    for got in (answer[which] for answer in found["alike"][size]):
        np.testing.assert_allclose(got[0], want[0], rtol=0, atol=1e-5)  # rows that divide, and fewer than processes
        np.testing.assert_allclose(got[2], want[2], rtol=0, atol=1e-4)
        assert got[1] == want[1]  # one number for all, of a metric that would be another in each
        assert got == found["alike"][size][0][which]


def test_each_process_has_random_numbers_of_its_own(found):
    one, two = found["draws"]["1"][0], found["draws"]["2"]
    assert two[0] == one
    assert not set(two[0]) & set(two[1])


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (0, ["FloatingPointError: loss inf is not a finite number at step 4"] * 2),
        (1, ["as it was"] * 2),
        (2, ["RuntimeError: another of the processes failed at the same place", "LookupError: mine"]),
        (3, ["ValueError: loss must have at least one term in every batch; it counted none at step 0"] * 2),
        (4, ["TypeError: batches must give tensors, or tuples, .*batch['note'] is of type str"] * 2),
        (5, ["ValueError: batches must give tensors with one row for each example, .*got shapes (4, 2), (3,)"] * 2),
        (6, ["LookupError: mine", "RuntimeError: another of the processes failed at the same place"]),
    ],
)
def test_what_fails_in_one_process_fails_in_all(found, at, words):
    for answer, expected in zip(found["failing"], words, strict=True):
        assert all(part in answer[at] for part in expected.split(".*")), answer[at]


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interruption_of_one_process_is_one_of_all(found, number):
    assert found[number] == [[True, 12, True]] * 2


def test_one_process_writes_and_the_others_wait(found):
    assert found["written"] == [[3, 5], [0, 5]]


def test_a_group_of_the_callers_is_left_alone(found):
    assert found["callers"] == [[True, 2]] * 2


def test_runs_that_are_killed_end_where_they_would_have(found):
    whole = found["whole"]["2"]
    assert whole[0] == whole[1]
    assert whole[0] != found["whole"]["1"][0]  # dropout
    assert all(None in answers for answers in found["killed"])
    assert [None, None] in found["whenever"]
    assert found["resumed"] == [whole, whole]
    assert found["files"] == ["checkpoint.safetensors"]


def test_a_run_goes_on_with_as_many_processes_or_others(found):
    assert found["3 to 3"] == found["whole"]["3"]
    for before, after in [(2, 1), (1, 3)]:
        answers, losses = found[f"{before} to {after}"], found["whole"][str(before)][0][1]
        assert answers == [answers[0]] * after
        assert answers[0][1][:7] == losses[:7]
        assert answers[0][1][7:] != losses[7:]


WORKER = """
import json, os, signal, sys, time
from pathlib import Path
import torch
from test_processes import bytes_of, fit, ragged, tied_pair, Tied
torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)
folder, rank = Path(sys.argv[1]), os.environ["RANK"]
(folder / f"pid {rank}").write_text(str(os.getpid()))

def batches(step):
    if len(sys.argv) > 2 and step >= int(sys.argv[2]):
        (folder / f"there {rank}").touch()
        time.sleep(0.3)
    return ragged(step, rows=5 + step % 3)

model = Tied()
history = fit(model, batches, tied_pair, steps=23, checkpoint=folder / "run", save_every=5)
weights = {name: data.hex() for name, data in bytes_of(model).items()}
(folder / f"end {rank}").write_text(json.dumps([[weights, history.loss], history.interrupted, history.steps]))
"""


# The address is given, as otherwise torchrun asks for the machine's name, which need not be known to anyone.
PATIENCE = 300  # seconds, most of which three processes need to import torch beside other work
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1", "--nproc-per-node=2"]


def torchrun(folder, *arguments):
    script = folder / "worker.py"
    script.write_text(WORKER)
    command = [sys.executable, *TORCHRUN, script, folder, *arguments]
    return subprocess.Popen(command, env=surroundings(), stderr=subprocess.PIPE, text=True)


def wait_for(*files):
    end = time.monotonic() + PATIENCE
    while not all(file.exists() for file in files):
        assert time.monotonic() < end, files
        time.sleep(0.05)
    for file in files:
        file.unlink()


def test_torchrun_can_be_interrupted_and_killed(found, tmp_path):
    ranks, there = range(2), [tmp_path / f"there {rank}" for rank in range(2)]
    first = torchrun(tmp_path, "7")
    wait_for(*there)
    first.send_signal(signal.SIGINT)
    assert first.wait(PATIENCE) != 0
    answers = [json.loads((tmp_path / f"end {rank}").read_text()) for rank in ranks]
    assert answers[0] == answers[1]
    assert answers[0][1] is True
    assert 7 < answers[0][2] < 20

    for file in there:
        file.unlink(missing_ok=True)
    second = torchrun(tmp_path, str(answers[0][2] + 2))
    wait_for(*there)
    second.kill()
    for rank in ranks:
        with suppress(ProcessLookupError):  # gone already, as torchrun is
            os.kill(int((tmp_path / f"pid {rank}").read_text()), signal.SIGKILL)
    second.wait(PATIENCE)

    third = torchrun(tmp_path)
    said = third.communicate(timeout=PATIENCE)[1]
    assert third.returncode == 0, said
    assert [json.loads((tmp_path / f"end {rank}").read_text())[0] for rank in ranks] == found["whole"]["2"]


@dataclass(frozen=True)
class Record:
    x: torch.Tensor
    y: torch.Tensor | None = None


def test_a_share_has_the_form_of_the_batch():
    x = torch.arange(5)
    batch = (Batch(x, x), [x], OrderedDict(a=x), Record(x))
    got, rows = share(batch, rank=1, size=2)
    assert rows == 2
    assert [type(part) for part in got] == [Batch, list, OrderedDict, Record]
    for part in (*got[0], got[1][0], got[2]["a"], got[3].x):
        assert part.tolist() == [1, 3]
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert got[3].y is None
    assert share(x[:2], rank=2, size=3)[1] == 0
    assert sum(share(x, rank, 3)[1] for rank in range(3)) == 5


def test_what_is_no_tensor_is_moved_nowhere():
    batch = {"x": torch.zeros(2), "name": "a"}
    assert moved(batch, torch.device("cpu")) is batch
    away = moved(batch, torch.device("meta"))
    assert (away["x"].device.type, away["name"], batch["x"].device.type) == ("meta", "a", "cpu")


def test_a_sum_and_a_count_are_a_mean_in_one_process_too():
    def per_term(model, batch):
        total, count = pair(model, batch)
        return total / count

    models = Small(), Small()
    losses = [fit(m, ragged, f, steps=6, progress=False).loss for m, f in zip(models, (pair, per_term), strict=True)]
    np.testing.assert_allclose(*losses, rtol=1e-6)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (lambda m, b: (pair(m, b)[0], "five"), TypeError, "a sum and a number of terms; got str"),
        (lambda m, b: (pair(m, b)[0], -1), ValueError, "number of terms, zero or more; got -1.0"),
        (lambda m, b: (pair(m, b)[0], torch.ones(2)), TypeError, "a sum and a number of terms; got Tensor"),
        (lambda m, b: pair(m, b) * 2, TypeError, "loss must return a tensor; got tuple"),
    ],
)
def test_bad_pairs_are_named(loss, error, words):
    with pytest.raises(error, match=words):
        fit(Small(), ragged, loss, steps=1, progress=False)

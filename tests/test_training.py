"""Training: the same every time, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import StringIO

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from attnlib import tasks
from attnlib.training import History, fit, load, noam, save, warmup_cosine, weights


class Tied(nn.Module):
    """Small, and with all that is awkward to keep: dropout, running means, one tensor under two names."""

    def __init__(self, width=6, p=0.3):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(8, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(p)
        self.out = nn.Linear(width, 8, bias=False)
        self.out.weight = self.embed.weight
        self.register_buffer("table", torch.ones(width), persistent=False)

    def forward(self, tokens):
        return self.out(self.drop(self.norm(self.embed(tokens).mT).mT * self.table))


def batches(step):
    return tasks.lookback(4, 6, offset=0, seed=(0, step))


def loss(model, batch):
    return cross_entropy(model(batch.tokens).flatten(0, 1), batch.target.flatten())


def noisy(model):
    return torch.rand(()).item() + float(model.training) + float(torch.is_grad_enabled())


def momentum(parameters, lr):
    return torch.optim.SGD(parameters, lr, momentum=0.9)


def run(model=None, steps=23, **options):
    model = model or Tied()
    options = {"metrics": {"noise": noisy}, "every": 10, "save_every": 5, "progress": False} | options
    history = fit(model, options.pop("batches", batches), options.pop("loss", loss), steps=steps, **options)
    return bytes_of(model), history


def bytes_of(model):
    return {name: tensor.detach().numpy().tobytes() for name, tensor in model.state_dict().items()}


# Many runs, each in a process of its own that is killed: by itself at a chosen place, or by its parent whenever.
CRASHES = """
import json, os, random, signal, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
from attnlib.training import weights
from test_training import Tied, batches, momentum, run

folder, optimizer, seed = Path(sys.argv[1]), {"adamw": None, "sgd": momentum}[sys.argv[2]], random.Random(0)
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

def child(what, patience=None):
    pid = os.fork()
    if pid == 0:
        what()
        os._exit(0)
    if patience is not None:
        time.sleep(patience)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

def half_a_write(n):
    real, count = weights.safetensors.torch.save, [0]
    def shorter(*args):
        count[0] += 1
        data = real(*args)
        if count[0] == n:
            weights.os.fsync = die
            return data[: len(data) // 2]
        return data
    weights.safetensors.torch.save = shorter
    go()

def at(place, n):
    real, count = getattr(weights.os, place), [0]
    def counted(*args):
        count[0] += 1
        if count[0] == n:
            die()
        return real(*args)
    setattr(weights.os, place, counted)
    go()

def go(name="killed", stop=None):
    return run(steps=23, optimizer=optimizer, checkpoint=folder / name,
               batches=lambda step: die() if step == stop else batches(step))

want, history = run(steps=23, optimizer=optimizer)
began = time.perf_counter()
run(steps=23, optimizer=optimizer, checkpoint=folder / "timed")
takes = time.perf_counter() - began
ends = [child(lambda: go(stop=3)), child(lambda: go(stop=8))]           # before the first save, and between two
ends += [child(lambda: half_a_write(2)), child(lambda: at("replace", 1))]  # in a write, and when it is done
leftovers = len(list((folder / "killed").glob("*.part")))
ends += [child(lambda: at("fsync", 2)), child(lambda: go(stop=20))]     # when the new file has its place; later
whenever = [child(lambda: go("whenever"), patience=(i + seed.random()) / 13 * takes) for i in range(12)]
result = {"ends": ends, "leftovers": leftovers, "chances": whenever}
for name in ("killed", "whenever"):
    got, other = go(name)
    result[name] = [got == want, other == history, sorted(os.listdir(folder / name))]
print(json.dumps(result))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_run_that_is_killed_again_and_again_ends_where_it_would_have(tmp_path, optimizer):
    here = os.path.dirname(__file__)
    told = subprocess.run(
        [sys.executable, "-c", CRASHES, str(tmp_path), optimizer],
        capture_output=True,
        text=True,
        cwd=here,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout.splitlines()[-1])
    assert result["ends"] == [signal.SIGKILL] * 6  # every one of them was really killed
    assert result["leftovers"] == 1
    assert signal.SIGKILL in result["chances"]
    for name in ("killed", "whenever"):
        assert result[name] == [True, True, ["checkpoint.safetensors"]]


def test_the_same_seed_gives_the_same_weights_and_leaves_the_callers_stream():
    torch.manual_seed(5)
    model = Tied()
    state = torch.get_rng_state()
    first = run(model)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert run() == first
    assert run(seed=1)[0] != first[0]
    assert run(metrics={})[0] == first[0]  # to look at a metric that draws has no effect
    assert not model.training
    assert all(0 <= value < 1 for value in first[1].metrics["noise"][1])  # evaluation mode, no gradients
    assert first[1].metrics["noise"][0] == [10, 20, 23]
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("optimizer", [None, momentum])
def test_more_steps_go_on_as_if_they_had_been_asked_for_at_once(tmp_path, optimizer):
    schedule = noam(6, warmup=10)
    options = dict(optimizer=optimizer, lr=0.5, schedule=schedule)
    want = run(**options)
    for steps in (0, 4, 10, 13, 23, 23):
        got = run(steps=steps, checkpoint=tmp_path, **options)
    assert got == want
    with pytest.raises(ValueError, match=r"steps must be at least 23, which .*checkpoint.safetensors has; got 5"):
        run(steps=5, checkpoint=tmp_path, **options)


def with_signal(at, times=1):
    def interrupted(model, batch):
        value = loss(model, batch)  # random numbers are drawn, running means moved
        if torch.equal(batch.tokens, batches(at).tokens):
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        return value

    return interrupted


@pytest.mark.parametrize(("times", "steps"), [(1, 12), (2, 11)])
def test_an_interruption_keeps_what_was_trained(tmp_path, times, steps):
    before = signal.getsignal(signal.SIGINT)
    got, history = run(loss=with_signal(11, times), checkpoint=tmp_path)
    assert (history.interrupted, history.steps) == (True, steps)
    assert repr(history).startswith(f"Interrupted after {steps} of 23 steps, loss ")
    assert history.metrics["noise"][0] == [10]  # no last look when somebody waits
    assert got == run(steps=steps)[0]  # also where the second one broke off a step
    assert signal.getsignal(signal.SIGINT) is before
    assert run(checkpoint=tmp_path) == run()


def test_a_request_to_end_is_an_interruption(tmp_path):
    def ends(step):
        if step == 11:
            os.kill(os.getpid(), signal.SIGTERM)
        return batches(step)

    history = fit(Tied(), ends, loss, steps=23, checkpoint=tmp_path, progress=False)
    assert history.interrupted
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    again = Tied()
    assert fit(again, batches, loss, steps=23, checkpoint=tmp_path, progress=False).steps == 23
    whole = Tied()
    fit(whole, batches, loss, steps=23, progress=False)
    assert bytes_of(again) == bytes_of(whole)


def test_a_flipped_bit_on_disk_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    save(Tied(), path)
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.safetensors must hold what was written; its checksum is .*damaged"):
        load(Tied(), path)


def test_a_changed_word_beside_the_numbers_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    weights.write(path, {"a": torch.ones(2)}, {"lr": "0.01"})
    assert weights.read(path)[1] == {"lr": "0.01"}
    path.write_bytes(path.read_bytes().replace(b"0.01", b"0.11"))
    with pytest.raises(ValueError, match=r"a\.safetensors must hold what was written; its checksum is .*damaged"):
        weights.read(path)


def test_weights_that_are_not_numbers_come_back(tmp_path):
    broken = Tied()
    broken.embed.weight.data[0, 0] = torch.nan
    save(broken, tmp_path / "a.safetensors")
    assert load(Tied(), tmp_path / "a.safetensors").embed.weight[0, 0].isnan()


def test_threads_that_write_to_one_place_leave_one_whole_file(tmp_path):
    path, model = tmp_path / "a.safetensors", nn.Linear(300, 300)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda _: save(model, path), range(30)))
    assert bytes_of(load(nn.Linear(300, 300), path)) == bytes_of(model)
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_while_a_metric_is_looked_at_loses_nothing(tmp_path):
    def impatient(model):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    history = run(metrics={"noise": impatient}, checkpoint=tmp_path)[1]
    assert (history.interrupted, history.steps, history.metrics) == (True, 10, {"noise": ([], [])})
    assert run(checkpoint=tmp_path) == run()


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_is_named_and_leaves_no_trace(where):
    def broken(model, batch):
        value = loss(model, batch)
        if torch.equal(batch.tokens, batches(7).tokens):
            value = value * torch.nan if where == "loss" else value + (0 * model.embed.weight).sqrt().sum()
        return value

    model = Tied()
    with pytest.raises(FloatingPointError, match=rf"{where}.* is not a finite number at step 7, of batches\(7\)"):
        run(model, loss=broken)
    assert bytes_of(model) == run(steps=7)[0]  # running means included
    assert not model.training


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (dict(model=Tied(width=5)), r"parameters\[embed.weight\] was \['float32', \[8, 6\]\] and is .*\[8, 5\]"),
        (dict(model=Tied(p=0.1)), r"modules\[3\] was \(drop\): Dropout\(p=0.3, .* and is \(drop\): Dropout\(p=0.1"),
        (dict(seed=1), "seed was 0 and is 1"),
        (dict(lr=0.1), r"options\[0.lr\] was 0.003 and is 0.1"),
        (dict(optimizer=momentum), "optimizer was AdamW and is SGD"),
        (dict(clip=None), "clip was 1.0 and is nothing"),
        (dict(metrics={}), r"metrics was \['noise'\] and is \[\]"),
        (dict(schedule=warmup_cosine(2, 30)), r"schedule\[0\] was 1.0 and is 0.5"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, changed, words):
    run(steps=6, checkpoint=tmp_path)
    model = changed.pop("model", None) or Tied()
    momentum(model.parameters(), 0.1)  # where first weights are moved (tools/moved), they are moved here
    before = bytes_of(model)
    with pytest.raises(ValueError, match=rf"checkpoint must be a folder of this run; .*{words}"):
        run(model, checkpoint=tmp_path, **changed)
    assert bytes_of(model) == before


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    (tmp_path / "checkpoint.safetensors").write_bytes(b"x" * 40)
    with pytest.raises(ValueError, match="must be a whole safetensors file"):
        run(checkpoint=tmp_path)
    save(Tied(), tmp_path / "checkpoint.safetensors")
    with pytest.raises(ValueError, match="must be a checkpoint that fit wrote"):
        run(checkpoint=tmp_path)


def test_patience_ends_when_nothing_gets_better(tmp_path):
    values = iter([0.1, 0.5, 0.4, 0.5, 0.9])
    seen = []
    history = run(steps=100, metrics={"a": lambda model: seen.append(next(values)) or seen[-1]}, every=2,
                  patience=2, watch="highest a")[1]  # fmt: skip
    assert history.metrics["a"] == ([2, 4, 6, 8], [0.1, 0.5, 0.4, 0.5])
    assert repr(history).startswith("Stopped early after 8 of 100 steps, loss ")
    constant = dict(loss=lambda model, batch: 0 * model.out.weight.sum() + 1, every=5, patience=1, metrics={})
    assert run(steps=100, **constant)[1].steps == 10
    assert run(steps=7, checkpoint=tmp_path, **constant)[1].steps == 7
    assert run(steps=100, checkpoint=tmp_path, **constant) == run(steps=100, **constant)
    assert run(steps=200, checkpoint=tmp_path, **constant)[1].steps == 10


def test_weights_go_to_disk_and_back(tmp_path):
    model = Tied().to(torch.bfloat16)
    save(model, tmp_path / "a.safetensors")
    other = Tied().to(torch.bfloat16)
    nn.init.zeros_(other.embed.weight)
    assert load(other, tmp_path / "a.safetensors") is other
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor), name
    assert other.out.weight is other.embed.weight
    assert "out.weight" not in safetensors.torch.load_file(tmp_path / "a.safetensors")
    assert os.listdir(tmp_path) == ["a.safetensors"]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        ({"weight": torch.zeros(1, 2)}, "bias is missing"),
        ({"weight": torch.zeros(1, 2), "bias": torch.zeros(1), "b": torch.zeros(1)}, "b is not in the model"),
        ({"weight": torch.zeros(2, 1), "bias": torch.zeros(1)}, r"weight is float32 \(2, 1\) there and .*\(1, 2\)"),
        ({"weight": torch.zeros(1, 2).half(), "bias": torch.zeros(1)}, "weight is float16 .* and float32"),
    ],
)
def test_weights_that_do_not_fit_are_named_and_change_nothing(tmp_path, there, words):
    safetensors.torch.save_file(there, tmp_path / "a")
    model = nn.Linear(2, 1)
    before = bytes_of(model)
    with pytest.raises(ValueError, match=rf"a must hold the weights of this model; .*{words}"):
        load(model, tmp_path / "a")
    assert bytes_of(model) == before


def test_schedules():
    cosine = warmup_cosine(3, 10)
    assert [cosine(s) for s in (0, 2, 3, 10, 99)] == [1 / 3, 1, 1, 0, 0]
    assert np.all(np.diff([cosine(s) for s in range(3, 11)]) < 0)
    top = noam(16, warmup=50)
    assert max(range(300), key=top) == 49
    np.testing.assert_allclose(top(199), 16**-0.5 * 200**-0.5)
    for schedule in (cosine, top):
        with pytest.raises(ValueError, match="step must not be negative; got -1"):
            schedule(-1)


def test_the_schedule_is_a_factor_on_the_learning_rate():
    assert run(lr=0.1, schedule=lambda step: 0.5, optimizer=momentum)[0] == run(lr=0.05, optimizer=momentum)[0]
    stopped, weight = run(schedule=lambda step: float(step < 7))[0], "embed.weight"
    assert stopped[weight] == run(steps=7)[0][weight]


def test_clipping_shortens_the_gradient():
    norms = []

    def measured(parameters, lr):
        optimizer = torch.optim.SGD(parameters, lr)
        optimizer.register_step_pre_hook(
            lambda *_: norms.append(torch.nn.utils.get_total_norm([p.grad for p in parameters]).item())
        )
        return optimizer

    run(optimizer=measured, clip=None)
    assert max(norms) > 0.5
    run(optimizer=measured, clip=0.01)
    np.testing.assert_allclose(norms[23:], 0.01, rtol=1e-3)


def test_history_says_and_draws_what_happened():
    history = History([4.0, 2.0, 0.0004], {"held-out": ([2, 3], [0.5, 1.5])}, planned=3, seconds=9.0)
    assert repr(history) == "3 steps, loss 4.00 to 4e-04; held-out 1.50."
    assert history == History([4.0, 2.0, 0.0004], {"held-out": ([2, 3], [0.5, 1.5])}, planned=3)
    assert history.curves() == {"loss": ([1, 2, 3], [4.0, 2.0, 0.0004]), "held-out": ([2, 3], [0.5, 1.5])}
    assert "Lines: held-out" in history.picture(title="Less").alt
    assert repr(History()) == "0 steps."
    assert len(History([1.0] * 1001).curves()["loss"][0]) <= 100


def test_a_bar_is_shown_and_taken_away(capfd, monkeypatch):
    assert os.environ["TQDM_DISABLE"] == "1"  # as in a lesson that is being built
    run(progress=True)
    assert capfd.readouterr() == ("", "")
    screen = StringIO()
    monkeypatch.setenv("TQDM_DISABLE", "0")
    monkeypatch.setattr("tqdm.auto.tqdm", partial(tqdm, disable=False, mininterval=0, file=screen))
    run(progress=True)
    shown = screen.getvalue()
    assert "training" in shown
    assert "loss" in shown
    assert not shown.split("\r")[-2].strip()  # wiped out


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (dict(batches=[1, 2]), TypeError, "batches must be a function from the step to its batch.*got list"),
        (dict(loss=None), TypeError, "loss must be a function; got NoneType"),
        (dict(loss=lambda m, b: m(b.tokens)), ValueError, r"loss must return one number.*got \(4, 6, 8\)"),
        (dict(loss=lambda m, b: 1.0), TypeError, "loss must return a tensor; got float"),
        (dict(loss=lambda m, b: torch.ones(())), ValueError, "loss must depend on a parameter"),
        (dict(model=nn.Dropout()), ValueError, "model must have at least one parameter"),
        (dict(model=print), TypeError, "model must be a torch.nn.Module; got builtin"),
        (dict(steps=-1), ValueError, "steps must not be negative; got -1"),
        (dict(every=0), ValueError, "every must be at least 1; got 0"),
        (dict(lr=0), ValueError, "lr must be positive and finite; got 0"),
        (dict(clip=-1.0), ValueError, "clip must be positive and finite; got -1"),
        (dict(metrics={"loss": noisy}), ValueError, "metrics must not be named 'loss'"),
        (dict(metrics={"a": 1}), TypeError, r"metrics\['a'\] must be a function of the model; got int"),
        (
            dict(patience=2, watch="noise"),
            ValueError,
            "watch must be one of 'lowest loss', 'lowest noise', 'highest n",
        ),
        (
            dict(schedule=lambda s: -1.0),
            ValueError,
            "schedule must return a factor of zero or more; got -1.0 at step 0",
        ),
    ],
)
def test_bad_arguments_are_named(options, error, words):
    with pytest.raises(error, match=words):
        run(**options)


def test_a_frozen_parameter_stays_and_warmup_must_end(tmp_path):
    model = Tied()
    model.norm.weight.requires_grad_(False)
    run(model, checkpoint=tmp_path)
    assert torch.equal(model.norm.weight, torch.ones(6))
    with pytest.raises(ValueError, match=r"trained\[norm.weight\] was nothing and is 1 of group 0"):
        run(checkpoint=tmp_path)
    with pytest.raises(ValueError, match="warmup must be below steps = 5; got 5"):
        warmup_cosine(5, 5)

"""The translator that is trained from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import safetensors.torch
import torch
from test_processes import TORCHRUN, surroundings
from test_training import bytes_of

from attnlib import translation
from attnlib.translation import train

SMALL = ["french", "--steps", "6", "--batch", "7", "--d-model", "8", "--n-heads", "2", "--layers", "1"]


@pytest.fixture
def small(monkeypatch):
    for name, corpus in translation.CORPORA.items():
        monkeypatch.setitem(translation.CORPORA, name, partial(corpus, 400, 5))


def losses(folder):
    return safetensors.torch.load_file(folder / "checkpoint.safetensors")["history/loss"]


@pytest.mark.parametrize("name", translation.CORPORA)
def test_what_is_written_can_be_used(small, tmp_path, capsys, name):
    assert train.main([name, *SMALL[1:], "--checkpoint", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("6 steps, loss ")
    assert said[1].endswith("% of 5 held-out pairs translated without a mistake.")
    assert f"are in {tmp_path}" in said[2]
    model, (source, target) = translation.open_translator(tmp_path)
    corpus = translation.CORPORA[name]()
    assert (source, target) == (corpus.source, corpus.target)
    assert (model.config.d_model, model.config.n_heads, model.config.n_encoder_layers, model.training) == (
        8,
        2,
        1,
        False,
    )
    written = safetensors.torch.load_file(tmp_path / "checkpoint.safetensors")
    assert torch.equal(model.lm_head.weight, written["model/target_embedding.token_embedding.weight"])


def test_options_reach_the_model_and_its_training(small, tmp_path):
    changes = {"first": [], "seed": ["--seed", "1"], "rate": ["--lr", "0.1"], "dropout": ["--dropout", "0.5"]}
    found = {name: tmp_path / name for name in changes}
    for name, options in changes.items():
        assert train.main([*SMALL, *options, "--checkpoint", str(found[name])]) == 0
    assert len({tuple(losses(folder).tolist()) for folder in found.values()}) == len(changes)


def test_the_same_command_goes_on(small, tmp_path, capsys, monkeypatch):
    command = [*SMALL, "--dropout", "0.3", "--save-every", "2", "--checkpoint"]
    assert train.main([*command, str(tmp_path / "whole")]) == 0
    made, calls = translation.loss, iter(range(100))

    def interrupting(*options):
        loss = made(*options)
        return lambda model, batch: (next(calls) == 2 and os.kill(os.getpid(), signal.SIGINT)) or loss(model, batch)

    monkeypatch.setattr(translation, "loss", interrupting)
    assert train.main([*command, str(tmp_path / "parts")]) == 130
    said = capsys.readouterr().err
    assert said.startswith("Interrupted after 3 of 6 steps, loss ")
    assert said.endswith("To go on, give the same command again.\n")
    assert train.main([*command, str(tmp_path / "parts")]) == 0
    whole, parts = (translation.open_translator(tmp_path / name)[0] for name in ("whole", "parts"))
    assert bytes_of(whole) == bytes_of(parts)


def test_a_folder_without_settings_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"d_model": 8}')
    with pytest.raises(ValueError, match=r"config.json must hold the settings of a Transformer; .*n_source"):
        translation.open_translator(tmp_path)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (["latin"], "argument corpus: invalid choice: 'latin'"),
        (["french"], "required: --checkpoint"),
        ([*SMALL, "--checkpoint", "x", "--steps", "0"], "argument --steps: must be at least 1; got 0"),
        ([*SMALL, "--checkpoint", "x", "--seed", "-1"], "argument --seed: must not be negative; got -1"),
        ([*SMALL, "--checkpoint", "x", "--batch", "1.5"], "argument --batch: must be an integer; got 1.5"),
        ([*SMALL, "--checkpoint", "x", "--lr", "0"], "argument --lr: must be positive and finite; got 0"),
        ([*SMALL, "--checkpoint", "x", "--lr", "fast"], "argument --lr: must be a number; got fast"),
        ([*SMALL, "--checkpoint", "x", "--n-heads", "3"], "n_heads must divide d_model = 8; got 3"),
        ([*SMALL, "--checkpoint", "x", "--dropout", "1"], "dropout must be at least 0 and below 1; got 1.0"),
        ([*SMALL, "--checkpoint", "x", "--device", "tpu"], "argument --device: invalid choice: 'tpu'"),
        (
            [*SMALL, "--checkpoint", "/dev/null/x"],
            "checkpoint must be a folder that can be written; got '/dev/null/x'",
        ),
    ],
)
def test_bad_arguments_are_named_in_one_line(small, tmp_path, monkeypatch, capsys, changed, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        train.main(changed)
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("attnlib.translation.train: ")
    assert words in said
    assert said.count("\n") == 1


def test_each_process_needs_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="a GPU of its own, 2 in all; there are 1"):
        train._device("cuda")
    assert train._device("cpu") == torch.device("cpu")


def test_help_does_not_wait_for_torch():
    code = "import sys; from attnlib.translation import train; train._parser(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_two_processes_train_it_as_one_does(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    train.main([*SMALL, "--checkpoint", str(one)])
    told = subprocess.run(
        [sys.executable, *TORCHRUN, "-m", "attnlib.translation.train", *SMALL, "--checkpoint", two],
        capture_output=True,
        text=True,
        env=surroundings(),
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == 3  # of one process
    assert "Warning" not in told.stderr
    np.testing.assert_allclose(losses(two), losses(one), rtol=0, atol=1e-5)

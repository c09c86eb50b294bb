"""The pretraining of a small GPT: its text, its tokens, its windows, a killed run, and what it is worth."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from attnlib.models import GPT, GPTConfig, folder_of, pretrained, tokenizer_of
from attnlib.pretraining import (
    HELD_OUT,
    PACKAGES,
    byte_pairs,
    documents,
    encode,
    held_out_sample,
    log_probabilities,
    next_token_loss,
    shipped_scores,
    six_gram_log_probabilities,
    windows,
)
from attnlib.pretraining.documentation import package_documents
from attnlib.pretraining.report import ngram_bits, texts_of
from attnlib.pretraining.train import main
from attnlib.training.checkpoint import FILE


def test_the_text_is_docstrings_and_comments_once(tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").write_text('"""A docstring of forty letters, at the least, it needs."""\n')
    (package / "a.py").write_text(
        "# A comment that goes over two lines, and both of\n# them are joined into one text here.\n"
        "x = 1  # beside code, which is skipped, however long it may be, or wise\n"
        'def f():\n    """A docstring of forty letters, at the least, it needs.\n\n'
        '    >>> "an example, which is skipped, however long it may be"\n\n'
        '    Another paragraph, which stood nowhere before this one.\n    """\n'
    )
    (package / "tests" / "b.py").write_text('"""A docstring among the tests, which are not read at all."""\n')
    (package / "c.py").write_text("this is no Python\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert documents(["some_package"]) == [
        "A docstring of forty letters, at the least, it needs.",
        "Another paragraph, which stood nowhere before this one.",
        "A comment that goes over two lines, and both of\nthem are joined into one text here.",
    ]
    assert len(list(package_documents("some_package"))) == 3
    with pytest.raises(ModuleNotFoundError, match="there is no nobody_made_this"):
        documents(["nobody_made_this"])


def test_what_is_held_out_has_no_paragraph_that_was_trained_on():
    seen: set[bytes] = set()
    assert documents(["patsy"], seen=seen)
    assert documents(["patsy"], seen=seen) == []
    assert not set(PACKAGES) & set(HELD_OUT)


def test_any_text_comes_back_from_its_tokens():
    tokenizer = byte_pairs(["the cat sat on the mat"] * 9, 300)
    texts = ["the mat", "注意力 — naïve\n\ttext\x00", ""]
    assert [tokenizer.decode(tokenizer.encode(text).ids) for text in texts] == texts
    assert texts_of(tokenizer, encode(tokenizer, texts[:2])) == texts[:2]
    with pytest.raises(ValueError, match="n_tokens must be at least 257"):
        byte_pairs(["a"], 256)


def test_an_epoch_reads_every_window_once_and_depends_on_the_step_alone():
    batches = windows(np.arange(1000), 8, 4, seed=3)
    again = windows(np.arange(1000), 8, 4, seed=3)
    assert torch.equal(batches(45), again(45))
    firsts = torch.cat([batches(step)[:, 0] for step in range((1000 - 8) // 8 // 4)])
    assert len(set(firsts.tolist())) == len(firsts)
    assert not torch.equal(batches(0), windows(np.arange(1000), 8, 4, seed=4)(0))
    with pytest.raises(ValueError, match="tokens must fill a batch of 4 windows of 8; got 30"):
        windows(np.arange(30), 8, 4, seed=0)


def test_a_long_text_is_read_through_windows_each_token_once():
    torch.manual_seed(0)
    model = GPT(GPTConfig(n_tokens=30, n_max=8, d_model=16, n_heads=2, n_layers=1)).eval()
    tokens = np.random.default_rng(0).integers(0, 30, 53)
    found = log_probabilities(model, tokens, batch_size=3)
    assert found.shape == (52,)
    with torch.no_grad():
        for i in (0, 3, 7):  # all that stands before
            log_p = model(torch.tensor(tokens[None, : i + 1])).logits[0, -1].log_softmax(-1)
            assert found[i] == pytest.approx(log_p[tokens[i + 1]].item(), abs=1e-5)
        for i in (20, 51):  # at least the four before it
            by_context = [
                model(torch.tensor(tokens[None, i + 1 - n : i + 1]))
                .logits[0, -1]
                .log_softmax(-1)[tokens[i + 1]]
                .item()
                for n in range(4, 9)
            ]
            assert min(abs(found[i] - x) for x in by_context) < 1e-5
    batch = torch.tensor(tokens[None, :8])
    assert next_token_loss(model, batch).item() == pytest.approx(-found[:7].mean(), abs=1e-5)


def _command(folder, steps):
    arguments = ["--checkpoint", str(folder), "--steps", str(steps), "--save-every", "2", "--precision", "float32"]
    sizes = ["--d-model", "8", "--n-heads", "2", "--layers", "1", "--batch", "2", "--device", "cpu"]
    return [sys.executable, "-m", "attnlib.pretraining.train", *arguments, *sizes]


def _prepared(folder):
    """A folder whose text is read already, so that a test need not read 24 packages."""
    from importlib.metadata import packages_distributions, version

    from attnlib.pretraining import train

    folder.mkdir()
    tokenizer = pretrained("technical-english").tokenizer
    tokenizer.save(str(folder / train.TOKENIZER))
    tokens = encode(tokenizer, documents(["patsy"]))
    np.save(folder / train.TEXT, tokens.astype(np.uint16))
    np.save(folder / train.HELD_OUT_TEXT, tokens[:600].astype(np.uint16))
    names = packages_distributions()
    versions = {name: version(names[name][0]) for name in [*PACKAGES, *HELD_OUT]}
    made = {"versions": versions, "characters": {"trained on": 60_000, "held out": 2_000}}
    (folder / train.SOURCES).write_text(json.dumps(made))
    return folder


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_run_goes_on_to_the_same_weights(tmp_path):
    quiet = os.environ | {"TQDM_DISABLE": "1"}
    whole, killed = _prepared(tmp_path / "whole"), _prepared(tmp_path / "killed")
    subprocess.run(_command(whole, 40), env=quiet, check=True, capture_output=True)
    process = subprocess.Popen(_command(killed, 40), env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (killed / FILE).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = subprocess.run(_command(killed, 40), env=quiet, check=True, capture_output=True, text=True).stdout
    assert said.startswith("40 steps, loss ")
    assert (killed / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    model, tokenizer = GPT.from_pretrained(killed), tokenizer_of(killed)
    assert model.config.d_model == 8
    assert tokenizer.get_vocab_size() == 4096


def test_a_folder_of_other_packages_is_named(tmp_path):
    folder = _prepared(tmp_path / "other")
    made = json.loads((folder / "sources.json").read_text())
    made["versions"]["numpy"] = "1.0"
    (folder / "sources.json").write_text(json.dumps(made))
    done = subprocess.run(_command(folder, 1), check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "other versions of numpy were read for it" in done.stderr


def test_what_is_shipped_is_small_and_has_its_card():
    folder = folder_of("technical-english")
    assert sum(path.stat().st_size for path in Path(folder).iterdir()) < 12e6
    words = (folder / "README.md").read_text()
    scores = shipped_scores()["bits per character"]
    assert f"| this model | {scores['GPT']:.3f} |" in words
    with pytest.raises(ValueError, match=r"name must be one of .*'technical-english'.*; got 'gpt-5'"):
        pretrained("gpt-5")


def test_the_shipped_gpt_beats_counting_on_a_package_that_it_never_saw():
    """On the first texts here; on all of it, and with n-grams of other lengths, in its scores."""
    model, tokenizer = pretrained("technical-english")
    seen: set[bytes] = set()
    trained_on = documents(PACKAGES, seen=seen)
    held_out = documents(HELD_OUT, seen=seen)[:100]
    assert held_out == held_out_sample()[:100]  # so the lesson's sample has no paragraph of the others
    tokens, new = encode(tokenizer, trained_on), encode(tokenizer, held_out)
    n_characters = sum(map(len, held_out)) + len(held_out)
    counted = ngram_bits(tokens, new, 6, 4096, n_characters)
    network = -log_probabilities(model, new).sum() / np.log(2) / n_characters
    assert network < 0.95 * counted
    stored = six_gram_log_probabilities()[: len(new)]
    assert -stored.sum() / np.log(2) / n_characters == pytest.approx(counted, rel=0.01)
    scores = shipped_scores()["bits per character"]
    assert scores["GPT"] < 0.95 * min(scores[f"{k}-gram of tokens"] for k in range(1, 7))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--steps", "0", "must be at least 1; got 0"),
        ("--lr", "fast", "must be a number; got fast"),
        ("--seed", "-1", "must not be negative; got -1"),
        ("--checkpoint", "", "must name a folder; got nothing"),
    ],
)
def test_the_command_names_an_option_that_is_wrong_before_it_reads_anything(option, value, said, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--checkpoint", str(tmp_path / "run"), f"{option}={value}"])
    assert ended.value.code == 2
    assert f"argument {option}: {said}" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_help_needs_no_torch_and_all_else_says_so():
    code = "import sys; sys.modules['torch'] = None; from attnlib.pretraining import train; train.main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Train a small GPT" in said
    code = "import sys; sys.modules['torch'] = None; from attnlib.pretraining import windows"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert "ModuleNotFoundError: this part of attnlib needs torch" in said

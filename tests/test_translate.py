"""The translator that is used from the command line."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys

import pytest

from attnlib.data.numbers import number
from attnlib.training import fit
from attnlib.translation import Corpus, __main__, loss, open_translator, recipe, save_translator, translate, translator
from attnlib.translation.reading import words_of

TEXTS = {"ich bin hier": "i am here", "du bist da": "you are there", "wer ist da": "qu' est là"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator")
    corpus = Corpus.of_pairs([(source.split(), target.split()) for source, target in TEXTS.items()])
    model = translator(corpus, d_model=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1)
    fit(model, corpus.batches(3), loss(), **recipe(steps=120, lr=1e-2), progress=False)
    save_translator(model, corpus, folder)
    model, words = open_translator(folder)
    assert translate(model, words, [text.split() for text in TEXTS]) == [text.split() for text in TEXTS.values()]
    return str(folder)


def piped(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_texts_are_translated_in_order(folder, capsys):
    assert __main__.main([folder, "du bist da", "ichbinhier", "Wer ist da"]) == 0
    assert capsys.readouterr().out == "you are there\ni am here\nqu'est là\n"
    assert __main__.main([folder, "du bist da", "--longest", "1"]) == 0
    said = capsys.readouterr()
    assert said.out == "you\n"
    assert "the translation of text 1 was cut" in said.err


def test_every_line_of_a_pipe_has_its_line(folder, capsys, monkeypatch):
    monkeypatch.setattr(__main__, "TOGETHER", 2)
    piped(monkeypatch, "du bist da\n\nich bin hier\n\n\n  du bist da")
    assert __main__.main([folder]) == 0
    assert capsys.readouterr().out == "you are there\n\ni am here\n\n\nyou are there\n"
    piped(monkeypatch, "")
    assert __main__.main([folder]) == 0
    assert capsys.readouterr().out == ""


def test_as_a_program_from_a_pipe_that_closes(folder):
    command = f"yes 'du bist da' | head -300 | {sys.executable} -m attnlib.translation {folder} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("you are there\n", "")


def ended(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        __main__.main(list(arguments))
    said = capsys.readouterr()
    assert end.value.code == 2
    assert said.err.startswith("attnlib.translation: ")
    assert said.err.count("\n") == 1
    return said.err


def test_wrong_folders_are_named_with_what_would_help(folder, tmp_path, capsys):
    missing = tmp_path / "missing"
    assert f"FOLDER must hold a translator; {missing} is not there" in (said := ended(capsys, str(missing), "eins"))
    assert f"python -m attnlib.translation.train numbers --checkpoint {missing}" in said
    assert f"{tmp_path} has no config.json" in ended(capsys, str(tmp_path), "eins")
    (tmp_path / "config.json").write_text('{"d_model": 8}')
    assert "config.json must hold the settings of a Transformer" in ended(capsys, str(tmp_path), "eins")
    assert "config.json is a file" in ended(capsys, str(tmp_path / "config.json"), "eins")
    for name in ("source.json", "target.json", "config.json"):
        shutil.copy(f"{folder}/{name}", tmp_path)
    assert f"{tmp_path} has no model.safetensors" in ended(capsys, str(tmp_path), "du bist da")
    (tmp_path / "model.safetensors").write_text("no weights")
    assert "model.safetensors" in ended(capsys, str(tmp_path), "du bist da")
    assert "must name a folder; got nothing" in ended(capsys, "", "eins")


def test_unknown_words_are_named_with_their_place(folder, capsys, monkeypatch):
    assert "text 2 must have words that the translator was trained on; got 'bald'" in ended(
        capsys, folder, "du bist da", "du bist bald"
    )
    assert "got 'dada'" in ended(capsys, folder, "dada")  # no word of two letters is looked for inside others
    assert "--longest: must be at least 1; got 0" in ended(capsys, folder, "--longest", "0")


def test_a_line_of_a_pipe_that_it_does_not_know_is_named_and_keeps_none_back(folder, capsys, monkeypatch):
    monkeypatch.setattr(__main__, "TOGETHER", 2)
    piped(monkeypatch, "du bist da\ndu bleibst\n\ndu bist da\n")
    assert __main__.main([folder]) == 1
    printed = capsys.readouterr()
    said = "line 2 must have words that the translator was trained on; got 'bleibst'"
    assert said in printed.err
    first, *rest = printed.out.splitlines()
    assert first
    assert rest == ["", "", first]


def test_help_shows_an_example_of_each_without_torch():
    code = "import sys; from attnlib.translation import __main__ as m; m._parser().print_help(); "
    code += "print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.endswith("False\n")
    for example in (
        "my_numbers einundzwanzig",
        "my_numbers < numbers.txt",
        "echo siebzig |",
        "--checkpoint my_numbers",
    ):
        assert example in said


@pytest.mark.parametrize("n", [21, 101, 1100, 999_999, 20_021])
def test_numbers_may_be_written_together(n):
    source = number(n).source
    known = {word for m in range(2000) for word in number(m).source} | set(source)
    assert words_of("".join(source), known) == list(source)
    assert words_of("", known) == []

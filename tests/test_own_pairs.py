"""A translator for one's own sentences: strings in, strings out, in pieces of words that are learned."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import safetensors
import torch
from test_training import bytes_of
from tqdm import tqdm

from attnlib import translation
from attnlib.data.subwords import BytePairs
from attnlib.data.tsv import read_pairs
from attnlib.decoding import beam
from attnlib.translation import (
    Corpus,
    open_translator,
    save_translator,
    train,
    train_translator,
    translate,
    translator,
)
from attnlib.translation import __main__ as command
from attnlib.translation.training import CHRF, pace, steps_done, string_scores

VERBS = {"open": "öffne", "close": "schließe", "copy": "kopiere", "show": "zeige"}
THINGS = {"the file": "die Datei", "the tab": "den Reiter", "the cell": "die Zelle", "all files": "alle Dateien"}
ENDS = {"": "", " now": " jetzt", " (%s)": " (%s)", "…": "…"}
PAIRS = [
    (f"{verb} {thing}{end}", f"{VERBS[verb]} {THINGS[thing]}{ENDS[end]}")
    for verb, thing, end in product(VERBS, THINGS, ENDS)
]
SMALL = {"d_model": 32, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.0}
FAST = {"lr": 1e-2, "batch_size": 16, "progress": False}


@pytest.fixture(scope="module")
def corpus():
    return Corpus.of_pairs(PAIRS, held_out=8, n_tokens=340)


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    model = translator(corpus, **SMALL)
    history = train_translator(model, corpus, folder, steps=240, every=80, **FAST)
    return model, history, folder


@pytest.mark.parametrize(
    "text", ["", " ", "a", "  two  spaces ", "Größe 5 µm", "打开文件", "\t\n<s></s><pad>", "👩‍💻é"]
)
def test_every_text_comes_back(corpus, text):
    assert corpus.source.decode(corpus.source.encode(text)) == text


def test_pieces_are_learned_alike_in_every_process(corpus):
    texts = [side for pair in PAIRS[:-8] for side in pair]
    code = f"from attnlib.data.subwords import BytePairs; print(BytePairs({texts!r}, 340).tokenizer.to_str())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == corpus.source.tokenizer.to_str()


def test_strings_come_out_where_strings_go_in_and_words_where_words_do(trained, corpus):
    model, history, _ = trained
    assert history.steps == 240
    texts = [example.source for example in corpus.train]
    written = translate(model, corpus, texts)
    right = [example.target for example in corpus.train]
    assert sum(map(str.__eq__, written, right)) > 0.9 * len(right)
    assert translate(model, corpus, [text.split() for text in texts[:3]]) == [text.split() for text in written[:3]]
    assert translate(model, corpus, ["", texts[0], " "]) == ["", written[0], ""]
    assert all(isinstance(text, str) for text in translate(model, corpus, ["Ananas 菠萝 🍍"]))


def test_pieces_are_written_with_four_beams_unless_a_width_is_given(corpus):
    model = translator(corpus, seed=6, **SMALL)  # untrained: the likeliest token is not on the likeliest way
    text, longest = PAIRS[5][0], 6
    source = torch.tensor([corpus.source.encode(text)])
    by_width = {
        width: corpus.target.decode(beam(model, source, longest, width=width, length_penalty=1.5).tokens[0, 0])
        for width in (1, 4)
    }
    assert by_width[1] != by_width[4]
    with warnings.catch_warnings(action="ignore"):  # of having been cut
        assert translate(model, corpus, [text], longest) == [by_width[4]]
        assert translate(model, corpus, [text], longest, width=1) == [by_width[1]]


def test_what_is_saved_translates_alike(trained, corpus, tmp_path, capsys):
    model, _, folder = trained
    texts = [example.source for example in corpus.held_out]
    again, pieces = open_translator(folder)
    assert pieces.source is pieces.target
    assert pieces.source == corpus.source
    assert translate(again, pieces, texts) == translate(model, corpus, texts)
    save_translator(again, pieces, tmp_path)
    assert bytes_of(open_translator(tmp_path)[0]) == bytes_of(model)
    assert command.main([str(folder), *texts[:2]]) == 0
    assert capsys.readouterr().out.splitlines() == translate(model, corpus, texts[:2])


def test_a_folder_holds_pieces_or_words_but_not_both(trained, tmp_path):
    save_translator(*open_translator(trained[2]), tmp_path)
    words = translation.numbers(30, 5)
    with pytest.raises(ValueError, match="corpus must hold as many words as the model's settings say"):
        save_translator(translator(words), open_translator(tmp_path)[1], tmp_path)
    save_translator(translator(words), words, tmp_path)
    assert open_translator(tmp_path)[1].source == words.source
    BytePairs(["ab"]).save(tmp_path / "pieces.json")
    with pytest.raises(ValueError, match=f"{tmp_path} must hold as many words as the model's settings say"):
        open_translator(tmp_path)
    (tmp_path / "pieces.json").write_text("{}")
    with pytest.raises(ValueError, match=r"pieces.json must be byte pairs, as the tokenizers library writes them"):
        open_translator(tmp_path)


def test_what_is_cut_is_named(trained, corpus):
    model = trained[0]
    with pytest.warns(UserWarning, match=r"the translation of texts\[1\] was cut: it had no end after n_max tokens"):
        assert len(translate(model, corpus, ["", PAIRS[0][0]], n_max=1)) == 2


def test_the_best_is_kept_when_it_gets_worse(corpus, tmp_path, monkeypatch):
    scores = iter([10.0, 30.0, 20.0, 25.0, 40.0])
    kept = []

    def scored(written, right):
        kept.append(bytes_of(model))
        return {"chrF": next(scores)}

    monkeypatch.setattr("attnlib.translation.training.string_scores", scored)
    model = translator(corpus, **SMALL)
    history = train_translator(model, corpus, tmp_path, steps=50, every=5, patience=2, **FAST)
    assert history.metrics[CHRF] == ([5, 10, 15, 20], [10.0, 30.0, 20.0, 25.0])
    assert bytes_of(open_translator(tmp_path)[0]) == bytes_of(model) == kept[1] != kept[3]


def run(folder):
    torch.set_num_threads(1)
    corpus = Corpus.of_pairs(PAIRS, held_out=8, n_tokens=340)
    model = translator(corpus, **SMALL | {"dropout": 0.1})
    train_translator(model, corpus, folder, steps=60, every=20, save_every=10, **FAST)


def test_a_killed_run_goes_on_as_if_nothing_had_been(tmp_path):
    threads = torch.get_num_threads()
    code = "import sys, test_own_pairs; test_own_pairs.run(sys.argv[1])"
    surroundings = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    killed = subprocess.Popen([sys.executable, "-c", code, tmp_path / "parts"], env=surroundings)
    until = time.monotonic() + 100
    while not (tmp_path / "parts" / "model.safetensors").exists() and time.monotonic() < until:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert 0 < steps_done(tmp_path / "parts") < 60
    run(tmp_path / "parts")
    run(tmp_path / "whole")
    torch.set_num_threads(threads)

    def tensors(name, file):
        with safetensors.safe_open(tmp_path / name / file, "pt") as opened:
            return {key: opened.get_tensor(key) for key in opened.keys()}, opened.metadata()  # noqa: SIM118

    for file in ("model.safetensors", "checkpoint.safetensors"):
        (whole, said), (parts, said_too) = (tensors(name, file) for name in ("whole", "parts"))
        assert whole.keys() == parts.keys()
        assert all(torch.equal(whole[key], parts[key]) for key in whole), file
        if CHRF in said:
            assert said == said_too


def test_without_held_out_pairs_the_last_weights_are_kept(tmp_path):
    corpus = Corpus.of_pairs(PAIRS)
    model = translator(corpus, **SMALL)
    assert train_translator(model, corpus, tmp_path, steps=3, **FAST).metrics == {}
    assert bytes_of(open_translator(tmp_path)[0]) == bytes_of(model)


def test_a_folder_of_other_pairs_is_refused(trained, tmp_path):
    other = Corpus.of_pairs(PAIRS[:40], held_out=8, n_tokens=300)
    with pytest.raises(ValueError, match="folder must hold a run on the same pairs, or none"):
        train_translator(translator(other, **SMALL), other, trained[2], steps=3, **FAST)
    words = translation.numbers(30, 5)
    with pytest.raises(TypeError, match="corpus must be of strings"):
        train_translator(translator(words), words, tmp_path, steps=3)


def test_measuring_the_pace_leaves_the_model_alone(corpus):
    model = translator(corpus, **SMALL)
    before, drawn = bytes_of(model), torch.get_rng_state()
    took = pace(model, corpus, steps=1000, batch_size=16)
    assert took.words > 0
    assert took.seconds > 0
    assert bytes_of(model) == before
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("a", "b"), ("a", " ")], r"pairs must have no empty side; the target is empty in \('a', ' '\) at place 1"),
        (
            [(["a"], []), ("a", "b")],
            r"pairs must have no empty side; the target is empty in \(\['a'\], \[\]\) at place 0",
        ),
        ([("a", "b"), (["a"], ["b"])], "pairs must be all strings or all lists of words; .* at place 1"),
        ([("a", ["b"])], "pairs must hold two strings each; .* at place 0"),
        ([("a", None)], "pairs must hold two strings each; .* at place 0"),
        ([(["a"], [1])], "pairs must hold two strings each; .* at place 0"),
        ([("a", "b"), 3], "pairs must hold two strings each; got 3 at place 1"),
    ],
)
def test_pairs_that_are_none_are_named(pairs, said):
    with pytest.raises(ValueError, match=said):
        Corpus.of_pairs(pairs)


def test_bad_arguments_are_named(trained, corpus):
    model = trained[0]
    with pytest.raises(ValueError, match="pairs must be more than held_out = 64"):
        Corpus.of_pairs(PAIRS, held_out=64)
    with pytest.raises(ValueError, match="n_tokens must be at least 260"):
        Corpus.of_pairs(PAIRS, n_tokens=200)
    with pytest.raises(ValueError, match="texts must hold at least one character"):
        BytePairs([])
    with pytest.raises(TypeError, match="texts must hold strings; got int at place 1"):
        BytePairs(["a", 1])
    with pytest.raises(TypeError, match="text must be a string; got list"):
        corpus.source.encode(["a"])
    with pytest.raises(ValueError, match=r"numbers\[0\] must be from 0 to 339; got 340"):
        corpus.source.decode([340])
    with pytest.raises(ValueError, match="train must have words on both sides"):
        Corpus.of([], [])
    with pytest.raises(TypeError, match="texts must be a list of texts; got a string"):
        translate(model, corpus, "open the file")
    with pytest.raises(ValueError, match="texts must hold at least one; got none"):
        translate(model, corpus, [])
    with pytest.raises(TypeError, match="texts must be strings or lists of words; got NoneType at place 0"):
        translate(model, corpus, [None])
    with pytest.raises(TypeError, match="pairs must be a list of pairs; got NoneType"):
        Corpus.of_pairs(None)
    assert len(Corpus.of_pairs([("a", "b")] * 3, n_tokens=10**9).source) < 300
    with pytest.raises(ValueError, match="width must be at least 1; got 0"):
        translate(model, corpus, ["open the file"], width=0)
    with pytest.raises(TypeError, match="texts must be all strings or all lists of words; got 'b' at place 1"):
        translate(model, corpus, [["a"], "b"])


def test_words_take_strings_too_and_refuse_what_they_do_not_know():
    corpus = translation.numbers(500, 5)
    model = translator(corpus)
    with pytest.warns(UserWarning, match="was cut"):
        together = translate(model, corpus, ["Einundzwanzig", "drei tausend"], n_max=32)
    assert together == [
        " ".join(t) for t in translate(model, corpus, [["ein", "und", "zwanzig"], ["drei", "tausend"]])
    ]
    with pytest.raises(
        ValueError, match=r"texts\[1\] must have words that the translator was trained on; got 'Ananas'"
    ):
        translate(model, corpus, ["eins", "Ananas"])


def test_chinese_is_scored_by_characters():
    assert string_scores(["打开所有文件"], ["打开所有的文件"])["BLEU"] > 20
    assert string_scores(["Open it, now."], ["Open it, now."]) == {"BLEU": 100.0, "chrF": 100.0}


def written(path, lines):
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


OWN = ["--steps", "12", "--d-model", "16", "--layers", "1", "--batch", "16", "--save-every", "4", "--checkpoint"]


def test_it_is_trained_from_a_file(tmp_path, capsys):
    file = written(tmp_path / "texts.tsv", ["", *map("\t".join, PAIRS), ""])
    folder = str(tmp_path / "run")
    assert train.main(["--pairs", file, *OWN, folder]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("Corpus of 44 examples and 20 held out")
    assert "12 steps take " in said.err
    assert " words a second." in said.err
    first, second, third = said.out.splitlines()
    assert first.startswith("12 steps, loss ")
    assert "The best weights on 20 held-out pairs, by which they were chosen: BLEU " in second
    assert "chrF" in second
    assert folder in third
    assert all(isinstance(text, str) for text in open_translator(folder)[1].source.split("open the file"))
    assert train.main(["--pairs", file, *OWN, folder]) == 0
    assert "\n0 steps take " in capsys.readouterr().err


def test_the_bar_says_words_a_second(corpus, tmp_path, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setenv("TQDM_DISABLE", "0")
    monkeypatch.setattr("tqdm.auto.tqdm", partial(tqdm, disable=False, mininterval=0, file=screen, ncols=160))
    train_translator(translator(corpus, **SMALL), corpus, tmp_path, steps=3)
    assert " words/s" in screen.getvalue()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a\tb", "a b"], r"pairs must have two columns on each line, .*; \S+ has 1 on line 2"),
        (["a\tb", "", "a\tb\tc"], r"has 3 on line 3"),
        (["a\t"], r"has an empty one on line 1"),
    ],
)
def test_a_line_without_two_columns_is_named(tmp_path, lines, said):
    with pytest.raises(ValueError, match=said):
        read_pairs(written(tmp_path / "texts.tsv", lines))


def test_bad_files_are_named_in_one_line(tmp_path, capsys):
    (tmp_path / "latin.tsv").write_bytes("é\té\n".encode("latin-1"))
    files = {
        str(tmp_path / "none.tsv"): "pairs must be a file of UTF-8 with two columns; ",
        str(tmp_path / "latin.tsv"): "pairs must be a file of UTF-8 with two columns; ",
        written(tmp_path / "few.tsv", ["a\tb"] * 50): "argument --pairs: must hold 40 different pairs, or more",
    }
    for file, said in files.items():
        with pytest.raises(SystemExit) as ended:
            train.main(["--pairs", file, *OWN, str(tmp_path / "run")])
        printed = capsys.readouterr().err
        assert ended.value.code == 2
        assert said in printed
        assert file in printed
        assert printed.count("\n") == 1
    for arguments in ([], ["numbers", "--pairs", "x.tsv"]):
        with pytest.raises(SystemExit):
            train.main([*arguments, "--checkpoint", "x"])
        assert "one of numbers, french or --pairs FILE must be given" in capsys.readouterr().err

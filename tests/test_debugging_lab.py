"""The debugging lab: all fourteen run and train, the page's experiments tell them apart, and a mend is one."""

from types import SimpleNamespace

import pytest
import torch

from attnlib import attention, masks, probes
from attnlib.course import progress_file
from attnlib.course.lab import EXPERIMENTS, NUMBERS, bugs, decisions, diagnose, diagnosis, patient
from attnlib.course.lab.causes import CAUSES, named
from attnlib.course.lab.chart import PATIENTS
from attnlib.data.text import END
from attnlib.decoding import beam
from attnlib.nn import Transformer, shift_right
from attnlib.training import smoothed_cross_entropy

STEPS = 50
ILL = [n for n, entry in PATIENTS.items() if entry.cause != "nothing"]
WELL = [n for n in PATIENTS if n not in ILL]


def alarms(one):
    return {name for name, ask in EXPERIMENTS.items() if not ask(one)}


def test_twelve_have_a_mistake_each_and_two_have_none():
    assert sorted(PATIENTS) == list(range(1, 15))
    assert len(WELL) == 2
    assert sorted(PATIENTS[n].cause for n in ILL) == sorted(bugs.BUGS.keys() - {"nothing"})
    assert CAUSES.keys() == bugs.BUGS.keys()


@pytest.mark.parametrize("n", PATIENTS)
def test_each_runs_trains_and_writes(n):
    one = patient(n, steps=STEPS)
    assert type(one.model) is Transformer, "a patch over the course's model, and no second one"
    assert sum(one.history.loss[-10:]) < sum(one.history.loss[:10])
    assert len(one.write(*NUMBERS)) == len(one.write(*NUMBERS, width=3)) == len(NUMBERS)
    assert repr(one) == f"Patient {n}"
    shown = f"{one.complaint} {one} {one.model}".lower()
    assert PATIENTS[n].cause not in shown


@pytest.mark.parametrize("n", WELL)
def test_those_without_a_mistake_are_the_courses_model(n):
    one = patient(n, steps=STEPS)
    course = Transformer(one.model.config).double().eval()
    course.load_state_dict(one.model.state_dict())
    asked = one.batch(*NUMBERS)
    target = shift_right(asked.target)
    assert torch.equal(one.logits(asked), course(asked.source, target).logits)
    states = [model.prefill(asked.source, 8) for model in (one.model, course)]
    for t in range(3):
        steps = [
            model.step(target[:, t : t + 1], state) for model, state in zip((one.model, course), states, strict=True)
        ]
        assert torch.equal(*steps)
    found = beam(course, asked.source, 8, width=4)
    assert torch.equal(one.search(one.model, asked.source, 8, width=4).tokens, found.tokens)


def test_the_experiments_tell_all_apart_over_three_seeds_and_none_finds_more_than_half():
    causes, names, found = decisions(seeds=(0, 1, 2), steps=STEPS)
    assert set(found.flatten().tolist()) == {0.0, 1.0}, "a mark depends on the seed"
    marks = {
        cause: {name for name, x in zip(names, row, strict=True) if x}
        for cause, row in zip(causes, found, strict=True)
    }
    assert marks == {cause: set(one.found_by) for cause, one in CAUSES.items()}
    assert len(set(map(frozenset, marks.values()))) == len(marks) == 13
    assert marks["nothing"] == set()
    assert found.sum(axis=0).max() <= 6


def test_a_patient_comes_as_it_was_at_first():
    one = patient(2, steps=STEPS)
    one.mend(MENDS["no shift"])
    assert patient(2, steps=STEPS).read is not shift_right
    assert one.untrained().read is shift_right


@pytest.mark.parametrize("n", PATIENTS)
def test_diagnose_knows_what_is_right_and_speaks_against_all_else(n, monkeypatch, capsys):
    monkeypatch.setattr(diagnosis, "patient", lambda n: patient(n, steps=STEPS))
    for cause, one in CAUSES.items():
        diagnose(f"15.{n:02}", cause)
        said = " ".join(capsys.readouterr().out.split())
        if cause == PATIENTS[n].cause:
            assert said.startswith(f"15.{n:02} right")
            assert said.endswith(f": {one.sentence}.")
            continue
        assert said.startswith(f"15.{n:02} not that: ")
        name = said.split("`")[1]
        report = EXPERIMENTS[name](patient(n, steps=STEPS))
        assert said.endswith(report.sentence)
        assert report.ok == (name in one.found_by), "its outcome on this patient speaks against the cause"
        assert PATIENTS[n].cause not in said or n in WELL, "it gives nothing away"
        assert CAUSES[PATIENTS[n].cause].sentence not in said


def test_diagnose_without_a_cause_and_with_strange_ones(capsys):
    diagnose("15.07")
    assert all(one.sentence in capsys.readouterr().out for one in [CAUSES["no shift"]])
    diagnose("15.07", ...)
    assert capsys.readouterr().out == "15.07 not attempted yet.\n"
    diagnose("15.07", "it is tired")
    assert "not understood" in capsys.readouterr().out
    diagnose("15.07", "the mask")
    said = capsys.readouterr().out
    assert all(f"{name:20} {CAUSES[name].sentence}" in said for name in ("inverted mask", "guessed axis"))
    for case in ("15.15", "15.0", "14.01", 7):
        with pytest.raises(ValueError, match="case must be"):
            diagnose(case, "no shift")
    with pytest.raises(TypeError, match="cause must be a string"):
        diagnose("15.07", 3)
    with pytest.raises(ValueError, match="from 1 to 14"):
        patient(15)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("the padding mask is inverted", "inverted mask"),
        ("key_padding_mask given to SDPA: True at padding", "inverted mask"),
        ("a cache mask one short", "short cache mask"),
        ("the new key is hidden in the cache", "short cache mask"),
        ("causal mask off by one", "wide window"),
        ("the window sees one token ahead", "wide window"),
        ("an einsum that only works when d_in = d_out", "square product"),
        ("W_O is transposed", "square product"),
        ("attention maps from a second pass", "other maps"),
        ("a fill of -1e6 in half precision", "finite fill"),
        ("overflow in fp16", "finite fill"),
        ("padding mask broadcast over heads when batch = heads", "guessed axis"),
        ("dropout is on in evaluation", "dropout stays"),
        ("model.eval() is missing", "dropout stays"),
        ("positions restart with a cache", "restarted positions"),
        ("padding is counted in the loss", "padding in the loss"),
        ("ignore_index is missing", "padding in the loss"),
        ("teacher forcing without the shift", "no shift"),
        ("labels are not shifted", "no shift"),
        ("beam search extends finished beams", "endless beams"),
        ("it is healthy", "nothing"),
        ("Nothing.", "nothing"),
        ("it is in order", "nothing"),
        ("the decoder can peek at the next word", "wide window"),
        ("F.dropout without training=self.training", "dropout stays"),
    ],
)
def test_the_fields_words_are_understood(words, cause):
    assert named(words) == [cause]


@pytest.mark.parametrize(
    ("case", "words", "meant"),
    [
        ("15.04", "the encoder has no positions", "restarted positions"),
        ("15.11", "random sampling instead of greedy", "dropout stays"),
        ("15.12", "the loss has a floor because of smoothing", "padding in the loss"),
        ("15.13", "the diagonal is closed when writing", "wide window"),
        ("15.05", "nothing is wrong, it was trained with dropout", "nothing"),
    ],
)
def test_words_that_are_only_searched_for_get_no_verdict(case, words, meant, capsys):
    diagnose(case, words)
    said = capsys.readouterr().out
    assert said.startswith(f"{case} do you mean ")
    assert f"\n{meant:20} {CAUSES[meant].sentence}\n" in said
    assert not any(word in said for word in ("right:", "not that"))


def test_guesses_are_counted_and_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTNLIB_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(diagnosis, "patient", lambda n: patient(n, steps=STEPS))
    diagnose("15.02", "wide window")
    diagnose("15.02", "square product")
    diagnose("15.02", "the shift is missing")  # no guess yet
    capsys.readouterr()
    diagnose("15.02", "No_shift.")
    assert capsys.readouterr().out.startswith("15.02 right, after 2 wrong guesses: the target is not shifted")
    known = progress_file.of_file(tmp_path / "progress.json")
    assert (known.solved, known.tries) == ({"15.02"}, {"15.02": 2})
    diagnose("15.14", "scores are not divided by the square root of d")
    assert "not understood" in capsys.readouterr().out


def test_a_mistake_that_no_experiment_knows_is_found_where_it_is():
    for name, module in patient(12, steps=0).model.named_modules():
        if not hasattr(module, "attend"):
            continue
        one = patient(12, steps=0)
        own = one.model.get_submodule(name)
        own.attend = lambda q, k, v, **options: attention(2 * q, k, v, **options)
        said = EXPERIMENTS["reference"](one).sentence
        assert said.endswith(f"Given equal input, {name} (MultiHeadAttention) is the first to differ.")


def test_what_surrounds_the_mistake_stays_an_experiments_finding():
    one = patient(12, steps=0)
    for module in one.model.modules():
        if hasattr(module, "attend"):
            module.attend = lambda q, k, v, **_: SimpleNamespace(out=v.masked_fill(v > 9, -1e9), weights=None)
    assert EXPERIMENTS["half"](one).sentence.startswith("In half precision it does not run: ")
    one = patient(12, steps=0)
    one.loss = lambda logits, target: smoothed_cross_entropy(logits, target.masked_fill(target == END, 0))
    assert EXPERIMENTS["loss"](one).sentence == "The loss counts 10 positions, but 14 have a word."
    one.mend(lambda one: setattr(one.model, "lm_head", torch.nn.Linear(32, 33)))
    assert EXPERIMENTS["batch"](one), "a part in float32 fits"


@pytest.mark.parametrize("n", PATIENTS)
def test_no_part_that_is_printed_names_its_mistake(n):
    one = patient(n, steps=0)
    parts = [one.read, one.loss, one.search, one.maps, *(getattr(m, "attend", None) for m in one.model.modules())]
    assert "<locals>" not in str(parts)


def everywhere(attend):
    def mend(one):
        for module in one.model.modules():
            if hasattr(module, "attend"):
                module.attend = attend

    return mend


def of_source(one):
    for module in (one.model.encoder.layers[0].self_attention, one.model.decoder.layers[0].cross_attention):
        module.attend = attention


def of_target(one):
    one.model.decoder.layers[0].self_attention.attend = attention


def products(one):
    for module in one.model.modules():
        if hasattr(module, "out_proj"):
            module.out_proj.__class__ = torch.nn.Linear


def embeddings(one):
    for embedding in (one.model.source_embedding, one.model.target_embedding):
        embedding.forward = type(embedding).forward.__get__(embedding)


def own_maps(one):
    name = "decoder.layers.0.self_attention"
    one.maps = lambda batch: probes.attention_maps(one.model, batch.source, one.read(batch.target))[name]


MENDS = {
    "inverted mask": of_source,
    "guessed axis": of_source,
    "short cache mask": of_target,
    "wide window": of_target,
    "finite fill": everywhere(attention),
    "square product": products,
    "other maps": own_maps,
    "dropout stays": embeddings,
    "restarted positions": embeddings,
    "padding in the loss": lambda one: setattr(one, "loss", smoothed_cross_entropy),
    "no shift": lambda one: setattr(one, "read", shift_right),
    "endless beams": lambda one: setattr(one, "search", beam),
}


@pytest.mark.parametrize("n", ILL)
def test_its_mend_silences_all_experiments_and_no_other_does(n):
    right = MENDS[PATIENTS[n].cause]
    for mend in set(MENDS.values()):
        one = patient(n, steps=STEPS)
        one.mend(mend)
        silent = not alarms(one)
        covers = mend is right or (mend is MENDS["finite fill"] and right in (of_source, of_target))
        assert silent == covers, (PATIENTS[n].cause, mend)


def test_the_twins_of_the_lesson_part_where_it_says():
    shift, window = (next(n for n in ILL if PATIENTS[n].cause == cause) for cause in ("no shift", "wide window"))
    for n, is_causal in ((shift, True), (window, False)):
        one = patient(n, steps=STEPS)
        model, asked = one.model, one.batch(342)
        report = probes.causality(lambda read, m=model, s=asked.source: m(s, read).logits, shift_right(asked.target))
        assert report.ok is is_causal
        assert not EXPERIMENTS["answer"](one)
        assert EXPERIMENTS["steps"](one).ok is is_causal


def test_a_window_that_is_right_is_no_mistake():
    one = patient(WELL[0], steps=STEPS)

    def attend(q, k, v, *, causal=False, **options):
        window = masks.window(q.shape[-2], k.shape[-2], back=k.shape[-2], like=q)
        return attention(q, k, v, **options | {"mask": window})

    one.model.decoder.layers[0].self_attention.attend = attend
    assert alarms(one) == set()


def without_padding_mask(one):
    def attend(q, k, v, *, mask=None, **options):
        return attention(q, k, v, **options)

    one.model.decoder.layers[0].cross_attention.attend = attend


def untied(one):
    one.model.lm_head.weight = torch.nn.Parameter(one.model.lm_head.weight.detach().clone())


def norm_on_the_wrong_side(one):
    residual = one.model.encoder.layers[0].feed_forward_residual
    residual.after = lambda x, y: residual.norm(x) + y


def no_root(one):
    everywhere(lambda q, k, v, **options: attention(q * q.shape[-1] ** 0.5, k, v, **options))(one)


@pytest.mark.parametrize(
    ("bug", "heard"),
    [
        (without_padding_mask, {"padding", "batch"}),
        (untied, {"reference"}),
        (norm_on_the_wrong_side, {"reference"}),
        (no_root, {"reference"}),
    ],
)
def test_mistakes_of_no_list_are_heard_of(bug, heard):
    one = patient(WELL[0], steps=0).untrained()
    one.mend(bug)
    one.train(steps=STEPS)
    assert alarms(one) == heard

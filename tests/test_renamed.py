"""Old names: they work for one version more, and say the new one."""

from __future__ import annotations

import warnings
from importlib import import_module

import pytest
import safetensors.torch
import torch

from attnlib.decoding import greedy
from attnlib.models import BERT, GPT, BERTConfig, GPTConfig, folder_of
from attnlib.nn import MultiHeadAttention, Transformer, TransformerConfig
from attnlib.training import load

SIZES = dict(d_model=8, n_heads=2)
MADE = {
    "GPT": lambda: GPT(GPTConfig(n_tokens=20, n_max=16, n_layers=1, **SIZES)),
    "BERT": lambda: BERT(BERTConfig(n_tokens=20, n_max=16, n_layers=1, **SIZES)),
    "Transformer": lambda: Transformer(TransformerConfig(n_source=20, n_target=20, **SIZES)),
}


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("GPT", "table", "token_embedding"),
        ("GPT", "out", "lm_head"),
        ("GPT", "remember", "prefill"),
        ("BERT", "fill", "mlm_logits"),
        ("BERT", "follows", "next_sentence_logits"),
        ("BERT", "transform", "mlm_head.dense"),
        ("Transformer", "out", "lm_head"),
    ],
)
def test_an_old_name_works_and_says_the_new_one(kind, old, new):
    model = MADE[kind]()
    with pytest.warns(DeprecationWarning, match=rf"{kind}\.{old} is now {kind}\.{new}"):
        found = getattr(model, old)
    for part in new.split("."):
        model = getattr(model, part)
    assert found == model


def test_the_pair_that_from_pretrained_returned_can_still_be_taken_apart():
    folder = folder_of("technical-english")
    with pytest.warns(DeprecationWarning, match=r"now from_pretrained\(folder\) and tokenizer_of\(folder\)"):
        model, tokenizer = GPT.from_pretrained(folder)
    with pytest.warns(DeprecationWarning, match="tokenizer_of"):
        assert isinstance(GPT.from_pretrained(folder).model, GPT)
    assert tokenizer.get_vocab_size() == model.config.n_tokens
    with pytest.raises(TypeError, match=r"a GPT has no parts to go through: call it, model\(tokens\)"):
        list(MADE["GPT"]())


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("core.online", "carry_on", "core.online_update"),
        ("plotting", "cache_diagram", "course.drawings.cache_diagram"),
        ("models.gpt", "Predicted", "models.gpt.LMOutput"),
        ("models.flamingo", "Told", "models.flamingo.FlamingoOutput"),
        ("nn.recurrent", "Predicted", "nn.recurrent.Seq2SeqOutput"),
    ],
)
def test_what_moved_is_found_where_it_was(module, old, new):
    home, _, name = new.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"attnlib.{module}.{old} is now attnlib.{new}"):
        assert getattr(import_module(f"attnlib.{module}"), old) is getattr(import_module(f"attnlib.{home}"), name)


@pytest.mark.parametrize("kind", MADE)
def test_weights_that_were_saved_under_old_names_are_found(kind, tmp_path):
    model = MADE[kind]()
    names = {new: old for part in model.modules() for old, new in getattr(part, "renamed_weights", {}).items()}

    def as_before(name):
        for new, old in names.items():
            name = name.replace(f"{new}.", f"{old}.")
        return name

    old = {as_before(name): tensor for name, tensor in model.state_dict().items()}
    assert old.keys() != model.state_dict().keys()
    other = MADE[kind]()
    other.load_state_dict(old)
    safetensors.torch.save_file({name: x.clone() for name, x in old.items()}, tmp_path / "before")
    for found in (other, load(MADE[kind](), tmp_path / "before")):
        for name, tensor in model.state_dict().items():
            assert torch.equal(found.state_dict()[name], tensor), name


def test_a_part_that_is_set_by_its_old_name_is_the_one_that_runs():
    model, head = MADE["GPT"](), torch.nn.Linear(8, 3)
    with pytest.warns(DeprecationWarning, match=r"GPT\.out is now GPT\.lm_head"):
        model.out = head
    assert model.lm_head is head


def test_a_model_of_ones_own_that_remembers_can_still_be_decoded_from():
    class Mine:
        def remember(self, source, n_max):
            return None

        def step(self, tokens, state):
            return torch.eye(4)[3].expand(len(tokens), 1, -1)

    with pytest.warns(DeprecationWarning, match=r"Mine\.remember is now prefill"):
        assert greedy(Mine(), torch.tensor([[3]]), 2).tolist() == [[3, 3]]


def test_nothing_of_ours_uses_an_old_name():
    with warnings.catch_warnings(action="error"):
        model = MADE["GPT"]().eval()
        greedy(model, torch.tensor([[3]]), 2)
        MultiHeadAttention(8, 2).prefill(torch.zeros(1, 2, 8))

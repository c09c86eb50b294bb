"""A stranger's first error says our word for what she knows by another."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import attnlib
from attnlib import MultiHeadAttention, attention
from attnlib.decoding import beam, greedy
from attnlib.models import GPT, GPTConfig

X, TOKENS = np.ones((2, 3)), torch.tensor([[3]])
MODEL = GPT(GPTConfig(n_tokens=20, n_max=16, d_model=8, n_heads=2, n_layers=1))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: attention(X, X, X, is_causal=True), TypeError, "'is_causal'; here it is causal"),
        (lambda: attention(X, X, X, scale=2.0), TypeError, "'scale'; here it is score, a function"),
        (lambda: attention(X, X, X, anything=1), TypeError, r"argument 'anything'$"),
        (lambda: MultiHeadAttention(embed_dim=8, num_heads=2), TypeError, "'d_model' and 'n_heads'"),
        (lambda: MultiHeadAttention(8, 2, dropout_p=0.1), TypeError, "'dropout_p'; here it is dropout"),
        (lambda: MultiHeadAttention(8, 2, batch_first=True), TypeError, "here it is always so, .batch, n, d_model"),
        (
            lambda: attention(X, X, X, mask=attnlib.causal(2, like=TOKENS)),
            TypeError,
            r"got torch.*causal\(n, like=q\)",
        ),
        (lambda: MultiHeadAttention(8, 2)(torch.ones(1, 3, 8), need_weights=True), TypeError, "here it is weights"),
        (lambda: greedy(MODEL, TOKENS, max_new_tokens=3), TypeError, "'n_max'"),
        (lambda: beam(MODEL, TOKENS, 3, num_beams=2), TypeError, "'num_beams'; here it is the width"),
        (lambda: MODEL.generate(TOKENS, max_new_tokens=3), AttributeError, "attnlib.decoding has greedy"),
        (lambda: GPT.from_pretrained("gpt2"), FileNotFoundError, "Nothing is fetched: put config.json.*from_hugging"),
    ],
)
def test_a_word_of_another_library_is_answered_with_ours(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_an_empty_folder_says_what_it_must_hold(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config\.json must say what the model is; there is none"):
        GPT.from_pretrained(tmp_path)


def test_dir_shows_the_library_and_not_the_course():
    assert {"attention", "nn", "scaled_dot"} <= set(dir(attnlib))
    assert not {"check", "hint", "progress", "check_close"} & set(dir(attnlib))
    assert set(dir(attnlib)) <= set(attnlib.__all__)

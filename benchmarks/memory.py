"""How much memory, and time, attention over 16,384 tokens takes, block by block and all at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from measure import Row, compare, peak_of_numpy, peak_of_torch
from peers import plain_attention

from attnlib import attention

TOKENS, D, BLOCK = 16_384, 64, 512


def plain_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The three lines, in NumPy, where a softmax has to be written out."""
    scores = q @ k.T / np.sqrt(q.shape[-1], dtype=q.dtype)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def rows() -> Iterator[list[Row]]:
    """The rows of the table."""
    arrays = np.random.default_rng(0).normal(size=(3, TOKENS, D)).astype(np.float32)
    tensors = torch.from_numpy(arrays)
    ours, plain = partial(attention, *tensors, weights=False, block=BLOCK), partial(plain_attention, *tensors)
    np.testing.assert_allclose(ours().out, plain(), atol=1e-5)
    name = f"`attention(…, block={BLOCK})`, one head × {TOKENS:,}, forward"
    yield [Row(f"{name}, **memory**", "plain attention", (peak_of_torch(plain) / peak_of_torch(ours),), 200.0)]
    mine, other = partial(attention, *arrays, weights=False, block=BLOCK), partial(plain_numpy, *arrays)
    ratio = peak_of_numpy(other) / peak_of_numpy(mine)
    yield [Row(f"{name}, **memory**", "plain attention, NumPy", (ratio,), 200.0)]
    yield compare(name, ours, {"plain attention": plain}, turns=7)

r"""Probes: does a model do what its drawing says? They ask any function or module, and read no line of its code.

A model is a function from ``x``, ``(batch, n, d)`` floats or ``(batch, n)`` tokens, to ``(batch, n, ...)``, or to
``(batch, ...)`` where it is pooled. It may return a tensor, a tuple that starts with one, `attnlib.Attended`, or an
object with ``logits`` or ``last_hidden_state``. NumPy goes in and out as well, without gradients.

A module is in eval mode while it is probed, unless ``training=True``, and so are the modules that a function
mentions itself: ``lambda x: layer(x, mask)``. Then every mode, buffer and random stream is as it was before. A model
that draws random numbers draws the same ones at every call; in eval mode that is a finding, as of a dropout that is
never switched off, unless ``random=True``.

``tolerance`` is the share of an output's size up to which a change is rounding. By default that of the coarsest
format among input, parameters and output: 1e-10 in float64, 1e-5 in float32, 1e-2 in float16, 5e-2 in bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from attnlib._base.checks import check_size
from attnlib.probes.influence import (
    by_change,
    by_gradient,
    by_padding,
    by_sequence,
    is_inverted,
    nan_of_the_future,
    nan_of_the_padding,
    needs_a_head_for_each,
    orders,
    padding_steps,
    without_padding,
)
from attnlib.probes.outputs import NaNError, UnfitError, at_least_one
from attnlib.probes.parameters import gradients, overfits
from attnlib.probes.report import Report, batch_sentence, causal_sentence, order_sentence, padding_sentence
from attnlib.probes.subject import observe, probe

if TYPE_CHECKING:
    from jaxtyping import Bool, Shaped
    from torch import Tensor

    from attnlib._base.arrays import Array

__all__ = ["Report", "batch_independence", "causality", "gradients", "overfits", "padding", "permutation"]


@probe
def causality(
    model: Callable,
    x: Shaped[Array, "batch n ..."],
    *,
    n_tokens: int | None = None,
    tolerance: float | None = None,
    draws: int = 3,
    gradient: bool = True,
    training: bool = False,
    random: bool = False,
    seed: int = 0,
) -> Report:
    r"""Does any output read a later input?

    .. math:: \frac{\partial y_t}{\partial x_s} = 0 \quad \text{for all } s > t

    Every input is changed, ``draws`` times, while the others stay: a number by about the size of ``x``, a token to
    another one (of ``n_tokens``, or of those in ``x``). Every output that changes reads it. Then the gradient of
    every output is taken, at the input or at what the embedding makes of the tokens. It has no tolerance: it finds
    what is too small for half precision to show. A convolution by Fourier transform smears rounding over all
    positions, and wants ``gradient=False``.

    ``matrix[t, s]`` of the report says whether output ``t`` reads input ``s``, in any of the sequences.

    Raises ``TypeError`` or ``ValueError`` when ``x`` or the output has another shape or type than these.

    Source: the property is that of Vaswani et al. (2017), section 3.2.3.

    >>> x = torch.randn(2, 4, 3)
    >>> causality(lambda x: x.cumsum(1), x)
    Causal: no output changes when a later input does (4 positions).
    >>> causality(lambda x: x + 1e-4 * x.roll(-1, dims=1), x)
    Position 0 reads position 1: not causal (3 of 6 such pairs).
    """
    with observe(
        model, x, training=training, random=random, tolerance=tolerance, n_tokens=n_tokens, seed=seed
    ) as subject:
        subject.pooled = False
        try:
            before = subject.baseline()
        except NaNError as found:
            raise nan_of_the_future(subject, found) from None
        if before.shape[1] == 1:
            sentence = "Nothing to see: a sequence of one position has no later input."
            return Report("causality", True, sentence)
        amounts = by_change(subject, before, at_least_one("draws", draws))
        changed = amounts > subject.tolerance
        traced, reason = by_gradient(subject) if gradient else (None, "gradient=False")
    reads = changed if traced is None else changed | traced
    sentence = causal_sentence(reads, changed, reason)
    return Report("causality", not reads.triu(1).any(), sentence, reads.numpy(), amounts=amounts.numpy())


@probe
def padding(
    model: Callable,
    x: Shaped[Array, "batch n ..."],
    lengths: Sequence[int],
    *,
    n_tokens: int | None = None,
    pooled: bool | None = None,
    nan: bool = False,
    n_heads: int | None = None,
    tolerance: float | None = None,
    draws: int = 2,
    training: bool = False,
    random: bool = False,
    seed: int = 0,
) -> Report:
    r"""Does padding change an answer?

    .. math:: f(x)_{bt} = f(x_{b,:\text{length}_b})_t \quad \text{for all } t < \text{length}_b

    The model is called as ``model(x, real)``, where ``real`` ``(batch, n)`` is True for tokens and False for padding;
    for a layer of torch write ``lambda x, real: layer(x, src_key_padding_mask=~real)``. Three things are tried. What
    stands in the padding is changed, ``draws`` times by about the size of ``x`` and once by ten thousand times that (a
    hundred times in float16; to NaN as well where ``nan``, which only a model that never adds up its padding
    survives); if only such a size shows it, as where a mask follows the softmax, that is said. Every sequence is run
    alone, without padding. And the mask is turned round, to see whether it is then that real positions read one
    another. Only outputs at real positions are real. An output without an axis for the positions is ``pooled``; say so
    where it cannot be told from the shape. A sequence of length 0 has none that count, but must not give NaN, which
    its gradients would hand on.

    A mask ``(batch, 1, n)`` fits scores ``(batch, n_heads, n, n)`` where there are as many sequences as heads, and
    then masks each head by the length of a sequence. With ``n_heads``, so many sequences are made from those of ``x``,
    whose lengths should differ.

    ``matrix[t, s]`` of the report says whether output ``t`` (of sequence ``t`` where pooled) reads padding at ``s``.

    Raises ``TypeError`` or ``ValueError`` when an argument or the output has another shape or type than these.

    >>> x = torch.randn(2, 4, 3)
    >>> def total(x, real):
    ...     return (x * real[..., None]).cumsum(1)
    >>> padding(total, x, [4, 2])
    Padding is ignored: real outputs are the same whatever stands in it, and without it (2 sequences).
    >>> padding(lambda x, real: x.flip(1).cumsum(1).flip(1), x, [4, 2])
    Position 0 of sequence 1 reads padding position 2 (4 such pairs). Sequence 1 answers differently without padding.
    """
    with observe(
        model, x, training=training, random=random, tolerance=tolerance, n_tokens=n_tokens, seed=seed
    ) as subject:
        lengths, real = _real(lengths, subject.x)
        if n_heads is not None:
            turn = torch.arange(at_least_one("n_heads", n_heads)) % len(real)
            subject.x, real, lengths = subject.x[turn], real[turn], [lengths[i] for i in turn]
        subject.pooled = pooled
        try:
            before = subject.baseline(real, where=real)
        except NaNError as found:
            raise nan_of_the_padding(subject, real, found) from None
        if pooled is None and subject.is_ambiguous:
            raise ValueError(f"pooled must be given: is {subject.shape} (batch, n) or (batch, d)?")
        if real.all():
            return Report("padding", True, f"Nothing to see: no sequence is shorter than {real.shape[1]}.")
        drawn, steps = subject.is_random, padding_steps(subject, draws, nan)
        each = torch.stack([by_padding(subject, before, real, s, steps) for s in range(real.shape[1])], dim=3)
        amounts = each.amax(0)  # (steps, batch, n, n) to (batch, n, n)
        inverted = is_inverted(subject, real)
        apart = [] if drawn else without_padding(subject, before, lengths, real)
        reads = amounts > subject.tolerance
        shown = [times for times, found in zip(steps, each, strict=True) if (found > subject.tolerance).any()]
        empty = [b for b, length in enumerate(lengths) if not length and before[b].isnan().any()]
        ok = not (reads.any() or apart or inverted or empty)
        under_heads = n_heads is not None and not ok and needs_a_head_for_each(subject, real)
    across = 1 if subject.pooled else 0
    labels = ("padding position", "output of sequence" if subject.pooled else "output position")
    sentence = padding_sentence(reads, shown, apart, subject.pooled, drawn, inverted, under_heads, empty)
    return Report("padding", ok, sentence, reads.any(across).numpy(), labels, amounts.amax(across).numpy())


def _real(lengths: Sequence[int], x: Tensor) -> tuple[list[int], Bool[Tensor, "batch n"]]:
    batch, n = x.shape[:2]
    whole = [check_size(f"lengths[{i}]", length) for i, length in enumerate(lengths)]
    if len(whole) != batch or max(whole) > n:
        raise ValueError(f"lengths must be {batch} numbers up to {n}, one for each sequence of x; got {whole}")
    return whole, torch.arange(n, device=x.device) < torch.tensor(whole, device=x.device)[:, None]


@probe
def permutation(
    model: Callable,
    x: Shaped[Array, "batch n ..."],
    *,
    pooled: bool | None = None,
    tolerance: float | None = None,
    draws: int = 3,
    training: bool = False,
    seed: int = 0,
) -> Report:
    r"""Does the order of the inputs matter?

    .. math:: f(Px) = P f(x) \;\text{(equivariant)}, \qquad f(Px) = f(x) \;\text{(invariant)}

    Attention without positions and without a mask is equivariant: outputs move with their inputs, and ``ok`` means
    that. A mean over positions is invariant. A model that is neither knows where its inputs stand, as it should once
    it has positions or a causal mask; without these it has mixed up its axes. Two permutations that generate all
    others are tried (the first two positions swapped, all moved by one), and ``draws`` random ones.

    Raises ``TypeError`` or ``ValueError`` when ``x`` or the output has another shape or type than these.

    Source: Zaheer et al. (2017), *Deep sets*, for the two words; Lee et al. (2019), section 3, for attention.

    >>> x = torch.randn(2, 4, 3)
    >>> permutation(lambda x: x - x.mean(1, keepdim=True), x)
    Equivariant: outputs move with their inputs (4 positions).
    >>> permutation(lambda x: x.mean(1), x)
    Invariant: the output is the same in every order of the inputs (4 positions).
    >>> permutation(lambda x: x.view(2, 3, 4).mT, x)
    Neither equivariant nor invariant: the order of the inputs matters (4 positions).
    """
    with observe(model, x, training=training, random=True, tolerance=tolerance, seed=seed) as subject:
        n = subject.x.shape[1]
        subject.pooled = pooled
        before = subject.baseline()
        if n == 1:
            return Report("permutation", True, "Nothing to see: one position has one order.")
        if subject.is_random:
            raise UnfitError("The model draws random numbers for each position, so that orders cannot be compared.")
        equivariant, invariant = not subject.pooled, True
        for order in orders(n, at_least_one("draws", draws), subject.generator):
            after = subject.answer(subject.x[:, order])
            equivariant = equivariant and not subject.differ(before[:, order], after)
            invariant = invariant and not subject.differ(before, after)
    return Report("permutation", equivariant, order_sentence(equivariant, invariant, subject.pooled, n))


@probe
def batch_independence(
    model: Callable,
    x: Shaped[Array, "batch n ..."],
    *,
    n_tokens: int | None = None,
    tolerance: float | None = None,
    draws: int = 2,
    training: bool = False,
    random: bool = False,
    seed: int = 0,
) -> Report:
    r"""Does any sequence of the batch read another?

    .. math:: f(x)_b = f(x_b) \quad \text{for all } b

    Every sequence is changed as a whole, ``draws`` times, and every sequence is run alone. A layer that takes its
    input as ``(n, batch, d)`` fails, also where ``batch == n``. In training mode a batch normalisation reads the
    whole batch, and should.

    ``matrix[b, a]`` of the report says whether output ``b`` reads sequence ``a``.

    Raises ``TypeError`` or ``ValueError`` when ``x`` or the output has another shape or type than these.

    >>> x = torch.randn(3, 4, 2)
    >>> batch_independence(lambda x: x.cumsum(1), x)
    Independent: every sequence answers as if it were alone (3 sequences).
    >>> batch_independence(lambda x: x.cumsum(0), x)
    Sequence 1 reads sequence 0: the batch is mixed (3 of 6 such pairs). Sequence 1 answers differently alone.
    """
    with observe(
        model, x, training=training, random=random, tolerance=tolerance, n_tokens=n_tokens, seed=seed
    ) as subject:
        before, batch = subject.baseline(), len(subject.x)
        if batch == 1:
            return Report("batch_independence", True, "Nothing to see: a batch of one has no other sequence.")
        amounts = by_sequence(subject, at_least_one("draws", draws))
        apart = [] if subject.is_random else without_padding(subject, before, [subject.x.shape[1]] * batch)
    reads = amounts > subject.tolerance
    mixed = reads & ~torch.eye(batch, dtype=torch.bool)
    labels = ("input sequence", "output sequence")
    sentence = batch_sentence(mixed, [b for b, _ in apart], subject.is_random)
    ok = not mixed.any() and not apart
    return Report("batch_independence", ok, sentence, reads.numpy(), labels, amounts.numpy())

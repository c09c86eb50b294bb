r"""Several attentions side by side, each with its own view of queries, keys and values.

.. math:: \text{head}_h = \text{Attention}(X_q W_Q^{(h)}, X_k W_K^{(h)}, X_v W_V^{(h)}), \qquad
          Y = [\text{head}_1, \ldots, \text{head}_H]\, W_O
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Never

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from attnlib._base.arrays import Array
from attnlib._base.checks import (
    check_array,
    check_at_least_one,
    check_floats,
    check_integers,
    check_share,
    check_width,
    check_words,
)
from attnlib._base.renamed import renamed
from attnlib.core.attention import Attended, attention
from attnlib.nn.cache import Cache
from attnlib.nn.from_torch import attention_arguments, copy_linear
from attnlib.patterns import Pattern, mapped
from attnlib.scores import scaled_dot

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Shaped

__all__ = ["MultiHeadAttention", "merge_heads", "split_heads"]


def split_heads(x: Shaped[Array, "... n d"], n_heads: int) -> Shaped[Array, "... n_heads n d_head"]:
    r"""Cut every row into ``n_heads`` pieces, and put the heads before the positions.

    .. math:: x_{h, i, c} = x_{i,\, h \cdot d_{\text{head}} + c}

    A reshape gives ``(..., n, n_heads, d_head)``, in which a head is a piece of a row; only then do the axes
    change places. Reshaping to ``(..., n_heads, n, d_head)`` at once would mix the positions.

    Raises ``ValueError`` when ``x`` has no two axes or ``n_heads`` does not divide its last, ``TypeError`` when it is
    no array.

    Source: Vaswani et al. (2017), section 3.2.2.

    >>> import numpy as np
    >>> split_heads(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), n_heads=2)
    array([[[1, 2],
            [5, 6]],
    <BLANKLINE>
           [[3, 4],
            [7, 8]]])
    """
    check_at_least_one("n_heads", n_heads)
    check_array("x", x)
    if x.ndim < 2 or x.shape[-1] % n_heads:
        raise ValueError(
            f"x must have shape (..., n, d) with d a multiple of n_heads = {n_heads}; got {tuple(x.shape)}"
        )
    # (..., n, d) -> (..., n, n_heads, d_head) -> (..., n_heads, n, d_head)
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).swapaxes(-3, -2)


def merge_heads(x: Shaped[Array, "... n_heads n d_head"]) -> Shaped[Array, "... n d"]:
    r"""The heads' rows end to end: `split_heads` undone.

    .. math:: x_i = [x_{1,i}, \ldots, x_{H,i}]

    Raises ``ValueError`` when ``x`` has fewer than three axes, ``TypeError`` when it is no array.

    Source: Vaswani et al. (2017), section 3.2.2, *Concat*.

    >>> import numpy as np
    >>> x = np.arange(6.0).reshape(1, 6)
    >>> bool((merge_heads(split_heads(x, 3)) == x).all())
    True
    """
    check_array("x", x)
    if x.ndim < 3:
        raise ValueError(f"x must have shape (..., n_heads, n, d_head); got {tuple(x.shape)}")
    x = x.swapaxes(-3, -2)  # (..., n_heads, n, d_head) -> (..., n, n_heads, d_head)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


QUERIES, KEYS, VALUES, KEYS_VALUES = slice(0, 1), slice(1, 2), slice(2, 3), slice(1, 3)  # of in_proj


def project_heads(
    in_proj: nn.Module, sizes: Sequence[int], d_head: int, x: Float[Tensor, "... n d_model"], part: slice = slice(3)
) -> list[Float[Tensor, "... heads n d_head"]]:
    """Queries, keys and values of all heads, or a ``part`` of these three, whose widths in ``in_proj`` are ``sizes``.

    >>> q, k, v = project_heads(nn.Linear(8, 12), [8, 2, 2], 2, torch.randn(3, 5, 8))
    >>> q.shape, k.shape
    (torch.Size([3, 4, 5, 2]), torch.Size([3, 1, 5, 2]))
    """
    own = sizes[part]
    if len(own) == 3 or type(in_proj) is not nn.Linear or in_proj._forward_hooks or in_proj._forward_pre_hooks:
        # All three, since a hook, or a module in its place, may do more than its weights say.
        rows = in_proj(x).split(sizes, dim=-1)[part]
    else:
        cut = slice(sum(sizes[: part.start]), sum(sizes[: part.stop]))
        rows = linear(x, in_proj.weight[cut], None if in_proj.bias is None else in_proj.bias[cut]).split(own, dim=-1)
    # (..., n, heads * d_head) -> (..., n, heads, d_head) -> (..., heads, n, d_head)
    return [y.view(*y.shape[:-1], y.shape[-1] // d_head, d_head).transpose(-3, -2) for y in rows]


def grouped_attention(
    attend: Callable[..., Attended],
    q: Float[Tensor, "... n_heads n_q d"],
    k: Float[Tensor, "... n_kv_heads n_k d"],
    v: Float[Tensor, "... n_kv_heads n_k d_v"],
    mask: Bool[Tensor, "... n_heads n_q n_k"] | Pattern | None = None,
    bias: Float[Tensor, "... n_heads n_q n_k"] | None = None,
    **options: Any,
) -> Attended:
    r"""`attnlib.attention` for ``n_heads`` heads of queries and ``n_kv_heads`` of keys and values, a group for each.

    .. math:: \text{head}_h = \text{Attention}(Q_h, K_{\lfloor h / g \rfloor}, V_{\lfloor h / g \rfloor}), \qquad
              g = n_\text{heads} / n_\text{kv heads}

    Keys and values are not copied: they get an axis of one for the group, and broadcast. ``attend`` is what takes
    them, with the ``options``.

    Source: Ainslie et al. (2023), section 2.2.

    >>> q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8)
    >>> grouped_attention(attention, q, k, k).weights.shape
    torch.Size([2, 4, 5, 7])
    """
    n_heads, n_kv_heads = q.shape[-3], k.shape[-3]

    def by_group(x: Tensor | None) -> Tensor | None:  # (..., n_heads, n, n) -> (..., n_kv_heads, group, n, n)
        if x is None or x.ndim < 3:
            return x
        return x.unflatten(-3, (n_kv_heads, n_heads // n_kv_heads)) if x.shape[-3] == n_heads else x.unsqueeze(-3)

    k, v = k.unsqueeze(-3), v.unsqueeze(-3)  # (..., n_kv_heads, 1, n_k, d)
    out, alpha = attend(by_group(q), k, v, mask=mapped(by_group, mask), bias=by_group(bias), **options)
    # (..., n_kv_heads, group, n_q, d) -> (..., n_heads, n_q, d)
    return Attended(out.flatten(-4, -3), None if alpha is None else alpha.flatten(-4, -3))


class MultiHeadAttention(nn.Module):
    r"""Multi-head attention, for self- and cross-attention, with grouped heads and a cache.

    .. math:: Y = [\text{head}_1, \ldots, \text{head}_H]\, W_O, \qquad
              \text{head}_h = \text{softmax}\big(s(Q_h, K_h)\big) V_h, \qquad
              s(Q_h, K_h) = \frac{Q_h K_h^\top}{\sqrt{d_\text{head}}} \text{ unless given}

    Parameters
    ----------
    d_model
        Size of a row, coming in and going out.
    n_heads
        Number of heads. Without ``d_head`` it must divide ``d_model``.
    d_head
        Size of one head's queries, keys and values; ``d_model / n_heads`` unless given.
    n_kv_heads
        Number of heads of keys and values, a divisor of ``n_heads`` (as many unless given): each serves a group
        of queries' heads. With 1 it is *multi-query* attention.
    bias
        Do the projections add a bias?
    dropout
        The chance that a weight is dropped in training.
    score
        A function of queries ``(..., n_q, d_head)`` and keys ``(..., n_k, d_head)`` that returns ``(..., n_q, n_k)``,
        as those of `attnlib.scores`; a module, if it has parameters.

    Raises
    ------
    ValueError
        Sizes below one, heads that do not divide, a dropout outside [0, 1).

    Notes
    -----
    The four projections are ``(d_model, n_heads * d_head)`` and so on in the row convention: ``w_q``, ``w_k``,
    ``w_v``, ``w_o``. The first three are parts of one matrix, so that self-attention needs one product.

    Source: Vaswani et al. (2017), section 3.2.2; Shazeer (2019) for one head of keys and values; Ainslie et al.
    (2023) for groups.

    Examples
    --------
    >>> layer = MultiHeadAttention(d_model=8, n_heads=2)
    >>> out, weights = layer(torch.randn(3, 5, 8), weights=True)
    >>> out.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 2, 5, 5]))
    """

    attend = staticmethod(attention)  # what the heads go through; `attnlib.parallel` gives a module another

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        n_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        score: Callable[[Tensor, Tensor], Tensor] = scaled_dot,
        **_others: Never,
    ) -> None:
        super().__init__()
        check_words("MultiHeadAttention", _others)
        check_at_least_one("d_model", d_model)
        check_at_least_one("n_heads", n_heads)
        if d_head is None and d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model = {d_model}, or d_head be given; got {n_heads}")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = check_at_least_one("d_head", d_model // n_heads if d_head is None else d_head)
        self.n_kv_heads = check_at_least_one("n_kv_heads", n_heads if n_kv_heads is None else n_kv_heads)
        if n_heads % self.n_kv_heads:
            raise ValueError(f"n_kv_heads must divide n_heads = {n_heads}; got {n_kv_heads}")
        check_share("dropout", dropout)
        if not callable(score):
            raise TypeError(f"score must be a function of q and k, as in attnlib.scores; got {score!r}")
        self.dropout = dropout
        self.score = score

        self.sizes = [self.d_head * heads for heads in (n_heads, self.n_kv_heads, self.n_kv_heads)]
        self.in_proj = nn.Linear(d_model, sum(self.sizes), bias=bias)
        self.out_proj = nn.Linear(n_heads * self.d_head, d_model, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every projection as Glorot and Bengio (2010) do, equation 16, and set the biases to zero.

        >>> MultiHeadAttention(8, 2).out_proj.bias.abs().sum().item()
        0.0
        """
        for w in (*self.in_proj.weight.split(self.sizes), self.out_proj.weight):
            nn.init.xavier_uniform_(w)
        for bias in (self.in_proj.bias, self.out_proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    @property
    def w_q(self) -> Float[Tensor, "d_model d"]:
        """The queries' projection, in the row convention ``q = x @ w_q``."""
        return self.in_proj.weight.split(self.sizes)[0].T

    @property
    def w_k(self) -> Float[Tensor, "d_model d"]:
        """The keys' projection."""
        return self.in_proj.weight.split(self.sizes)[1].T

    @property
    def w_v(self) -> Float[Tensor, "d_model d"]:
        """The values' projection."""
        return self.in_proj.weight.split(self.sizes)[2].T

    @property
    def w_o(self) -> Float[Tensor, "d d_model"]:
        """The outputs' projection."""
        return self.out_proj.weight.T

    def forward(
        self,
        x_q: Float[Tensor, "... n_q d_model"],
        x_k: Float[Tensor, "... n_k d_model"] | None = None,
        x_v: Float[Tensor, "... n_k d_model"] | None = None,
        *,
        mask: Bool[Tensor, "... n_q n_k"] | Pattern | None = None,
        causal: bool = False,
        bias: Float[Tensor, "... n_heads n_q n_k"] | None = None,
        rotate: Callable[..., Tensor] | None = None,
        cache: Cache | None = None,
        weights: bool = False,
        **_others: Never,
    ) -> Attended[Tensor, Tensor | None]:
        r"""Attend from ``x_q`` to ``x_k`` (to itself unless given), and take the values from ``x_v`` (``x_k``).

        Parameters
        ----------
        x_q, x_k, x_v
            Rows that ask, rows that answer, rows that are averaged; the last two have one length, ``n_k``.
        mask
            True where a query may attend to a key. Without an axis for heads, ``(..., n_q, n_k)``, it is the same
            for all of them; with one axis more than ``x_q`` it has one for each, ``(..., n_heads, n_q, n_k)``. Or a
            pattern, `attnlib.masks.Band` or `attnlib.masks.BigBird`: what it hides is never computed.
        causal
            True lets each query attend to its own position and what came before it, as a mask from `attnlib.causal`
            does, but faster. With a cache, the last query stands at the last key.
        bias
            Added to the scores of each head: ``(..., n_heads, n_q, n_k)``, as `attnlib.positions` makes them.
        rotate
            Applied to queries and keys after the split, as ``rotate(q, start=position of the first)``.
        cache
            From `new_cache`: the new keys and values join those of earlier calls, and the queries attend to all.
            From `prefill`: they attend to what it has read, and ``x_k`` is left out.
        weights
            True returns the weights too, ``(..., n_heads, n_q, n_k)``.

        Raises
        ------
        ValueError
            A last axis that is not ``d_model``, a mask or bias that does not fit, a cache that is full; otherwise as
            `attnlib.attention`.

        Examples
        --------
        >>> layer = MultiHeadAttention(8, 4, n_kv_heads=1)
        >>> words, picture = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
        >>> layer(words, picture).out.shape
        torch.Size([2, 5, 8])
        """
        if _others:
            check_words("MultiHeadAttention", _others)
        self._check(x_q=x_q, x_k=x_k, x_v=x_v)
        if cache is not None and not isinstance(cache, Cache):
            raise TypeError(f"cache must be one from new_cache or prefill; got {type(cache).__name__}")
        start = 0 if cache is None else cache.length
        q, k, v = self._queries_keys_values(x_q, x_k, x_v, rotate, cache)  # (..., heads, n, d_head)
        if mask is not None and 2 < getattr(mask, "ndim", 0) < max(q.ndim, k.ndim, v.ndim):
            mask = mapped(lambda m: m[..., None, :, :], mask)  # (..., 1, n_q, n_k): the same for every head
        options = {
            "score": self.score,
            "causal": causal,
            "dropout": self.dropout if self.training else 0.0,
            "weights": weights,
        }
        try:
            if self.n_heads == self.n_kv_heads:
                out, alpha = self.attend(q, k, v, mask=mask, bias=bias, **options)
            else:
                out, alpha = grouped_attention(self.attend, q, k, v, mask, bias, **options)
        except Exception:
            if cache is not None:
                cache.length = start  # a call that failed was not made
            raise
        y = out.transpose(-3, -2).flatten(-2)  # (..., heads, n_q, d_head) -> (..., n_q, heads * d_head)
        return Attended(self.out_proj(y), alpha)

    if TYPE_CHECKING:
        __call__ = forward  # torch's takes and gives anything

    def new_cache(self, batch: int | tuple[int, ...], n_max: int) -> Cache:
        """Room for the keys and values of ``n_max`` positions, for decoding one at a time.

        >>> layer = MultiHeadAttention(8, 2)
        >>> cache = layer.new_cache(batch=1, n_max=6)
        >>> with torch.no_grad():
        ...     steps = [layer(x[None, None], cache=cache).out for x in torch.randn(3, 8)]
        >>> cache
        Cache(3 of 6 positions, 2 heads of 4)
        """
        lead = [check_at_least_one("batch", size) for size in (batch if isinstance(batch, tuple | list) else [batch])]
        like = next(self.parameters(), torch.empty(0))  # what stands in place of a projection may have none
        return Cache.empty((*lead, self.n_kv_heads, n_max, self.d_head), like=like)

    def prefill(self, x_k: Float[Tensor, "... n_k d_model"]) -> Cache:
        """The keys and values of ``x_k``, computed once, for cross-attention at every step of a decoder.

        >>> layer, source = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
        >>> cache, step = layer.prefill(source), torch.randn(1, 1, 8)
        >>> torch.allclose(layer(step, cache=cache).out, layer(step, source).out, atol=1e-6)
        True
        """
        self._check("x_k", x_k=x_k)
        k, v = self._project(x_k, KEYS_VALUES)
        return Cache(k, v, length=x_k.shape[-2], frozen=True)

    remember = renamed("prefill")

    def without(self, *heads: int) -> MultiHeadAttention:
        """A copy in which these heads contribute nothing: their rows of ``w_o`` are zero.

        >>> layer, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
        >>> layer.without(0, 1)(x).out.abs().max().item()
        0.0
        """
        copy = deepcopy(self)
        for head in check_integers("heads", heads):
            if not 0 <= head < self.n_heads:
                raise ValueError(f"heads must lie between 0 and {self.n_heads - 1}; got {head}")
            with torch.no_grad():
                copy.w_o[head * self.d_head : (head + 1) * self.d_head] = 0
        return copy

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> MultiHeadAttention:
        """The same layer with the weights of torch's. Ours takes ``(..., n, d_model)`` whatever its ``batch_first``.

        Raises ``TypeError`` when it is no `torch.nn.MultiheadAttention`, ``ValueError`` for options that have no
        counterpart here: ``kdim`` or ``vdim`` of another size, ``add_bias_kv``, ``add_zero_attn``.

        >>> theirs, x = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, 3, 8)
        >>> ours = MultiHeadAttention.from_torch(theirs)
        >>> torch.allclose(ours(x).out, theirs(x, x, x)[0], atol=1e-6)
        True
        """
        ours = cls(**attention_arguments(module)).to(module.in_proj_weight)
        copy_linear(ours.in_proj, module.in_proj_weight, module.in_proj_bias)
        copy_linear(ours.out_proj, module.out_proj.weight, module.out_proj.bias)
        return ours.train(module.training)

    def extra_repr(self) -> str:
        """The sizes, for `print`."""
        sizes = f"d_model={self.d_model}, n_heads={self.n_heads}, d_head={self.d_head}"
        return f"{sizes}, n_kv_heads={self.n_kv_heads}, dropout={self.dropout}"

    def _queries_keys_values(
        self,
        x_q: Tensor,
        x_k: Tensor | None,
        x_v: Tensor | None,
        rotate: Callable[..., Tensor] | None,
        cache: Cache | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Projected, split into heads, turned, and those of earlier calls before the new ones."""
        if cache is not None and cache.frozen:
            if not (x_k is None and x_v is None and rotate is None):
                raise ValueError("x_k, x_v and rotate must be left out with a cache from `prefill`; got one of them")
            (q,) = self._project(x_q, QUERIES)
            return q, *cache.contents()
        x_k = x_q if x_k is None else x_k
        x_v = x_k if x_v is None else x_v
        if x_q is x_k is x_v:
            q, k, v = self._project(x_q)
        else:
            (q,) = self._project(x_q, QUERIES)
            if x_k is x_v:
                k, v = self._project(x_k, KEYS_VALUES)
            else:
                (k,), (v,) = self._project(x_k, KEYS), self._project(x_v, VALUES)
        if rotate is not None:
            start = 0 if cache is None else cache.length
            q, k = rotate(q, start=start), rotate(k, start=start)
        return (q, k, v) if cache is None else (q, *cache.extend(k, v))

    def _project(self, x: Tensor, part: slice = slice(3)) -> list[Tensor]:
        return project_heads(self.in_proj, self.sizes, self.d_head, x, part)

    def _check(self, required: str = "x_q", **inputs: Tensor | None) -> None:
        weight = getattr(self.out_proj, "weight", None)
        for name, x in inputs.items():
            if x is None and name != required:
                continue
            if not isinstance(weight, Tensor):  # of another module in its place
                check_floats(**{name: x})
            elif type(x) is not Tensor or x.is_nested or x.dtype != weight.dtype or x.device != weight.device:
                check_floats(weights=weight, **{name: x})
            check_width(name, x, self.d_model, n_axes=2)

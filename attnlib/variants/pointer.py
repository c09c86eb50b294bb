"""The pointer network of `attnlib.variants`: attention over the inputs that is itself the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import attnlib._base.needs.torch  # noqa: F401  # isort: skip
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from attnlib._base.checks import check_at_least_one, check_floats, check_one_of
from attnlib.core.softmax import exponentials, masked_softmax
from attnlib.scores import additive

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["Pointed", "PointerNetwork"]

EncoderKind = Literal["set", "recurrent"]


class Pointed(NamedTuple):
    r"""What `PointerNetwork.decode` returns: ``order`` ``(batch, n_out)`` and ``weights`` ``(batch, n_out, n)``.

    .. math:: \text{order}_t = \arg\max_j \text{weights}_{tj}

    >>> Pointed._fields
    ('order', 'weights')
    """

    order: Int[Tensor, "batch n_out"]
    weights: Float[Tensor, "batch n_out n"]


class PointerNetwork(nn.Module):
    r"""Answers with positions of its input: at each step the attention weights over the inputs are the output.

    .. math:: p(c_t = j \mid c_1, \ldots, c_{t-1}, X) = \text{softmax}_j\!\left(
              \tanh(d_t W_q + e_j W_k)\, w \right)

    :math:`e_j` is the encoded input :math:`x_j`. :math:`d_t` is the state of a recurrent decoder, a GRU, that reads
    the inputs pointed at so far. There are as many outputs to choose from as there are inputs, whatever their number.

    Parameters
    ----------
    d_in
        Size of an input row.
    d_model
        Size of encodings, of the decoder's state and of the score's hidden layer.
    encoder
        "set": each input alone goes through one hidden layer, and the decoder begins with the encodings' mean, so
        that a permutation of the inputs permutes the answer. "recurrent": a GRU reads the inputs in the order in
        which they come, and the decoder begins with its last state.

    Raises
    ------
    ValueError
        Sizes below one, another ``encoder``.

    Notes
    -----
    The inputs of a batch are of one length; another batch may have another.

    Source: Vinyals, Fortunato, Jaitly (2015), section 2.3; for inputs that are a set: Vinyals, Bengio, Kudlur (2016).

    Examples
    --------
    >>> model = PointerNetwork(d_in=1, d_model=8)
    >>> numbers, order = torch.rand(2, 5, 1), torch.tensor([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    >>> model(numbers, order).exp().sum(-1).shape, model.decode(numbers).order.shape
    (torch.Size([2, 5]), torch.Size([2, 5]))
    """

    def __init__(self, d_in: int, d_model: int, *, encoder: EncoderKind = "set") -> None:
        super().__init__()
        check_at_least_one("d_in", d_in)
        check_at_least_one("d_model", d_model)
        check_one_of("encoder", encoder, get_args(EncoderKind))
        self.d_in = d_in
        self.encoder = encoder
        self.embed = nn.Linear(d_in, d_model)
        if encoder == "set":
            self.read = nn.Sequential(nn.Tanh(), nn.Linear(d_model, d_model))
        else:
            self.read = nn.GRU(d_model, d_model, batch_first=True)
        self.start = nn.Parameter(torch.zeros(d_model))
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.w_q, self.w_k = (nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_model, d_model))) for _ in range(2))
        self.w = nn.Parameter(nn.init.uniform_(torch.empty(d_model), -1, 1) * d_model**-0.5)

    def forward(
        self, x: Float[Tensor, "batch n d_in"], order: Int[Tensor, "batch n_out"], *, repeats: bool = True
    ) -> Float[Tensor, "batch n_out n"]:
        r"""Log-probabilities of the next position, when those before it are the right ones (teacher forcing).

        .. math:: \text{out}_{tj} = \log p(c_t = j \mid o_1, \ldots, o_{t-1}, X)

        ``order`` :math:`o` holds the positions in the order in which they are to be pointed at. With
        ``repeats=False`` those that were already pointed at are masked, and have minus infinity.

        Raises ``ValueError`` when a shape does not fit or ``order`` is no position, or repeats one against
        ``repeats``, ``TypeError`` when the inputs are not floats or the order not integers.

        >>> model, numbers = PointerNetwork(1, 8), torch.rand(1, 3, 1)
        >>> model(numbers, torch.tensor([[2, 0, 1]]), repeats=False).isinf()[0].int()
        tensor([[0, 0, 0],
                [0, 0, 1],
                [1, 0, 1]], dtype=torch.int32)
        """
        self._check(x)
        _check_order(order, x, repeats)
        inputs, encoded, state = self._encode(x)
        before = inputs.take_along_dim(order[..., None], 1)[:, :-1]
        first = self.start.expand(len(x), 1, -1)  # (batch, 1, d_model)
        states, _ = self.decoder(torch.cat([first, before], 1)[:, : order.shape[1]], state)
        seen = one_hot(order, x.shape[1])
        allowed = None if repeats else seen.cumsum(1) - seen == 0
        return _log_softmax(additive(states, encoded, self.w_q, self.w_k, self.w), allowed)

    @torch.no_grad()
    def decode(self, x: Float[Tensor, "batch n d_in"], n_out: int | None = None, *, repeats: bool = True) -> Pointed:
        r"""Point at ``n_out`` positions (as many as there are, unless given), each time at the likeliest.

        .. math:: c_t = \arg\max_j p(c_t = j \mid c_1, \ldots, c_{t-1}, X)

        It reads its own choices, so that one mistake may lead to another. ``repeats`` is as in `forward`.

        Raises ``ValueError`` when a shape does not fit, or ``n_out`` exceeds n without repeats.

        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <torch...>
        >>> PointerNetwork(1, 8).decode(torch.rand(1, 3, 1), repeats=False).order.sort().values
        tensor([[0, 1, 2]])
        """
        self._check(x)
        n_out = x.shape[1] if n_out is None else check_at_least_one("n_out", n_out)
        if not repeats and n_out > x.shape[1]:
            raise ValueError(f"n_out must not exceed n = {x.shape[1]} without repeats; got {n_out}")
        inputs, encoded, state = self._encode(x)
        step, order, weights = self.start.expand(len(x), 1, -1), [], []
        allowed = torch.ones(len(x), 1, x.shape[1], dtype=torch.bool, device=x.device)
        for _ in range(n_out):
            asked, state = self.decoder(step, state)
            alpha = masked_softmax(additive(asked, encoded, self.w_q, self.w_k, self.w), allowed)
            choice = alpha.argmax(-1)  # (batch, 1)
            step = inputs.take_along_dim(choice[..., None], 1)  # (batch, 1, d_model)
            if not repeats:
                allowed = allowed.scatter(-1, choice[..., None], False)
            order.append(choice)
            weights.append(alpha)
        return Pointed(torch.cat(order, 1), torch.cat(weights, 1))

    def extra_repr(self) -> str:
        """The sizes, for `print`."""
        return f"d_in={self.d_in}, d_model={len(self.w)}, encoder={self.encoder!r}"

    def _encode(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the decoder reads of each input, what it compares with, and its first state."""
        inputs = self.embed(x)
        if self.encoder == "set":
            encoded = self.read(inputs)
            return inputs, encoded, encoded.mean(1)[None]  # the last: (1, batch, d_model)
        encoded, last = self.read(inputs)
        return inputs, encoded, last

    def _check(self, x: Tensor) -> None:
        check_floats(weights=self.w, x=x)
        if x.ndim != 3 or x.shape[1] == 0 or x.shape[2] != self.d_in:
            wanted = f"(batch, n, d_in = {self.d_in}) with n at least 1"
            raise ValueError(f"x must have shape {wanted}; got {tuple(x.shape)}")


def _check_order(order: Tensor, x: Tensor, repeats: bool) -> None:
    if not isinstance(order, Tensor) or order.dtype != torch.int64:
        got = order.dtype if isinstance(order, Tensor) else type(order).__name__
        raise TypeError(f"order must be a tensor of int64 positions; got {got}")
    if order.ndim != 2 or len(order) != len(x):
        raise ValueError(f"order must have shape (batch = {len(x)}, n_out); got {tuple(order.shape)}")
    if order.numel() and (order.min() < 0 or order.max() >= x.shape[1]):
        got = f"{order.min()} to {order.max()}"
        raise ValueError(f"order must hold positions from 0 to n - 1 = {x.shape[1] - 1}; got {got}")
    if not repeats and (one_hot(order, x.shape[1]).sum(1) > 1).any():
        raise ValueError("order must name no position twice with repeats=False; it does")


def _log_softmax(scores: Tensor, allowed: Bool[Tensor, "batch n_out n"] | None) -> Tensor:
    """The logarithm of `masked_softmax`, also where that rounds to zero, so that every mistake has a gradient."""
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    top = scores.amax(-1, keepdim=True)
    return scores - top - exponentials(scores, top).sum(-1, keepdim=True).log()

r"""Recurrent encoder and decoder: one reads step by step, the other writes, and between them one vector or attention.

.. math:: h_j = f(x_j, h_{j-1}), \qquad s_t = g(y_{t-1}, c_t, s_{t-1}), \qquad
          c_t = h_n \;\text{ or }\; c_t = \sum_j \alpha_{tj} h_j
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnlib._base.checks import check_at_least_one, check_one_of, no_generate
from attnlib._base.renamed import moved, renamed
from attnlib.core.attention import Attended, attention
from attnlib.data.text import PAD
from attnlib.masks import padding
from attnlib.nn.cache import check_row_numbers
from attnlib.nn.state import check_state
from attnlib.nn.tokens import check_tokens, lengths_of
from attnlib.scores import additive, bilinear, dot

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float, Int

    Hidden = Tensor | tuple[Tensor, Tensor]  # a pair for an LSTM

__all__ = ["Seq2Seq"]

__getattr__ = moved(__name__, {"Predicted": f"{__name__}.Seq2SeqOutput"})
CELLS = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}


class Memory(NamedTuple):
    """What an encoder made of a source: ``states``, zero at padding, the ``last`` one, ``mask``, True at tokens.

    The mask is None where there is no padding.

    >>> Memory._fields
    ('states', 'last', 'mask')
    """

    states: Float[Tensor, "batch n_source d_model"]
    last: Float[Tensor, "batch 1 d_model"]
    mask: Bool[Tensor, "batch 1 n_source"] | None


@dataclass
class RecurrentState:
    """Where a recurrent decoder stands: the ``memory`` it writes from and its ``hidden`` state, a pair for an LSTM."""

    memory: Memory
    hidden: Tensor | tuple[Tensor, Tensor]

    def select(self, rows: Int[Tensor, " n_rows"]) -> RecurrentState:
        """These ``rows`` of the batch, in this order; one may come more than once."""
        check_row_numbers(rows)
        memory = Memory(*(x if x is None else x[rows] for x in self.memory))
        pair = isinstance(self.hidden, tuple)
        return RecurrentState(memory, tuple(x[:, rows] for x in self.hidden) if pair else self.hidden[:, rows])


class Seq2SeqOutput(NamedTuple):
    """``logits`` ``(batch, n_target, vocabulary)``; ``weights`` ``(batch, n_target, n_source)``, or None.

    >>> Seq2SeqOutput._fields
    ('logits', 'weights')
    """

    logits: Float[Tensor, "batch n_target vocabulary"]
    weights: Float[Tensor, "batch n_target n_source"] | None


class Seq2Seq(nn.Module):
    r"""A recurrent encoder and decoder, with attention between them or without.

    .. math:: s_t = g([E y_{t-1}, c_t], s_{t-1}), \qquad o_t = \tanh([s_t, c_t] W_c) W_o

    Parameters
    ----------
    n_source, n_target
        Sizes of the two vocabularies.
    d_model
        Size of embeddings and of states; with ``bidirectional`` each direction has half of it.
    cell
        "rnn" (tanh), "gru" or "lstm".
    attend
        None: :math:`c_t` is the last state of the encoder, one vector, at every step. "bahdanau": the weighted mean
        of its states, asked for by the *previous* state. "luong": asked for by the *new* state, so that
        :math:`g` does not see :math:`c_t`.
    score
        "additive", "general" (bilinear) or "dot"; None for the published one: "additive", "general" for "luong".
    bidirectional
        Does the encoder read the source from both ends?

    Raises
    ------
    ValueError
        Sizes below one, an unknown name, an odd ``d_model`` with ``bidirectional``.

    Notes
    -----
    The decoder starts from :math:`s_0 = \tanh(h_n W_s + b_s)`, whatever ``attend`` is; an LSTM also from a cell of
    its own. Padding is never read, so a padded batch gives what its sequences give alone.

    Source: Elman (1990) for the plain cell, Hochreiter, Schmidhuber (1997) for the LSTM, Cho et al. (2014),
    sections 2.2 and 2.3, for the GRU and the vector at every step; Sutskever, Vinyals, Le (2014), section 2;
    Bahdanau, Cho, Bengio (2015), section 3 and appendix A; Luong, Pham, Manning (2015), section 3.1.

    Examples
    --------
    >>> from attnlib.nn import shift_right
    >>> model = Seq2Seq(9, 9, d_model=8, attend="bahdanau")
    >>> source, target = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([[6, 5, 4], [8, 7, 0]])
    >>> logits, weights = model(source, [3, 2], shift_right(target))
    >>> logits.shape, weights[1].sum(-1).allclose(torch.ones(3)), weights[1, :, 2].tolist()
    (torch.Size([2, 3, 9]), True, [0.0, 0.0, 0.0])
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        *,
        d_model: int = 64,
        cell: str = "gru",
        attend: str | None = None,
        score: str | None = None,
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        for name, size in {"n_source": n_source, "n_target": n_target, "d_model": d_model}.items():
            check_at_least_one(name, size)
        check_one_of("cell", cell, CELLS)
        check_one_of("attend", attend, (None, "bahdanau", "luong"))
        check_one_of("score", score, (None, "additive", "dot", "general"))
        if bidirectional and d_model % 2:
            raise ValueError(f"d_model must be even for bidirectional, half for each direction; got {d_model}")
        self.d_model = d_model
        self.attend = attend
        self.score = {None: None, "bahdanau": score or "additive", "luong": score or "general"}[attend]
        self.embed_source = nn.Embedding(n_source, d_model)
        self.embed_target = nn.Embedding(n_target, d_model)
        directions = 2 if bidirectional else 1
        self.encoder = CELLS[cell](d_model, d_model // directions, batch_first=True, bidirectional=bidirectional)
        self.start = nn.Linear(d_model, d_model * (2 if cell == "lstm" else 1))
        self.decoder = CELLS[cell](d_model if attend == "luong" else 2 * d_model, d_model, batch_first=True)
        shapes = {"additive": ("w_q", "w_k", "w"), "general": ("w",)}.get(self.score, ())
        for name in shapes:
            vector = self.score == "additive" and name == "w"
            setattr(self, name, _init_weight(1 if vector else d_model, d_model, vector))
        self.join = nn.Linear(2 * d_model, d_model)
        self.out = nn.Linear(d_model, n_target)

    def forward(
        self,
        source: Int[Tensor, "batch n_source"],
        lengths: Sequence[int] | Int[Tensor, " batch"] | None,
        target_in: Int[Tensor, "batch n_target"],
    ) -> Seq2SeqOutput:
        """The logits of every next token, given the tokens before it (teacher forcing; see `shift_right`).

        ``lengths`` says how many tokens of each source are real; None, all of them.

        Raises ``TypeError`` when tokens or lengths are not integers, ``ValueError`` when a token is not of its
        vocabulary, a length is below one or beyond the source, or the batch sizes differ.
        """
        check_tokens("target_in", target_in, self.embed_target.num_embeddings)
        memory = self.encode(source, lengths)
        if len(target_in) != len(source):
            raise ValueError(f"target_in must have the batch of source, {len(source)}; got {len(target_in)}")
        logits, weights, _ = self._decode(target_in, self._first_state(memory), memory)
        return Seq2SeqOutput(logits, weights)

    def encode(
        self, source: Int[Tensor, "batch n_source"], lengths: Sequence[int] | Int[Tensor, " batch"] | None = None
    ) -> Memory:
        """Read the source. Raises as `forward`.

        >>> states, last, mask = Seq2Seq(9, 9, d_model=8).encode(torch.tensor([[4, 5, 0]]), [2])
        >>> torch.equal(states[0, 1], last[0, 0]), states[0, 2].abs().sum().item(), mask.tolist()
        (True, 0.0, [[[True, True, False]]])
        """
        check_tokens("source", source, self.embed_source.num_embeddings)
        batch, n = source.shape
        whole = lengths_of(lengths, batch, n)
        x = self.embed_source(source)
        if min(whole) < n:  # packed, so that no step is taken on padding, from either end
            packed = pack_padded_sequence(x, torch.tensor(whole), batch_first=True, enforce_sorted=False)
            states, last = self.encoder(packed)
            states, _ = pad_packed_sequence(states, batch_first=True, total_length=n)
        else:
            states, last = self.encoder(x)
        # (directions, batch, d) -> (batch, 1, d_model)
        last = _hidden(last).transpose(0, 1).reshape(batch, 1, self.d_model)
        return Memory(states, last, padding(whole, n, like=states) if min(whole) < n else None)

    @torch.no_grad()
    def prefill(self, source: Int[Tensor, "batch n_source"], n_max: int = 0) -> RecurrentState:
        """Read a source, in which `PAD` is padding, for `attnlib.decoding`. No room is needed, whatever ``n_max``."""
        check_tokens("source", source)
        mask = source != PAD
        if (mask[:, 1:] > mask[:, :-1]).any():
            raise ValueError(f"source must have its padding, {PAD}, at the end; got some before a token")
        if not mask.any(1).all():
            raise ValueError(f"source must have a token in each row; got only padding, {PAD}, in one")
        memory = self.encode(source, mask.sum(1))
        return RecurrentState(memory, self._first_state(memory))

    remember = renamed("prefill")
    generate = no_generate

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, "batch n"], state: RecurrentState) -> Float[Tensor, "batch n n_target"]:
        """Logits after each of the next ``tokens``, which ``state`` has then read."""
        check_tokens("tokens", tokens, self.embed_target.num_embeddings)
        check_state(state, RecurrentState)
        if len(tokens) != len(state.memory.last):
            raise ValueError(f"tokens must have a row for each of {len(state.memory.last)} sources; got {len(tokens)}")
        logits, _, state.hidden = self._decode(tokens, state.hidden, state.memory)
        return logits

    def _first_state(self, memory: Memory) -> Hidden:
        # (1, batch, d_model), twice for an LSTM
        pieces = self.start(memory.last.transpose(0, 1)).tanh().split(self.d_model, dim=-1)
        pieces = tuple(piece.contiguous() for piece in pieces)
        return pieces if len(pieces) == 2 else pieces[0]

    def _decode(self, tokens: Tensor, state: Hidden, memory: Memory) -> tuple[Tensor, Tensor | None, Hidden]:
        """Logits and weights for every one of ``tokens``, read from ``state`` on, and the state after them."""
        x, weights = self.embed_target(tokens), None
        if self.attend == "bahdanau":
            states, contexts, weights, state = self._step_by_step(x, state, memory)
        elif self.attend == "luong":  # no step needs the context of another, so all attend at once
            states, state = self.decoder(x, state)
            contexts, weights = self._attend(states, memory)
        else:
            contexts = memory.last.expand(-1, x.shape[1], -1)  # (batch, 1, d_model) -> (batch, n_target, d_model)
            states, state = self.decoder(torch.cat([x, contexts], -1), state)
        return self.out(self.join(torch.cat([states, contexts], -1)).tanh()), weights, state

    def _step_by_step(self, x: Tensor, state: Hidden, memory: Memory) -> tuple[Tensor, Tensor, Tensor, Hidden]:
        steps = []
        for now in x.split(1, dim=1):
            # (1, batch, d_model) -> (batch, 1, d_model)
            context, weights = self._attend(_hidden(state).transpose(0, 1), memory)
            after, state = self.decoder(torch.cat([now, context], -1), state)
            steps.append((after, context, weights))
        return *(torch.cat(parts, 1) for parts in zip(*steps, strict=True)), state

    def _attend(self, queries: Float[Tensor, "batch n_q d_model"], memory: Memory) -> Attended:
        return attention(queries, memory.states, memory.states, score=self._score(), mask=memory.mask)

    def _score(self) -> Callable[[Tensor, Tensor], Tensor]:
        if self.score == "additive":
            return partial(additive, w_q=self.w_q, w_k=self.w_k, w=self.w)
        return dot if self.score == "dot" else partial(bilinear, w=self.w)


def _hidden(state: Hidden) -> Tensor:
    """The part of a state that others may see: an LSTM keeps its cell to itself."""
    return state[0] if isinstance(state, tuple) else state


def _init_weight(rows: int, columns: int, vector: bool) -> nn.Parameter:
    w = nn.init.xavier_uniform_(torch.empty(rows, columns))
    return nn.Parameter(w[0] if vector else w)

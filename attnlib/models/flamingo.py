r"""Flamingo: a language model that stays as it is, and between its layers new ones that read pictures.

.. math:: y = x + \tanh(a)\, \text{MHA}(\text{norm}(x), \text{rows}), \qquad
          z = y + \tanh(b)\, \text{FFN}(\text{norm}(y))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import torch
from torch import Tensor, nn

from attnlib._base.checks import check_at_least_one, check_floats, check_number
from attnlib._base.renamed import moved
from attnlib.core.attention import Attended
from attnlib.models.gpt import GPT
from attnlib.nn.feed_forward import FeedForward
from attnlib.nn.heads import MultiHeadAttention

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["Flamingo", "FlamingoOutput", "GatedCrossAttention"]

__getattr__ = moved(__name__, {"Told": f"{__name__}.FlamingoOutput"})


class GatedCrossAttention(nn.Module):
    r"""Attention from a text's rows to a picture's, then a network, each let in by a gate that starts shut.

    .. math:: y = x + \tanh(a)\, \text{MHA}(\text{norm}(x), \text{rows}), \quad
              z = y + \tanh(b)\, \text{FFN}(\text{norm}(y)), \qquad a = b = \text{gate} \text{ at first}

    With ``gate`` 0 what comes in goes out, to the bit.

    Raises ``ValueError`` for a size below one, or heads that do not divide ``d_model``, ``TypeError`` for a gate that
    is no number.

    Source: Alayrac et al. (2022), *Flamingo*, section 2.2 and figure 4.

    >>> layer, x = GatedCrossAttention(8, 2, 16), torch.randn(2, 5, 8)
    >>> torch.equal(layer(x, torch.randn(2, 7, 8)).out, x)
    True
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, *, gate: float = 0.0) -> None:
        super().__init__()
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation="gelu")
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        start = torch.tensor(float(check_number("gate", gate)))
        self.attention_gate = nn.Parameter(start.clone())
        self.feed_forward_gate = nn.Parameter(start.clone())

    def forward(
        self, x: Float[Tensor, "batch n d_model"], rows: Float[Tensor, "batch m d_model"], *, weights: bool = False
    ) -> Attended:
        """The text's rows with what they took from the picture's, and the weights of the heads if asked for."""
        attended = self.cross_attention(self.attention_norm(x), rows, weights=weights)
        x = x + self.attention_gate.tanh() * attended.out
        x = x + self.feed_forward_gate.tanh() * self.feed_forward(self.feed_forward_norm(x))
        return Attended(x, attended.weights)


class FlamingoOutput(NamedTuple):
    """What `Flamingo` returns: ``logits`` ``(batch, n, n_tokens)``, and each new layer's weights if asked for.

    >>> FlamingoOutput._fields
    ('logits', 'weights')
    """

    logits: Tensor
    weights: list[Tensor | None]


class Flamingo(nn.Module):
    r"""A frozen `GPT` with a `GatedCrossAttention` before some of its layers, which reads a picture's rows.

    .. math:: x_{l+1} = \text{EncoderLayer}_l(\text{Gated}_l(x_l, \text{rows}\, W))

    ``d_rows`` is the size of the rows that somebody else makes of a picture; the new layers stand before the last of
    every ``every`` layers. Only they and :math:`W` have gradients; the language model stays in evaluation mode. (For
    many pictures in one text the published model also has a mask, and it turns many rows into 64; neither is here.)

    Raises ``TypeError`` when ``language`` is no `GPT`, ``ValueError`` when ``every`` exceeds its layers, otherwise as
    `GatedCrossAttention`.

    Source: Alayrac et al. (2022), *Flamingo: a Visual Language Model for Few-Shot Learning*, section 2.

    >>> from attnlib.models import GPTConfig
    >>> language = GPT(GPTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=2)).eval()
    >>> model, tokens = Flamingo(language, d_rows=12), torch.randint(20, (3, 5))
    >>> torch.equal(model(tokens, torch.randn(3, 9, 12)).logits, language(tokens).logits)
    True
    """

    def __init__(self, language: GPT, d_rows: int, *, every: int = 1, gate: float = 0.0) -> None:
        super().__init__()
        if not isinstance(language, GPT):
            raise TypeError(f"language must be a GPT; got {type(language).__name__}")
        self.language = language
        config = language.config
        self.d_rows = check_at_least_one("d_rows", d_rows)
        if check_at_least_one("every", every) > config.n_layers:
            raise ValueError(f"every must be at most the number of layers, {config.n_layers}; got {every}")
        self.project = nn.Linear(d_rows, config.d_model)
        sizes = (config.d_model, config.n_heads, config.d_ff)
        new = range(every - 1, config.n_layers, every)
        self.layers = nn.ModuleDict({str(i): GatedCrossAttention(*sizes, gate=gate) for i in new})
        self.language.requires_grad_(False)
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """As of every module, but that the language model stays in evaluation mode."""
        super().train(mode)
        self.language.eval()
        return self

    def forward(
        self, tokens: Int[Tensor, "batch n"], rows: Float[Tensor, "batch m d_rows"], *, weights: bool = False
    ) -> FlamingoOutput:
        """Logits for the token after each position, given the text up to it and the picture's rows.

        Raises ``TypeError`` or ``ValueError`` when tokens are not ``(batch, n)`` integers of the vocabulary, or rows
        not floats of shape ``(batch, m, d_rows)``.
        """
        self.language._check(tokens)
        check_floats(rows=rows)
        if rows.ndim != 3 or rows.shape[-1] != self.d_rows or len(rows) != len(tokens):
            wanted = f"({len(tokens)}, m, {self.d_rows})"
            raise ValueError(f"rows must have shape (batch, m, d_rows) = {wanted}; got {tuple(rows.shape)}")
        positional, n = self.language.positional, tokens.shape[1]
        x = positional.add_to(self.language.token_embedding(tokens))
        rows = self.project(rows)
        options = {"causal": True} | positional.attention_options(n, n, like=x)
        alphas = []
        for i, layer in enumerate(self.language.layers):
            if str(i) in self.layers:
                x, alpha = self.layers[str(i)](x, rows, weights=weights)
                alphas.append(alpha)
            x = layer(x, **options).out
        return FlamingoOutput(self.language.lm_head(self.language.norm(x)), alphas)

    @torch.no_grad()
    def write(
        self, rows: Float[Tensor, "batch m d_rows"], start: Int[Tensor, " n"], n_max: int
    ) -> Int[Tensor, "batch n_max"]:
        """The likeliest next token, ``n_max`` times, after the tokens ``start``. Raises as `forward`.

        >>> from attnlib.models import GPTConfig
        >>> model = Flamingo(GPT(GPTConfig(n_tokens=9, n_max=8, d_model=8, n_heads=2, n_layers=1)), d_rows=4)
        >>> model.write(torch.randn(3, 5, 4), torch.tensor([1, 7]), n_max=6).shape
        torch.Size([3, 6])
        """
        tokens = start.expand(len(rows), -1)
        for _ in range(check_at_least_one("n_max", n_max)):
            tokens = torch.cat([tokens, self(tokens, rows).logits[:, -1:].argmax(-1)], dim=1)
        return tokens[:, len(start) :]

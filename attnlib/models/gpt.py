"""GPT: the encoder's layers under a causal mask, trained to say what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attnlib.models.configs import GPTConfig
from attnlib.models.loading import FromHuggingFace
from attnlib.models.published import gpt2, gpt2_settings
from attnlib.nn.layers import EncoderLayer
from attnlib.nn.positional import Positional
from attnlib.nn.saving import named
from attnlib.nn.state import DecoderState
from attnlib.nn.tokens import check_beside, check_tokens

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["GPT", "Predicted"]


@named
class Predicted(NamedTuple):
    """What `GPT` returns: ``logits`` ``(batch, n, n_tokens)``, and the weights of every layer if asked for.

    >>> Predicted._fields
    ('logits', 'weights')
    """

    logits: Tensor
    weights: list[Tensor | None]


class GPT(FromHuggingFace, nn.Module):
    r"""A language model: tokens in, a distribution over the next one out, at every position.

    .. math:: p(x_{t+1} \mid x_{\le t}) = \text{softmax}(z_t E^\top), \qquad
              z = \text{norm}(\text{EncoderLayer}^L_\text{causal}(x E + P))

    Pre-norm layers, one table :math:`E` for what goes in and what comes out, weights drawn as GPT-2 does.

    Source: Radford et al. (2018, 2019), *GPT* and *GPT-2*.

    >>> model = GPT(GPTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=2))
    >>> model(torch.randint(20, (2, 7))).logits.shape
    torch.Size([2, 7, 20])
    """

    architectures: ClassVar[dict[str, Any]] = {"gpt2": gpt2}
    published_settings = staticmethod(gpt2_settings)

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config, d = config, config.d_model
        self.table = nn.Embedding(config.n_tokens, d)
        sizes = {"d_model": d, "n_heads": config.n_heads, "n_max": config.n_max}
        self.positional = Positional(config.position, **sizes, bidirectional=False)
        self.drop = nn.Dropout(config.dropout)
        options = {"activation": config.activation, "eps": config.eps, "dropout": config.dropout}
        layers = (EncoderLayer(d, config.n_heads, config.d_ff, **options) for _ in range(config.n_layers))
        self.layers, self.norm = nn.ModuleList(layers), nn.LayerNorm(d, eps=config.eps)
        self.out = nn.Linear(d, config.n_tokens, bias=False)
        self.out.weight = self.table.weight
        self._draw()

    def _draw(self) -> None:
        """Normal numbers of size 0.02; what writes into the residual stream smaller, by the root of how often."""
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                often = 2 * self.config.n_layers if name.endswith(("out_proj.weight", "linear2.weight")) else 1
                nn.init.normal_(weight, std=0.02 * often**-0.5)

    def forward(
        self, tokens: Int[Tensor, "batch n"], *, mask: Bool[Tensor, "batch n"] | None = None, weights: bool = False
    ) -> Predicted:
        """Logits for the token after each position. ``mask`` is True where a token is real, False where it fills up.

        Raises ``TypeError`` or ``ValueError`` when tokens are not ``(batch, n)`` integers of the vocabulary, at most
        ``n_max``, or the mask has another shape.
        """
        self._check(tokens)
        check_beside(tokens, mask=mask)
        x = self.drop(self.positional.add_to(self.table(tokens)))
        real = None if mask is None else mask[:, None]  # (batch, 1, n): which keys there are, for every query
        return self._through(x, [None] * len(self.layers), real, weights)

    if TYPE_CHECKING:
        __call__ = forward  # torch's takes and gives anything

    @torch.no_grad()
    def remember(self, source: Int[Tensor, "batch n_source"], n_max: int) -> DecoderState:
        """Read a text but for its last token, which `step` takes first, and make room for ``n_max`` more tokens.

        Texts of different lengths are filled up *before* them, with ``config.pad``.

        Raises as `forward`, and ``ValueError`` when the text and ``n_max`` exceed ``config.n_max``.
        """
        self._check(source, n_new=n_max - 1)
        lead, heads = (len(source),), [layer.self_attention for layer in self.layers]
        caches = [(layer.new_cache(lead, source.shape[1] + n_max),) for layer in heads]
        real = None if self.config.pad is None else (source != self.config.pad)[:, None]
        state = DecoderState(caches, None if real is None or real.all() else real)
        if source.shape[1] > 1:
            self.step(source[:, :-1], state)
        return state

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, "batch n"], state: DecoderState) -> Float[Tensor, "batch n n_tokens"]:
        """Logits after each of the next ``tokens``, which join those of earlier calls in ``state``.

        Raises ``ValueError`` when ``state`` has no room left; otherwise as `forward`.

        >>> model = GPT(GPTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=2)).eval()
        >>> tokens = torch.randint(20, (2, 7))
        >>> state = model.remember(tokens[:, :4], n_max=4)
        >>> logits = torch.cat([model.step(part, state) for part in tokens[:, 3:].split(1, dim=1)], dim=1)
        >>> torch.allclose(logits, model(tokens).logits[:, 3:], atol=1e-5)
        True
        """
        start, stop, real = state.length, state.length + tokens.shape[1], state.real
        self._check(tokens, n_new=start)
        skipped = None if real is None else (~real).sum(-1)  # (batch, 1): a text that begins later counts from there
        x = self.positional.add_to(self.table(tokens), start, skipped)
        if real is not None:
            real = torch.cat([real, real.new_ones(len(real), 1, max(0, stop - real.shape[-1]))], dim=-1)[..., :stop]
        try:
            return self._through(x, [own for (own,) in state.caches], real, weights=False).logits
        except BaseException:
            state.rewind(start)
            raise

    def _through(self, x: Tensor, caches: list[Any], real: Tensor | None, weights: bool) -> Predicted:
        n, n_k = x.shape[-2], x.shape[-2] + (0 if caches[0] is None else caches[0].length)
        options = {"mask": real, "causal": True, "weights": weights}
        options |= self.positional.attention_options(n, n_k, like=x)
        alphas = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, alpha = layer(x, cache=cache, **options)
            alphas.append(alpha)
        return Predicted(self.out(self.norm(x)), alphas)

    def _check(self, tokens: Tensor, n_new: int = 0) -> None:
        check_tokens("tokens", tokens, self.config.n_tokens)
        if (n := tokens.shape[1] + n_new) > self.config.n_max:
            raise ValueError(f"tokens must be at most n_max = {self.config.n_max} in all; got {n}")

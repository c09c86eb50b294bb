"""GPT: the encoder's layers under a causal mask, trained to say what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attnlib._base.arrays import readable
from attnlib._base.checks import check_size, no_generate
from attnlib._base.renamed import RenamedWeights, moved, renamed
from attnlib.models.configs import GPTConfig
from attnlib.models.loading import FromHuggingFace
from attnlib.models.published import gpt2, gpt2_settings
from attnlib.nn.layers import EncoderLayer
from attnlib.nn.positional import Positional
from attnlib.nn.saving import named
from attnlib.nn.settings import check_config
from attnlib.nn.state import DecoderState, check_state
from attnlib.nn.tokens import check_beside, check_tokens

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = ["GPT", "LMOutput"]

__getattr__ = moved(__name__, {"Predicted": f"{__name__}.LMOutput"})


@named
class LMOutput(NamedTuple):
    """What `GPT` returns: ``logits`` ``(batch, n, n_tokens)``, and the weights of every layer if asked for.

    >>> LMOutput._fields
    ('logits', 'weights')
    """

    logits: Tensor
    weights: list[Tensor | None]


class GPT(FromHuggingFace, RenamedWeights, nn.Module):
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
    renamed_weights: ClassVar[dict[str, str]] = {"table": "token_embedding", "out": "lm_head"}

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        check_config(config, GPTConfig)
        self.config = config
        d = config.d_model
        sizes = {"d_model": d, "n_heads": config.n_heads, "n_max": config.n_max}
        options = {"activation": config.activation, "eps": config.eps, "dropout": config.dropout}

        self.token_embedding = nn.Embedding(config.n_tokens, d)
        self.positional = Positional(config.position, **sizes, bidirectional=False)
        self.drop = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(d, config.n_heads, config.d_ff, **options) for _ in range(config.n_layers)
        )
        self.norm = nn.LayerNorm(d, eps=config.eps)
        self.lm_head = nn.Linear(d, config.n_tokens, bias=False)

        self.tie_weights()
        self.init_weights()

    def tie_weights(self) -> None:
        """Make one table of what goes in and what comes out."""
        self.lm_head.weight = self.token_embedding.weight

    def init_weights(self) -> None:
        """Normal numbers of size 0.02; what writes into the residual stream smaller, by the root of how often."""
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                often = 2 * self.config.n_layers if name.endswith(("out_proj.weight", "linear2.weight")) else 1
                nn.init.normal_(weight, std=0.02 * often**-0.5)

    def forward(
        self, tokens: Int[Tensor, "batch n"], *, mask: Bool[Tensor, "batch n"] | None = None, weights: bool = False
    ) -> LMOutput:
        """Logits for the token after each position. ``mask`` is True where a token is real, False where it fills up.

        Raises ``TypeError`` or ``ValueError`` when tokens are not ``(batch, n)`` integers of the vocabulary, at most
        ``n_max``, or the mask has another shape.
        """
        self._check(tokens)
        check_beside(tokens, mask=mask)
        x = self.drop(self.positional.add_to(self.token_embedding(tokens)))
        mask = None if mask is None else mask[:, None]  # (batch, 1, n): which keys there are, for every query
        return self._forward(x, [None] * len(self.layers), mask, weights)

    if TYPE_CHECKING:
        __call__ = forward  # torch's takes and gives anything

    @torch.no_grad()
    def prefill(self, source: Int[Tensor, "batch n_source"], n_max: int) -> DecoderState:
        """Read a text but for its last token, which `step` takes first, and make room for ``n_max`` more tokens.

        Texts of different lengths are filled up *before* them, with ``config.pad``. It may be the end too, as it is
        for GPT-2: behind the first other token, and at the last place, it is a token like any.

        Raises as `forward`, and ``ValueError`` when the text and ``n_max`` exceed ``config.n_max``.
        """
        self._check(source, n_new=check_size("n_max", n_max) - 1)
        batch, n = source.shape
        caches = [(layer.self_attention.new_cache((batch,), n + n_max),) for layer in self.layers]
        state = DecoderState(caches, self._begun(source))
        if n > 1:
            self.step(source[:, :-1], state)
        return state

    remember = renamed("prefill")
    generate = no_generate

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, "batch n"], state: DecoderState) -> Float[Tensor, "batch n n_tokens"]:
        """Logits after each of the next ``tokens``, which join those of earlier calls in ``state``.

        Raises ``ValueError`` when ``state`` has no room left; otherwise as `forward`.

        >>> model = GPT(GPTConfig(n_tokens=20, n_max=16, d_model=16, n_heads=4, n_layers=2)).eval()
        >>> tokens = torch.randint(20, (2, 7))
        >>> state = model.prefill(tokens[:, :4], n_max=4)
        >>> logits = torch.cat([model.step(part, state) for part in tokens[:, 3:].split(1, dim=1)], dim=1)
        >>> torch.allclose(logits, model(tokens).logits[:, 3:], atol=1e-5)
        True
        """
        check_state(state, DecoderState)
        start = state.length
        stop = start + tokens.shape[1]
        self._check(tokens, n_new=start)

        mask, skipped = state.mask, None
        if mask is not None:
            skipped = (~mask).sum(-1)  # (batch, 1): a text that begins later counts from there
            new = mask.new_ones(len(mask), 1, max(0, stop - mask.shape[-1]))
            mask = torch.cat([mask, new], dim=-1)[..., :stop]  # (batch, 1, stop)
        x = self.positional.add_to(self.token_embedding(tokens), start, skipped)
        try:
            return self._forward(x, [cache for (cache,) in state.caches], mask, weights=False).logits
        except BaseException:
            state.rewind(start)
            raise

    def _forward(self, x: Tensor, caches: list[Any], mask: Tensor | None, weights: bool) -> LMOutput:
        n = x.shape[-2]
        n_k = n if caches[0] is None else n + caches[0].length
        options = {"mask": mask, "causal": True, "weights": weights}
        options |= self.positional.attention_options(n, n_k, like=x)
        alphas = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, alpha = layer(x, cache=cache, **options)
            alphas.append(alpha)
        return LMOutput(self.lm_head(self.norm(x)), alphas)

    def _begun(self, source: Tensor) -> Tensor | None:
        """Where each text has begun, ``(batch, 1, n)``; None where all begin at once."""
        if self.config.pad is None:
            return None
        real = source != self.config.pad
        real[:, -1:] = True  # a text of one token, which may be the end
        begun = real.cummax(dim=1).values[:, None]
        return None if readable(begun) and begun.all() else begun

    def _check(self, tokens: Tensor, n_new: int = 0) -> None:
        check_tokens("tokens", tokens, self.config.n_tokens)
        n = tokens.shape[1] + n_new
        if n > self.config.n_max:
            raise ValueError(f"tokens must be at most n_max = {self.config.n_max} in all; got {n}")

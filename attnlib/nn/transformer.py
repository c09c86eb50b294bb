r"""The encoder–decoder Transformer, assembled from stacks of `attnlib.nn.layers`.

.. math:: \text{memory} = \text{Encoder}(x), \qquad
          \text{logits}_t = \text{Decoder}(y_{<t}, \text{memory})\, W_\text{out}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from attnlib._base.arrays import readable
from attnlib._base.checks import no_generate
from attnlib._base.renamed import RenamedWeights, moved, renamed
from attnlib.nn.config import TransformerConfig
from attnlib.nn.fast_decode import plan_decoding
from attnlib.nn.layers import NORMS
from attnlib.nn.positional import Positional
from attnlib.nn.saving import named
from attnlib.nn.settings import check_config
from attnlib.nn.stacks import Decoder, Encoder
from attnlib.nn.state import DecoderState, check_state
from attnlib.nn.tokens import check_tokens

if TYPE_CHECKING:
    from jaxtyping import Float, Int


__all__ = ["Transformer", "TransformerOutput"]


__getattr__ = moved(__name__, {"Translated": f"{__name__}.TransformerOutput"})


class Embedding(RenamedWeights, nn.Module):
    """Rows for tokens, with their positions."""

    renamed_weights: ClassVar[dict[str, str]] = {"table": "token_embedding"}

    def __init__(self, n_tokens: int, config: TransformerConfig, *, bidirectional: bool) -> None:
        super().__init__()
        d = config.d_model
        self.token_embedding = nn.Embedding(n_tokens, d)
        nn.init.normal_(self.token_embedding.weight, std=d**-0.5)
        self.scale = d**0.5 if config.scale_embeddings else 1.0
        self.positional = Positional(
            config.position,
            d_model=d,
            n_heads=config.n_heads,
            n_max=config.n_max,
            bidirectional=bidirectional,
            n_buckets=config.n_buckets,
            max_distance=config.max_distance,
        )
        self.norm = NORMS[config.norm](d, eps=config.eps) if config.norm_embeddings else nn.Identity()
        self.drop = nn.Dropout(config.dropout)

    def forward(self, tokens: Int[Tensor, "batch n"], start: int = 0) -> Float[Tensor, "batch n d_model"]:
        """The rows of ``tokens``, of which the first stands at position ``start``."""
        x = self.norm(self.positional.add_to(self.scale * self.token_embedding(tokens), start))
        return self.drop(x) if self.training else x


@named
class TransformerOutput(NamedTuple):
    """What `Transformer` returns: ``logits`` ``(batch, n, n_target)``, and the weights of every layer if asked for.

    >>> TransformerOutput._fields
    ('logits', 'encoder', 'decoder', 'cross')
    """

    logits: Tensor
    encoder: list[Tensor | None]
    decoder: list[Tensor | None]
    cross: list[Tensor | None]


class Transformer(RenamedWeights, nn.Module):
    r"""The encoder–decoder model: tokens in, a distribution over the next target token out, at every position.

    .. math:: p(y_t \mid y_{<t}, x) = \text{softmax}(z_t W_\text{out}), \qquad
              z_t = \text{Decoder}(y_{<t}, \text{Encoder}(x))_t

    Where the source equals ``config.pad`` it is padding, which nothing attends to; the target's padding stands behind
    all that is real, where the causal mask hides it. The target goes in shifted right: its first token is
    ``config.start``, as `shift_right` puts it there, and the logits at position ``t`` are for the token after it.

    Source: Vaswani et al. (2017), section 3.

    >>> model = Transformer(TransformerConfig(n_source=20, n_target=30, d_model=16, n_heads=4))
    >>> model(torch.randint(4, 20, (2, 7)), torch.randint(4, 30, (2, 5))).logits.shape
    torch.Size([2, 5, 30])
    """

    renamed_weights: ClassVar[dict[str, str]] = {"out": "lm_head"}

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        check_config(config, TransformerConfig)
        self.config = config
        self.source_embedding = Embedding(config.n_source, config, bidirectional=True)
        self.target_embedding = Embedding(config.n_target, config, bidirectional=False)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.lm_head = nn.Linear(config.d_model, config.n_target, bias=False)
        self.tie_weights()

    def tie_weights(self) -> None:
        """Make one table of those that ``config.tie`` says are one."""
        table = self.target_embedding.token_embedding.weight
        if self.config.tie in ("output", "all"):
            self.lm_head.weight = table
        if self.config.tie in ("inputs", "all"):
            self.source_embedding.token_embedding.weight = table

    def forward(
        self, source: Int[Tensor, "batch n_source"], target: Int[Tensor, "batch n"], *, weights: bool = False
    ) -> TransformerOutput:
        """Logits for every position of ``target``, all at once, each from the source and what stands before it.

        Raises ``TypeError`` or ``ValueError`` when tokens are not ``(batch, n)`` integers of the vocabulary, the
        batches differ or a position was not learned.
        """
        self._check(source=source, target=target)
        memory, mask, encoder_weights = self._encode(source, weights)
        n = target.shape[1]
        x = self.target_embedding(target)
        options = self.target_embedding.positional.attention_options(n, n, like=x)
        x, layers = self.decoder(x, memory, causal=True, memory_mask=mask, weights=weights, **options)
        own, cross = [layer.weights for layer in layers], [layer.cross_weights for layer in layers]
        return TransformerOutput(self._logits(x), encoder_weights, own, cross)

    if TYPE_CHECKING:
        __call__ = forward  # torch's takes and gives anything

    @torch.no_grad()
    def prefill(self, source: Int[Tensor, "batch n_source"], n_max: int) -> DecoderState:
        """Read the source once, and make room for ``n_max`` target positions, for `step`.

        What the decoder is, its modules, hooks and mode, is looked at here and holds for this text: a later change is
        for the next one. Only numbers that are changed in place, inside its weights, count at once.

        Raises as `forward`, and ``ValueError`` when so many positions were not learned.
        """
        self._check(source=source)
        self.target_embedding.positional.check(n_max)
        memory, mask, _ = self._encode(source, weights=False)
        caches = [layer.prefill(memory, n_max) for layer in self.decoder.layers]
        return DecoderState(caches, mask, plan_decoding(self.decoder))

    remember = renamed("prefill")
    generate = no_generate

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, "batch n"], state: DecoderState) -> Float[Tensor, "batch n n_target"]:
        """Logits after each of the next ``tokens``, which join those of earlier calls in ``state``.

        Raises ``ValueError`` when ``state`` has no room left; otherwise as `forward`.

        >>> model = Transformer(TransformerConfig(n_source=20, n_target=30, d_model=16, n_heads=4)).eval()
        >>> source, target = torch.randint(4, 20, (2, 7)), torch.randint(4, 30, (2, 5))
        >>> state = model.prefill(source, n_max=5)
        >>> logits = torch.cat([model.step(tokens, state) for tokens in target.split(1, dim=1)], dim=1)
        >>> torch.allclose(logits, model(source, target).logits, atol=1e-5)
        True
        """
        self._check(target=tokens)
        check_state(state, DecoderState)
        n, start = tokens.shape[1], state.length
        try:
            x = self.target_embedding(tokens, start)  # (batch, n, d_model)
            options = self.target_embedding.positional.attention_options(n, start + n, like=x)
            options["memory_mask"] = state.mask
            y = state.plan(x, state.caches, **options) if n == 1 and state.plan else None
            if y is None:  # the layers can do more, or name what is wrong
                state.rewind(start)
                y, _ = self.decoder(x, causal=True, caches=state.caches, **options)
            return self._logits(y)
        except BaseException:
            state.rewind(start)  # a step that failed was not made
            raise

    def _logits(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... n_target"]:
        return self.lm_head(x * self.config.d_model**-0.5 if self.config.scale_logits else x)

    def _encode(self, source: Tensor, weights: bool) -> tuple[Tensor, Tensor | None, list[Tensor | None]]:
        mask = (source != self.config.pad)[:, None]
        if readable(mask) and mask.all():
            mask = None  # a mask that hides nothing would cost as much as one that does
        x = self.source_embedding(source)
        options = self.source_embedding.positional.attention_options(source.shape[1], source.shape[1], like=x)
        memory, alphas = self.encoder(x, mask=mask, weights=weights, **options)
        return memory, mask, alphas

    def _check(self, **tokens: Tensor) -> None:
        for name, x in tokens.items():
            check_tokens(name, x, self.config.n_source if name == "source" else self.config.n_target)
        batches = [x.shape[0] for x in tokens.values()]
        if batches[0] != batches[-1]:
            raise ValueError(f"source and target must be one batch; got {batches} sequences")

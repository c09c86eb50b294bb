r"""T5: the encoder–decoder Transformer, with every task as text in and text out.

.. math:: s_{hij} = q_i \cdot k_j + b_{h,\, \text{bucket}(i - j)}, \qquad
          \text{logits}_t = \text{Decoder}(y_{<t}, \text{Encoder}(x))_t \, E^\top / \sqrt{d_\text{model}}
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from attnlib.models.configs import T5Config
from attnlib.models.loading import FromHuggingFace
from attnlib.models.published import t5
from attnlib.nn.transformer import Transformer

__all__ = ["T5"]


class T5(FromHuggingFace, Transformer):
    r"""A `Transformer` with the choices of T5; it is trained, and writes, as any other.

    .. math:: \text{norm}(x) = \frac{x}{\text{rms}(x)} \odot g, \qquad s_{hij} = q_i \cdot k_j + b_{h,\,
              \text{bucket}(i - j)}, \qquad \text{logits} = z E^\top / \sqrt{d_\text{model}}

    Pre-norm layers without biases, normalised by their root mean square; scores without a scale, with a learned bias
    for each distance, the same in all layers; one table for source, target and output (of version 1.1: another for
    the output, without the last root). The first token of a target is ``config.start``, which is the padding.

    Source: Raffel et al. (2020), section 2.1.

    >>> import torch
    >>> model = T5(T5Config(n_tokens=20, d_model=16, n_heads=4))
    >>> model(torch.randint(3, 20, (2, 7)), torch.randint(3, 20, (2, 5))).logits.shape
    torch.Size([2, 5, 20])
    """

    architectures: ClassVar[dict[str, Any]] = {"t5": t5}

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        # Without a root in the scores, it is in the queries' first weights; those of a table are as large as rows are.
        for name, weight in self.named_parameters():
            if name.endswith("token_embedding.weight"):
                nn.init.normal_(weight, std=1.0)
        for module in self.modules():
            if hasattr(module, "sizes"):
                nn.init.normal_(module.w_q.data, std=(config.d_model * module.d_head) ** -0.5)

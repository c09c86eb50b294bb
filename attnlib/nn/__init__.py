"""Modules of torch: heads, layers, the Transformer, and the recurrent networks before it.

They may use `attnlib.core`, `attnlib.positions` and `attnlib.data`; nothing here trains or searches.

They compile into one graph, and export with batch and length open, by `torch.export` and ``torch.onnx.export(…,
dynamo=True)``. Where a saved graph is loaded, ``import attnlib.nn``, or `attnlib.models`, says what its tuples are. A
graph does not look at numbers: a NaN or a token that is none is not named there.

>>> import torch
>>> from torch.export import Dim, export
>>> open_sizes = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
>>> layer = EncoderLayer(8, 2, 32).eval()
>>> graph = export(layer, (torch.randn(2, 5, 8),), dynamic_shapes=(open_sizes,)).module()
>>> x = torch.randn(3, 7, 8)
>>> torch.allclose(graph(x).out, layer(x).out, atol=1e-6)
True
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.nn.cache import Cache
from attnlib.nn.config import TransformerConfig
from attnlib.nn.feed_forward import FeedForward
from attnlib.nn.heads import MultiHeadAttention, merge_heads, split_heads
from attnlib.nn.layers import DecoderLayer, EncoderLayer, Residual
from attnlib.nn.positional import LearnedPositions, Positional, RelativeBias
from attnlib.nn.recurrent import Seq2Seq
from attnlib.nn.segments import RelativeAttention, SegmentLayer, Segments, SegmentStack
from attnlib.nn.stacks import Decoder, Encoder
from attnlib.nn.tokens import shift_right
from attnlib.nn.transformer import Transformer

__all__ = [
    "Cache",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LearnedPositions",
    "MultiHeadAttention",
    "Positional",
    "RelativeAttention",
    "RelativeBias",
    "Residual",
    "SegmentLayer",
    "SegmentStack",
    "Segments",
    "Seq2Seq",
    "Transformer",
    "TransformerConfig",
    "merge_heads",
    "shift_right",
    "split_heads",
]

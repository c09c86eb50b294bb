"""Modules of torch: heads, layers, the Transformer, and the recurrent networks before it.

They may use `attnlib.core`, `attnlib.positions` and `attnlib.data`; nothing here trains or searches.
"""

import attnlib._needs.torch  # noqa: F401
from attnlib.nn.cache import Cache
from attnlib.nn.config import TransformerConfig
from attnlib.nn.heads import MultiHeadAttention
from attnlib.nn.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from attnlib.nn.positional import LearnedPositions, Positional, RelativeBias
from attnlib.nn.projection import merge_heads, split_heads
from attnlib.nn.recurrent import Seq2Seq, shift_right
from attnlib.nn.segments import RelativeAttention, SegmentLayer, Segments, SegmentStack
from attnlib.nn.stacks import Decoder, Encoder
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

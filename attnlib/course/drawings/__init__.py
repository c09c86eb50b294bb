"""Drawings that are shown in one lesson each, made with the charts and the diagram kit of `attnlib.plotting`.

Each is one call, and comes with words for those who cannot see it.
"""

import attnlib._base.needs.matplotlib  # noqa: F401
from attnlib.course.drawings.attending import attention_diagram
from attnlib.course.drawings.caching import cache_diagram
from attnlib.course.drawings.head_splitting import heads_diagram
from attnlib.course.drawings.joining import joins_diagram
from attnlib.course.drawings.masking import mask_diagram
from attnlib.course.drawings.paths import paths_diagram
from attnlib.course.drawings.picture_models import clip_diagram, dalle_diagram, flamingo_diagram
from attnlib.course.drawings.planes import clocks, moves, two_vectors
from attnlib.course.drawings.readers import detr_diagram, vit_diagram
from attnlib.course.drawings.self_attending import self_attention_diagram
from attnlib.course.drawings.sharing import shares_diagram
from attnlib.course.drawings.shifting import shift_diagram
from attnlib.course.drawings.translating import translator_diagram
from attnlib.course.drawings.worked import worked_attention

__all__ = [
    "attention_diagram",
    "cache_diagram",
    "clip_diagram",
    "clocks",
    "dalle_diagram",
    "detr_diagram",
    "flamingo_diagram",
    "heads_diagram",
    "joins_diagram",
    "mask_diagram",
    "moves",
    "paths_diagram",
    "self_attention_diagram",
    "shares_diagram",
    "shift_diagram",
    "translator_diagram",
    "two_vectors",
    "vit_diagram",
    "worked_attention",
]

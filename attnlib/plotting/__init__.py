"""Pictures: charts, maps of weights, drawings. Each is one call and comes with words for those who cannot see it.

They know arrays and nothing else of the package. A model that is to be drawn comes as an argument, and what the
drawing says of it is what one forward pass showed.
"""

import attnlib._needs.matplotlib  # noqa: F401
from attnlib.plotting.architectures import layer_diagram, transformer_diagram
from attnlib.plotting.attending import attention_diagram
from attnlib.plotting.boxed import boxed
from attnlib.plotting.caching import cache_diagram
from attnlib.plotting.charts import lines, runs, scatter, weighted_points
from attnlib.plotting.colour_images import colour_images
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.estimates import curves_and_weights
from attnlib.plotting.head_splitting import heads_diagram
from attnlib.plotting.joining import joins_diagram
from attnlib.plotting.maps import attention_sheet, images, signed_map, strongest_keys, surfaces, weight_map
from attnlib.plotting.masking import mask_diagram
from attnlib.plotting.paths import paths_diagram
from attnlib.plotting.picture import INK, KEY, OUTPUT, PALE, QUERY, VALUE, Picture
from attnlib.plotting.picture_models import clip_diagram, dalle_diagram, flamingo_diagram
from attnlib.plotting.planes import clocks, moves, two_vectors
from attnlib.plotting.readers import detr_diagram, vit_diagram
from attnlib.plotting.self_attending import self_attention_diagram
from attnlib.plotting.sharing import shares_diagram
from attnlib.plotting.shifting import shift_diagram
from attnlib.plotting.tables import matrices
from attnlib.plotting.translating import translator_diagram
from attnlib.plotting.worked import worked_attention

__all__ = [
    "INK",
    "KEY",
    "OUTPUT",
    "PALE",
    "QUERY",
    "VALUE",
    "Diagram",
    "Picture",
    "attention_diagram",
    "attention_sheet",
    "boxed",
    "cache_diagram",
    "clip_diagram",
    "clocks",
    "colour_images",
    "curves_and_weights",
    "dalle_diagram",
    "detr_diagram",
    "flamingo_diagram",
    "heads_diagram",
    "images",
    "joins_diagram",
    "layer_diagram",
    "lines",
    "mask_diagram",
    "matrices",
    "moves",
    "paths_diagram",
    "runs",
    "scatter",
    "self_attention_diagram",
    "shares_diagram",
    "shift_diagram",
    "signed_map",
    "strongest_keys",
    "surfaces",
    "transformer_diagram",
    "translator_diagram",
    "two_vectors",
    "vit_diagram",
    "weight_map",
    "weighted_points",
    "worked_attention",
]

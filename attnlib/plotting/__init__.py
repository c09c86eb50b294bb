"""Pictures: charts, maps of weights, drawings. Each is one call and comes with words for those who cannot see it.

They know arrays and nothing else of the package. A model that is to be drawn comes as an argument, and what the
drawing says of it is what one forward pass showed.
"""

import attnlib._base.needs.matplotlib  # noqa: F401
from attnlib._base.renamed import moved
from attnlib.plotting.architectures import layer_diagram, transformer_diagram
from attnlib.plotting.boxed import boxed
from attnlib.plotting.charts import bars, lines, runs, scatter, weighted_points
from attnlib.plotting.colour_images import colour_images
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.estimates import curves_and_weights
from attnlib.plotting.maps import attention_sheet, images, signed_map, strongest_keys, surfaces, weight_map
from attnlib.plotting.picture import INK, KEY, OUTPUT, PALE, QUERY, VALUE, Picture
from attnlib.plotting.tables import matrices

__all__ = [
    "INK",
    "KEY",
    "OUTPUT",
    "PALE",
    "QUERY",
    "VALUE",
    "Diagram",
    "Picture",
    "attention_sheet",
    "bars",
    "boxed",
    "colour_images",
    "curves_and_weights",
    "images",
    "layer_diagram",
    "lines",
    "matrices",
    "runs",
    "scatter",
    "signed_map",
    "strongest_keys",
    "surfaces",
    "transformer_diagram",
    "weight_map",
    "weighted_points",
]

#: Drawings of one lesson each have moved to the course.
__getattr__ = moved(
    __name__,
    {
        name: f"attnlib.course.drawings.{name}"
        for name in (
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
        )
    },
)

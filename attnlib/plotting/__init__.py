"""Pictures: charts, maps of weights, drawings. Each is one call and comes with words for those who cannot see it.

They know arrays and nothing else of the package. A model that is to be drawn comes as an argument, and what the
drawing says of it is what one forward pass showed.
"""

from attnlib.plotting.architectures import layer_diagram, transformer_diagram
from attnlib.plotting.attending import attention_diagram
from attnlib.plotting.charts import lines, runs, scatter, weighted_points
from attnlib.plotting.diagrams import Diagram
from attnlib.plotting.estimates import curves_and_weights
from attnlib.plotting.maps import images, matrices, signed_map, strongest_keys, surfaces, weight_map
from attnlib.plotting.picture import INK, KEY, OUTPUT, PALE, QUERY, VALUE, Picture
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
    "worked_attention",
]

"""Pictures: charts, maps of weights, drawings. Each is one call and comes with words for those who cannot see it.

They know arrays and nothing else of the package.
"""

from attnlib.plotting.charts import lines, runs, scatter, weighted_points
from attnlib.plotting.maps import images, matrices, signed_map, surfaces, weight_map
from attnlib.plotting.picture import INK, KEY, OUTPUT, PALE, QUERY, VALUE, Picture

__all__ = [
    "INK",
    "KEY",
    "OUTPUT",
    "PALE",
    "QUERY",
    "VALUE",
    "Picture",
    "images",
    "lines",
    "matrices",
    "runs",
    "scatter",
    "signed_map",
    "surfaces",
    "weight_map",
    "weighted_points",
]

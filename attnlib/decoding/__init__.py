"""Writing with a model, token by token: the likeliest, by beams, by chance, or as a stream.

It takes any model that can `prefill` a source and `step`; it knows no model by name.
"""

import attnlib._base.needs.torch  # noqa: F401
from attnlib.decoding.beam_search import BeamSearchResult
from attnlib.decoding.sampling import probabilities
from attnlib.decoding.strategies import beam, greedy, sample, stream

__all__ = ["BeamSearchResult", "beam", "greedy", "probabilities", "sample", "stream"]

"""What shapes broadcast to, and the checks that ask it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from attnlib._backend import Array

__all__ = ["Shape", "broadcast_shapes", "check_broadcast", "check_leading"]

Shape = tuple[int, ...]


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape that ``shapes`` broadcast to, or a ``ValueError``.

    >>> broadcast_shapes((8, 1), (3,))
    (8, 3)
    """
    return _broadcast(*map(tuple, shapes))


@lru_cache  # asked several times in every call of `attention`, and in decoding always the same
def _broadcast(*shapes: Shape) -> Shape:
    longest = max(map(len, shapes), default=0)
    padded = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(others.pop() if others else 1)
    return tuple(result)


def check_broadcast(name: str, x: Array, scores_shape: Sequence[int]) -> None:
    """Raise unless ``x`` broadcasts to scores of ``scores_shape`` (batch, n_q, n_k), and may add batch axes."""
    *lead, n_q, n_k = scores_shape
    rows, columns = (1, 1, *x.shape)[-2:]
    try:
        broadcast_shapes(x.shape[:-2], lead)
    except ValueError:
        fits = False
    else:
        fits = rows in (1, n_q) and columns in (1, n_k)
    if not fits:
        raise ValueError(
            f"{name} must broadcast to the scores, (..., n_q, n_k) = {tuple(scores_shape)}; got {tuple(x.shape)}"
        )


def check_leading(**arrays: Array) -> None:
    """Raise unless the axes before the last two broadcast."""
    if all(x.ndim == 2 for x in arrays.values()):
        return
    try:
        broadcast_shapes(*(x.shape[:-2] for x in arrays.values()))
    except ValueError:
        got = ", ".join(f"{name} {tuple(x.shape)}" for name, x in arrays.items())
        raise ValueError(f"the leading (batch) axes of {', '.join(arrays)} must broadcast; got {got}") from None

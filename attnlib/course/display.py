"""What a lesson shows as text: numbers rounded so that every machine prints the same, and the code itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlib._base.arrays import Array, is_torch
from attnlib.course.columns import Table, in_columns
from attnlib.course.source import in_notebook, markdown, source_of

if TYPE_CHECKING:
    from IPython.display import Markdown

__all__ = ["check_close", "show", "show_source"]


def show(
    digits: int = 3,
    *,
    percent: bool = False,
    columns: str | Sequence[object] = (),
    **values: Array | float | str | Sequence[object],
) -> None:
    """Print each value under its name, arrays with their shape, rounded; no number is ever ``-0``.

    Three digits at most are the same on every machine; more may not be. With ``percent`` values are shares, one
    or several in a row, and printed in whole per cent.

    With ``columns`` values are the rows of a table, whose columns have these names, or one name and a number each,
    from 0; in a notebook it is drawn. A single number beside rows is of no column, and stands alone.

    Raises
    ------
    ValueError
        If a row has not one value for each column, or nothing has a name.

    Examples
    --------
    >>> show(weights=np.array([[0.25, 0.75]]), total=1.0)
    weights (1, 2)
    [[0.25 0.75]]
    total   1.0
    >>> show(digits=1, runs=[0.25, 1.0])
    runs [0.2, 1.0]
    >>> show(percent=True, columns="run", right=[0.046, 1.0], guessing=1 / 26)
           run 0  run 1
    right    5 %  100 %
    guessing: 4 %
    >>> show(digits=1, columns=["8 facts", "64 facts"], loss=[0.25, 1.0])
          8 facts  64 facts
    loss      0.2       1.0
    """
    if not values:
        raise ValueError("values: none came. Give each a name: show(weights=weights).")
    if columns:
        _draw(in_columns(columns, {name: _words(value, digits, percent) for name, value in values.items()}))
        return
    width = max(map(len, values))
    for name, value in values.items():
        x = _to_numpy(value)
        if percent:
            print(name.ljust(width), ", ".join(f"{_percent(share):>5}" for share in x.reshape(-1)))
        elif isinstance(value, tuple) or x.dtype.kind not in "fiu":
            print(name.ljust(width), value)
        elif x.ndim == 0:
            print(name.ljust(width), f"{float(x) + 0.0:,.0f}" if digits == 0 else _rounded(_wide(x), digits).item())
        elif isinstance(value, list) and x.ndim == 1:
            print(name.ljust(width), _rounded(_wide(x), digits).tolist())
        else:
            print(name.ljust(width), x.shape)
            print(np.array2string(_rounded(x, digits), max_line_width=100, suppress_small=True, threshold=200))


def check_close(by_hand: Array, library: Array, tolerance: float = 1e-10) -> None:
    """Say that two results agree, or raise ``AssertionError`` with the largest difference.

    ``tolerance`` is absolute, in the units of the numbers. NaN agrees with NaN.

    >>> check_close(np.array([0.1 + 0.2]), np.array([0.3]))
    Equal, to within 1e-10.
    """
    a, b = _to_numpy(by_hand), _to_numpy(library)
    if a.shape != b.shape:
        raise AssertionError(f"by_hand has shape {a.shape}, library {b.shape}")
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        raise AssertionError(
            f"by_hand has {_not_finite(a)} entries that are NaN or infinite, library {_not_finite(b)}"
        )
    if not np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True):
        raise AssertionError(f"they differ by up to {np.nanmax(np.abs(a - b)):.3g}, more than {tolerance:g}")
    print(f"Equal, to within {tolerance:g}.")


def show_source(function: Callable[..., object] | type) -> Markdown:
    """The source code of ``function``, as it runs, without its docstring. For a notebook's last line.

    >>> from attnlib import causal
    >>> show_source(causal).data.splitlines()[1]
    '# attnlib/masks.py'
    """
    home = f"{function.__module__.replace('.', '/')}.py"
    return markdown(f"# {home}\n{source_of(function)}")


def _to_numpy(x: Array | float | str | Sequence[object]) -> np.ndarray:
    if isinstance(x, list | tuple) and any(map(is_torch, x)):  # they may have gradients
        x = [_to_numpy(one) for one in x]
    return x.detach().cpu().numpy() if is_torch(x) else np.asarray(x)


def _wide(x: np.ndarray) -> np.ndarray:
    """In double precision, where a rounded number prints as short as it is."""
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def _percent(share: np.ndarray) -> str:
    return f"{100 * np.round(share, 2).item() + 0.0:.0f} %"


def _words(value: Array | float | str | Sequence[object], digits: int, percent: bool) -> list[str] | str:
    """A value, or a row of values, as a table has them: one below the other, each with as many digits."""
    x = _to_numpy(value)
    if x.ndim:
        return [str(_words(one, digits, percent)) for one in x.reshape(-1)]
    if x.dtype.kind not in "fiu":
        return str(x)
    if percent:
        return _percent(x)
    return f"{_rounded(_wide(x), digits).item():,.{digits}f}" if x.dtype.kind == "f" else f"{x.item():,}"


def _draw(table: Table) -> None:
    if not in_notebook():
        print(table)
        return
    from IPython.display import display

    display(table)


def _rounded(x: np.ndarray, digits: int) -> np.ndarray:
    return np.round(x, digits) + 0.0 if x.dtype.kind == "f" else x


def _not_finite(x: np.ndarray) -> int:
    return int(np.sum(~np.isfinite(x)))

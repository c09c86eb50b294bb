"""Probes as a plugin of pytest: three lines test a module for what it promises.

It is no entry point, so that installing `attnlib` loads torch into nobody's tests; those who want it say so in their
``conftest.py``, and ask for `check_probes` in a test::

    pytest_plugins = ["attnlib.probes.pytest"]


    def test_my_encoder(check_probes):
        layer = MyEncoder(d_model=16, n_heads=2)
        check_probes(layer, torch.randn(4, 6, 16), causality=False, permutation=True)

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from attnlib._base.checks import check_one_of
from attnlib.probes.behaviour import batch_independence, causality, padding, permutation
from attnlib.probes.parameters import gradients
from attnlib.probes.report import Report

if TYPE_CHECKING:
    from jaxtyping import Shaped
    from torch import Tensor

__all__ = ["check"]


def check(
    model: Callable,
    x: Shaped[Tensor, "batch n ..."],
    *,
    batch_independence: bool | None = True,
    gradients: bool | None = True,
    causality: bool | None = None,
    permutation: bool | None = None,
    padding: Sequence[int] | None = None,
    masked: Callable | None = None,
    n_heads: int | None = None,
    expect_zero: Sequence[str] = (),
    **options: Any,
) -> dict[str, Report]:
    """Probe ``model`` at ``x``, and raise an ``AssertionError`` with all findings that are not as promised.

    ``causality``, ``permutation`` (is it equivariant?), ``batch_independence`` and ``gradients`` say what is promised:
    True that it holds, False that it does not, None that it is not asked. ``padding`` gives the lengths of the
    sequences, and asks ``masked(x, real)``, or ``model(x, real)``, whether it ignores what stands behind them, with
    ``n_heads`` sequences where that is given. ``expect_zero`` names parameters without a gradient; other ``options``,
    as ``tolerance``, ``training``, ``random`` (numbers may be drawn in eval mode too) or ``n_tokens``, go to every
    probe that has them. The reports are returned.

    Raises ``ValueError`` for a promise that is neither of these, ``TypeError`` for an option of no probe.

    >>> import torch
    >>> sorted(check(torch.nn.Linear(4, 4), torch.randn(3, 5, 4), causality=True, permutation=True))
    ['batch_independence', 'causality', 'gradients', 'permutation']
    >>> check(torch.nn.Linear(4, 4), torch.randn(3, 5, 4), causality=False)
    Traceback (most recent call last):
    AssertionError: causality: promised False. Causal: no output changes when a later input does (5 positions).
    """
    promised = dict(
        causality=causality, permutation=permutation, batch_independence=batch_independence, gradients=gradients
    )
    for name, value in promised.items():
        check_one_of(name, value if value is None else str(value), ("True", "False", None))
    if padding is None and (masked is not None or n_heads is not None):
        raise ValueError("padding must give the lengths of the sequences where masked or n_heads is given; got None")
    promised |= {"padding": None if padding is None else True}
    known = {name for probe in _PROBES.values() for name in probe.__wrapped__.__kwdefaults__}
    if unknown := [name for name in options if name not in known]:
        raise TypeError(f"options must be those of a probe; got {unknown[0]!r}")
    special = {
        "padding": partial(_PROBES["padding"], masked or model, lengths=padding, n_heads=n_heads),
        "gradients": partial(_PROBES["gradients"], model, expect_zero=expect_zero),
    }
    found = {}
    for name in (name for name, value in promised.items() if value is not None):
        probe = special.get(name) or partial(_PROBES[name], model)
        taken = _PROBES[name].__wrapped__.__kwdefaults__
        found[name] = probe(x=x, **{option: value for option, value in options.items() if option in taken})
    broken = [f"{name}: promised {promised[name]}. {report}" for name, report in found.items() if
              report.ok != promised[name] or not report.fit]  # fmt: skip
    if broken:
        __tracebackhide__ = True  # pytest shows the test that failed, not this function
        raise AssertionError("\n".join(broken))
    return found


_PROBES: dict[str, Any] = {
    probe.__name__: probe for probe in (causality, padding, permutation, batch_independence, gradients)
}


@pytest.fixture(scope="session")
def check_probes() -> Callable[..., dict[str, Report]]:
    """The function `check`: ``check_probes(model, x, causality=True, padding=[6, 4, 2, 1])``."""
    return check

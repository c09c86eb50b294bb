"""Every comparison of `parity.py` is within its bound, and on the page."""

from __future__ import annotations

import parity
import pytest


@pytest.mark.parametrize("comparison", parity.ALL, ids=lambda p: p.ours.replace("`", ""))
def test_agrees(comparison):
    assert comparison.difference() <= comparison.bound


@pytest.mark.parametrize("comparison", parity.ALL, ids=lambda p: p.ours.replace("`", ""))
def test_stands_on_the_page(comparison):
    page = parity.PAGE.read_text(encoding="utf-8")
    assert parity.row(comparison) in page, "notebooks/PARITY.md is not current: make parity"
    assert page.count("\n| `") == len(parity.ALL), "notebooks/PARITY.md has rows of its own: make parity"

"""The plugin, in tests of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from attnlib.probes.pytest import check

pytest_plugins = ["pytester"]

STRANGER = """
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self, leak=0.0, blind=False):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.leak, self.blind = leak, blind

        def forward(self, x, real=None):
            mask = None if real is None or self.blind else ~real
            return self.layer(x, src_key_padding_mask=mask) + self.leak * x.mean(0)
"""


@pytest.fixture
def tested(pytester):
    def run(lines):
        pytester.makeconftest('pytest_plugins = ["attnlib.probes.pytest"]')
        pytester.makepyfile(stranger=STRANGER)
        pytester.makepyfile(test_it=f"import torch\nfrom stranger import Encoder\n{lines}")
        return pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")

    return run


def test_three_lines_test_a_strangers_module(tested):
    tested("""
def test_encoder(check_probes):
    layer, x = Encoder(), torch.randn(3, 6, 8)
    check_probes(layer, x, causality=False, permutation=True, padding=[6, 4, 2], n_heads=2)
""").assert_outcomes(passed=1)


def test_what_is_broken_is_named_with_its_promise(tested):
    result = tested("""
def test_encoder(check_probes):
    layer, x = Encoder(leak=0.1, blind=True), torch.randn(3, 6, 8)
    check_probes(layer, x, causality=True, permutation=False, padding=[6, 4, 2])
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*causality: promised True. Position 0 reads position 1: not causal*",
        "*permutation: promised False. Equivariant*",
        "*batch_independence: promised True. Sequence 0 reads sequence 1*",
        "*padding: promised True. Position 0 of sequence 1 reads padding position 4*",
    ])  # fmt: skip


def test_a_parameter_without_gradient_is_named():
    layer = nn.Linear(4, 4)
    layer.idle = nn.Parameter(torch.ones(2))
    with pytest.raises(
        AssertionError, match=r"gradients: promised True\. No gradient reaches 1 of 3 parameters: idle"
    ):
        check(layer, torch.randn(2, 3, 4))
    assert check(layer, torch.randn(2, 3, 4), expect_zero=["idle"])["gradients"]
    assert "gradients" not in check(layer, torch.randn(2, 3, 4), gradients=None)
    table = nn.Embedding(5, 4)
    assert check(table, torch.randint(5, (2, 3)), n_tokens=5, causality=True)["causality"]


def test_dropout_in_eval_mode_breaks_every_promise():
    layer, x = nn.Linear(4, 4), torch.randn(2, 3, 4)

    def never_off(x):
        return nn.functional.dropout(layer(x), 0.3)

    with pytest.raises(
        AssertionError, match=r"causality: promised True\. The model draws random numbers in eval mode"
    ):
        check(never_off, x, causality=True)
    with pytest.raises(AssertionError, match=r"causality: promised False\. The model draws random numbers"):
        check(never_off, x, causality=False, batch_independence=None, gradients=None)
    assert check(never_off, x, causality=True, random=True)["causality"]


def test_bad_promises_are_named():
    layer, x = nn.Linear(4, 4), torch.randn(2, 3, 4)
    with pytest.raises(ValueError, match="causality must be one of 'True', 'False', None; got 'yes'"):
        check(layer, x, causality="yes")
    with pytest.raises(ValueError, match="padding must give the lengths"):
        check(layer, x, n_heads=2)
    with pytest.raises(TypeError, match="options must be those of a probe; got 'speed'"):
        check(layer, x, speed=2)


def test_a_pytest_that_does_not_ask_loads_no_torch():
    assert "pytest11" not in (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")

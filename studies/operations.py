"""How the pages of ``make studies`` count work."""

from __future__ import annotations

from collections.abc import Callable

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def operations(compute: Callable[[], object]) -> int:
    """Multiplications and additions; attention is computed in steps, as torch counts none of its fused kernel's."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops()

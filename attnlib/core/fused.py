"""Attention by torch's own kernel, which never holds the weights: where the speed on a whole sequence comes from.

The numbers are those of `attnlib.core.attention`; who wants to know how they come about need not read this file.
"""

from __future__ import annotations

from math import inf, isfinite, prod
from typing import TYPE_CHECKING

from torch.autograd import forward_ad
from torch.compiler import is_exporting
from torch.nn.functional import scaled_dot_product_attention

from attnlib import masks
from attnlib._base.arrays import Library, Shape, broadcast_shapes, is_boolean, tracing, transforms
from attnlib.core.arguments import check_numbers
from attnlib.core.batched import batched

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["fused"]


def fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    bias: Tensor | None,
    dropout: float,
    library: Library,
) -> Tensor | None:
    """What `attnlib.attention` gives with the scaled dot product; None where the kernel cannot.

    It turns an infinite score into NaN, and has a first derivative alone, and not in forward mode. A mask is handed
    over before it is broadcast, since the kernel turns each of its booleans into a number.
    """
    around = [] if tracing() else transforms()
    if forward_ad._current_level >= 0 or around.count("Grad") > 1:
        return None
    is_batched = bool(around) and not dropout and bias is None
    if "Vmap" in around and not is_batched:
        return None
    n_q, n_k = q.shape[-2], k.shape[-2]
    if n_q < 2:  # a single query stands at the last key, and sees them all
        causal = False
    if causal and not (mask is bias is None and n_q == n_k):  # the kernel's own causal mask is for squares, alone
        mask, causal = masks.combine(masks.causal(n_q, n_k, like=q), mask), False
    allowed = mask if bias is None else bias if mask is None else bias.where(mask, -inf)
    lead = q.shape[:-2]
    if allowed is not None or not (q.ndim == k.ndim == v.ndim and lead == k.shape[:-2] == v.shape[:-2]):
        lead = broadcast_shapes(*[x.shape[:-2] for x in (q, k, v, allowed) if x is not None])
    grouped = len(lead) > 1 and lead[-1] > 1 and k.shape[-3:-2] == v.shape[-3:-2] == (1,)
    kv_lead = lead
    if grouped:  # keys and values serve a group of heads each, by broadcasting: the kernel need not copy them for it
        k, v = k.squeeze(-3), v.squeeze(-3)  # (..., n_kv_heads, 1, n_k, d) -> (..., n_kv_heads, n_k, d)
        kv_lead = lead[:-1]
    if allowed is not None:
        allowed = _four_axes(allowed, lead, 1 + grouped, spread=False)
        if allowed.shape[-1] == 1 != n_k:  # the kernels of a GPU want one number a key
            allowed = allowed.expand(*allowed.shape[:-1], n_k).contiguous()
    arrays = _four_axes(q, lead, 1 + grouped), _four_axes(k, kv_lead), _four_axes(v, kv_lead)
    if is_batched:
        out = batched(*arrays, allowed, causal, grouped)
    else:  # (batch, heads, n_q, d_v)
        out = scaled_dot_product_attention(
            *arrays, attn_mask=allowed, dropout_p=dropout, is_causal=causal, enable_gqa=grouped
        )
    if allowed is not None and (is_exporting() or out.is_cuda):  # where no key is left, some kernels give a mean
        out = out.where((allowed if is_boolean(allowed) else allowed > -inf).any(-1, keepdim=True), 0.0)
    if library.readable and _suspicious(out.detach() if out.requires_grad else out):
        check_numbers(q, k, v, library)
        if not out.isfinite().all():
            return None
    if not lead:
        return out.flatten(0, 2)
    return out if out.shape[:-2] == lead else out.reshape(*lead, *out.shape[-2:])


def _suspicious(out: Tensor) -> bool:
    """May an input have held NaN? A look at the output, which is smaller than they are, tells.

    NaN shows in its sum, or in a row of zeros: so the kernel answers a query for which there is nothing to attend to,
    and on some machines one whose every score is NaN.
    """
    if out.numel() == 0 or not isfinite(out.sum().item()):
        return True
    first = out.select(-1, 0)
    return int(first.count_nonzero()) < first.numel()


def _four_axes(x: Tensor, lead: Shape, heads: int = 1, *, spread: bool = True) -> Tensor:
    """``(batch, heads, rows, columns)``, the last of ``lead`` being heads; without ``spread``, ones stay ones."""
    if heads == 1 and len(lead) == 2 and x.ndim == 4 and (not spread or x.shape[:-2] == lead):
        return x
    if not lead:
        return x[(None,) * (4 - x.ndim)]
    cut = max(len(lead) - heads, 0)
    batch, own = lead[:cut], lead[cut:]
    if x.ndim != len(lead) + 2 or x.shape[:-2] != lead:  # in this order: sizes of other axes say nothing of a batch
        x = x[(None,) * (len(lead) + 2 - x.ndim)]
        if not spread:
            batch = batch if prod(x.shape[:cut]) > 1 else x.shape[:cut]
            own = own if prod(x.shape[cut:-2]) > 1 else x.shape[cut:-2]
        x = x.expand(*batch, *own, *x.shape[-2:])
    return x.reshape(prod(batch), prod(own), *x.shape[-2:])

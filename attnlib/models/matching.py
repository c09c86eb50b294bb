r"""Which prediction answers for which object: the matching that makes a loss of two sets.

.. math:: \hat\sigma = \arg\min_\sigma \sum_i
          -p_{\sigma(i)}(c_i) + 5\, \|b_i - b_{\sigma(i)}\|_1 - 2\, \text{GIoU}(b_i, b_{\sigma(i)})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from attnlib._base.checks import check_floats, check_positive

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["corners", "generalised_iou", "match", "set_loss"]

KIND, PLACE, OVERLAP = 1.0, 5.0, 2.0  # what a wrong kind, a wrong place and a missing overlap cost


def corners(boxes: Float[Tensor, "... 4"]) -> Float[Tensor, "... 4"]:
    """Boxes given by middle, width and height, as left, top, right and bottom.

    >>> corners(torch.tensor([0.5, 0.5, 0.2, 0.4])).round(decimals=2)
    tensor([0.4000, 0.3000, 0.6000, 0.7000])
    """
    middle, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([middle - half, middle + half], dim=-1)


def generalised_iou(a: Float[Tensor, "... 4"], b: Float[Tensor, "... 4"]) -> Float[Tensor, ...]:
    r"""Overlap over union of two boxes, less the share of the smallest box around both that neither fills.

    .. math:: \text{GIoU} = \frac{|A \cap B|}{|A \cup B|} - \frac{|C| - |A \cup B|}{|C|}

    1 for one box, 0 and down to -1 for boxes that are apart. Boxes are given by middle, width and height.

    Source: Rezatofighi et al. (2019), *Generalized Intersection over Union*.

    >>> boxes = torch.tensor([[0.1, 0.1, 0.2, 0.2], [0.7, 0.1, 0.2, 0.2]])
    >>> generalised_iou(boxes[0], boxes)
    tensor([ 1.0000, -0.5000])
    """
    a, b = corners(a), corners(b)
    inside = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    around = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(-1)
    union = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - inside
    return inside / union - (around - union) / around


@torch.no_grad()
def match(
    logits: Float[Tensor, "batch n_queries n_classes_1"],
    boxes: Float[Tensor, "batch n_queries 4"],
    kinds: Int[Tensor, "batch n_objects"],
    targets: Float[Tensor, "batch n_objects 4"],
) -> Int[Tensor, "batch n_objects"]:
    r"""Which query answers for each object, so that all together cost least; -1 where there is no object.

    .. math:: \hat\sigma = \arg\min_\sigma \sum_i
              -p_{\sigma(i)}(c_i) + 5\, \|b_i - b_{\sigma(i)}\|_1 - 2\, \text{GIoU}(b_i, b_{\sigma(i)})

    ``kinds`` are classes; the last class of the ``logits``, "no object", fills up. No query answers for two.

    Raises ``ValueError`` when the shapes do not fit, there are more objects than queries or a cost is not a number.

    Source: Carion et al. (2020), section 3.1; Kuhn (1955) for the first algorithm. That of
    `scipy.optimize.linear_sum_assignment` is a later one.

    >>> boxes = torch.tensor([[[0.9, 0.9, 0.2, 0.2], [0.2, 0.2, 0.2, 0.2], [0.5, 0.5, 0.5, 0.5]]])
    >>> match(torch.zeros(1, 3, 5), boxes, torch.tensor([[2, 0, 4]]), boxes[:, [1, 0, 2]] + 0.1)
    tensor([[ 1,  0, -1]])
    """
    from scipy.optimize import linear_sum_assignment  # it takes a while to import

    _check(logits, boxes, kinds, targets)
    real = kinds < logits.shape[-1] - 1
    p = logits.softmax(-1).gather(-1, kinds[:, None].expand(-1, logits.shape[1], -1))
    a, b = boxes[:, :, None], targets[:, None]  # (batch, n_queries, n_objects, 4)
    costs = PLACE * (a - b).abs().sum(-1) - KIND * p - OVERLAP * generalised_iou(a, b)
    costs = costs.masked_fill(~real[:, None], 0).cpu()
    if not costs.isfinite().all():
        raise ValueError("logits and boxes must make finite costs; got others, as where training has diverged")
    found = torch.full_like(kinds, -1)
    for row, cost, here in zip(found, costs, real, strict=True):
        query, which = linear_sum_assignment(cost[:, here.cpu()].numpy())
        row[here.nonzero()[which, 0]] = torch.as_tensor(query).to(row)
    return found


def set_loss(
    logits: Float[Tensor, "batch n_queries n_classes_1"],
    boxes: Float[Tensor, "batch n_queries 4"],
    kinds: Int[Tensor, "batch n_objects"],
    targets: Float[Tensor, "batch n_objects 4"],
    matched: Int[Tensor, "batch n_objects"] | None = None,
    *,
    nothing: float = 0.1,
) -> Float[Tensor, ""]:
    r"""How far the predictions are from the objects that they are matched with, or from "no object".

    .. math:: L = \overline{-\log p_{\sigma(i)}(c_i)} + \frac{1}{n} \sum_{c_i \neq \varnothing}
              5\, \|b_i - b_{\sigma(i)}\|_1 + 2\, \big(1 - \text{GIoU}(b_i, b_{\sigma(i)})\big)

    The mean is over queries; those that say "no object" weigh ``nothing``. ``matched`` is what `match` returns, which
    it is unless given: another order may be put there. :math:`n` is the number of objects, of the whole batch.

    Raises as `match`, and when ``matched`` has another shape than ``kinds``.

    Source: Carion et al. (2020), section 3.1 and appendix A.2.

    >>> kinds, targets = torch.tensor([[2, 4]]), torch.tensor([[[0.2, 0.3, 0.2, 0.2], [0.0] * 4]])
    >>> right = 20 * torch.eye(5)[[4, 2]][None], targets.flip(1)
    >>> set_loss(*right, kinds, targets).round(decimals=3)
    tensor(0.)
    """
    _check(logits, boxes, kinds, targets)
    check_positive("nothing", nothing)
    none = logits.shape[-1] - 1
    matched = match(logits, boxes, kinds, targets) if matched is None else matched
    if matched.shape != kinds.shape:
        raise ValueError(f"matched must have the shape of kinds, {tuple(kinds.shape)}; got {tuple(matched.shape)}")
    row, which = (kinds < none).nonzero(as_tuple=True)
    query = matched[row, which]
    if len(query) and not 0 <= int(query.min()) <= int(query.max()) < logits.shape[1]:
        raise ValueError(f"matched must name queries from 0 to {logits.shape[1] - 1} for all objects; got {matched}")
    wanted = torch.full_like(logits[..., 0], none, dtype=torch.long)
    wanted[row, query] = kinds[row, which]
    weight = torch.cat([torch.ones(none), torch.tensor([nothing])]).to(logits)
    said, there = boxes[row, query], targets[row, which]
    apart = PLACE * (said - there).abs().sum() + OVERLAP * (1 - generalised_iou(said, there)).sum()
    return KIND * F.cross_entropy(logits.mT, wanted, weight) + apart / max(len(row), 1)


def _check(logits: Tensor, boxes: Tensor, kinds: Tensor, targets: Tensor) -> None:
    check_floats(logits=logits, boxes=boxes, targets=targets)
    if logits.ndim != 3 or boxes.shape != (*logits.shape[:2], 4):
        raise ValueError(
            "logits and boxes must have shapes (batch, n_queries, n_classes + 1) and (batch, n_queries, 4); "
            f"got {tuple(logits.shape)} and {tuple(boxes.shape)}"
        )
    if kinds.ndim != 2 or len(kinds) != len(logits) or targets.shape != (*kinds.shape, 4):
        wanted = f"({len(logits)}, n_objects) and ({len(logits)}, n_objects, 4)"
        got = f"{tuple(kinds.shape)} and {tuple(targets.shape)}"
        raise ValueError(f"kinds and targets must have shapes {wanted}; got {got}")
    none = logits.shape[-1] - 1
    if kinds.dtype != torch.long or (kinds.numel() and not 0 <= int(kinds.min()) <= int(kinds.max()) <= none):
        raise ValueError(f"kinds must hold whole numbers from 0 to {none}, the last for no object; got {kinds}")
    most = int((kinds < none).sum(1).max()) if kinds.numel() else 0
    if most > logits.shape[1]:
        raise ValueError(f"kinds must not hold more objects than there are queries, {logits.shape[1]}; got {most}")

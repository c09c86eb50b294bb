"""Where two models that should be one part ways: the first module that is given the same and gives something else."""

from __future__ import annotations

from contextlib import ExitStack
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from attnlib._base.checks import check_number
from attnlib.nn.foreign import as_keywords
from attnlib.probes.outputs import TOLERANCE, change, first_tensor
from attnlib.probes.report import Report
from attnlib.probes.subject import undisturbed

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["first_difference"]


class _Call(NamedTuple):
    """What a module was given, tensors and options, and what it gave."""

    given: list[Tensor]
    options: dict[str, Any]
    gave: Tensor


def first_difference(
    model: nn.Module, reference: nn.Module, *inputs: Any, tolerance: float | None = None, **options: Any
) -> Report:
    r"""Which module of ``model`` is the first to be given the same as its namesake, and to give something else?

    .. math:: \min \{\, m : x_m = x'_m,\ f_m(x_m) \neq f'_m(x'_m) \,\}

    Both run on the same ``inputs``, in eval mode. Modules are compared by name, in the order in which they end, each
    where it ran for the first time; so what is found is the smallest that holds the difference. Given the same means
    equal tensors, and equal flags, numbers and texts where both have an argument of that name. What changes by at
    most ``tolerance``, as a share of its size, is the same: 1e-5 in float32, as in every probe, unless given.

    Raises ``TypeError`` when one of the two is no module.

    >>> from copy import deepcopy
    >>> model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
    >>> other = deepcopy(model)
    >>> first_difference(model, other, torch.ones(1, 3))
    No module of the two differs (4 compared).
    >>> other[1] = nn.ReLU()
    >>> first_difference(model, other, torch.ones(1, 3))
    Given equal input, 1 (Tanh) is the first to differ.
    """
    for name, one in (("model", model), ("reference", reference)):
        if not isinstance(one, nn.Module):
            raise TypeError(f"{name} must be a torch.nn.Module; got {type(one).__name__}")
    epsilon = None if tolerance is None else check_number("tolerance", tolerance)
    own, theirs = (_calls(one, inputs, options) for one in (model, reference))
    both = [name for name in own if name in theirs]
    for name in both:
        call, their_call = own[name], theirs[name]
        shared = call.options.keys() & their_call.options
        alike = all(call.options[key] == their_call.options[key] for key in shared)
        alike = alike and _same(call.given, their_call.given, epsilon)
        if alike and not _same([call.gave], [their_call.gave], epsilon):
            which = f"{name or 'the whole'} ({type(model.get_submodule(name)).__name__})"
            found = f"Given equal input, {which} is the first to differ."
            return Report("first_difference", False, found)
    return Report("first_difference", True, f"No module of the two differs ({len(both)} compared).")


@torch.no_grad()
def _calls(model: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any]) -> dict[str, _Call]:
    """The first call of each module, in the order in which they end."""
    calls: dict[str, _Call] = {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            if name in calls:
                return
            given = [x.clone() for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
            told = {key: parameter.default for key, parameter in signature(module.forward).parameters.items()}
            told |= as_keywords(module, args, kwargs)
            plain = {key: x for key, x in told.items() if isinstance(x, bool | int | float | str)}
            calls[name] = _Call(given, plain, first_tensor(output).clone())

        return hook

    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    with ExitStack() as stack, undisturbed(model, training=False, device=device):
        for name, module in model.named_modules():
            stack.callback(module.register_forward_hook(keep(name), with_kwargs=True).remove)
        model(*inputs, **options)
    return calls


def _same(some: list[Tensor], others: list[Tensor], tolerance: float | None) -> bool:
    return len(some) == len(others) and all(
        a.shape == b.shape and _alike(a, b, TOLERANCE.get(a.dtype, 0.0) if tolerance is None else tolerance)
        for a, b in zip(some, others, strict=True)
    )


def _alike(a: Tensor, b: Tensor, tolerance: float) -> bool:
    if not a.is_floating_point() or a.numel() == 0:
        return torch.equal(a, b)
    rows = [x.reshape(1, -1, x.shape[-1] if x.ndim else 1) for x in (a, b)]
    return bool((change(*rows) <= tolerance).all())

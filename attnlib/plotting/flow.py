"""What really happens in a module: its parts in the order in which they run, and where the input of each comes from.

Nothing here trusts a name or an option. Hooks see every call of one forward pass. An input comes from a part when it
is the very tensor that the part gave, and from a sum when it equals the sum of two that are known, number for number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Call", "Edge", "Flow", "calls_of", "flow_of", "outermost"]


class Call(NamedTuple):
    """One call of a part: its name in the module, the part, what went in, the options that were given, what came out.

    >>> Call._fields
    ('name', 'part', 'inputs', 'options', 'outputs')
    """

    name: str
    part: nn.Module
    inputs: tuple[Tensor, ...]
    options: Mapping[str, Any]
    outputs: tuple[Tensor, ...]


class Edge(NamedTuple):
    """The input number ``place`` of the node ``end`` is what ``start`` gave, of this ``shape``.

    >>> Edge("x", "norm", 0, (2, 5, 16)).shape
    (2, 5, 16)
    """

    start: str
    end: str
    place: int
    shape: tuple[int, ...]


class Flow(NamedTuple):
    """The nodes in the order of the forward pass (None: a sum), the edges between them, and what gave the output.

    >>> Flow._fields
    ('nodes', 'edges', 'last', 'shape')
    """

    nodes: dict[str, Call | None]
    edges: list[Edge]
    last: str
    shape: tuple[int, ...]


def calls_of(module: nn.Module, *inputs: Any, **options: Any) -> list[Call]:
    """Every call of a part of ``module``, and at last its own (its name is empty), in one forward pass.

    The pass has no dropout and leaves gradients, modes and hooks as they were.

    >>> import torch
    >>> calls = calls_of(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()), torch.ones(2, 4))
    >>> [(call.name, tuple(call.outputs[0].shape)) for call in calls]
    [('0', (2, 3)), ('1', (2, 3)), ('', (2, 3))]
    """
    import torch

    calls: list[Call] = []

    def note(part: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], out: object) -> None:
        given = {name: value for name, value in kwargs.items() if value is not None and value is not False}
        calls.append(Call(names[part], part, tuple(_tensors(args)), given, tuple(_tensors(out))))

    names = {part: name for name, part in module.named_modules()}
    modes = {part: part.training for part in names}
    hooks = [part.register_forward_hook(note, with_kwargs=True) for part in names]
    try:
        with torch.no_grad():
            module.eval()(*inputs, **options)
    finally:
        for hook in hooks:
            hook.remove()
        for part, mode in modes.items():
            part.training = mode
    return calls


def outermost(calls: Sequence[Call], of: str = "", opened: Sequence[str] = ()) -> list[Call]:
    """Those calls inside the part ``of`` that no other call inside it makes; calls ``opened`` count for their parts.

    >>> import torch
    >>> inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    >>> calls = calls_of(torch.nn.Sequential(inner, torch.nn.Tanh()), torch.ones(1, 4))
    >>> [call.name for call in outermost(calls)], [call.name for call in outermost(calls, of="0")]
    (['0', '1'], ['0.0', '0.1'])
    """
    start = f"{of}." if of else ""
    inside = [call for call in calls if call.name.startswith(start) and call.name not in ("", *opened)]
    return [call for call in inside if not any(call.name.startswith(f"{outer.name}.") for outer in inside)]


def flow_of(inputs: Mapping[str, Tensor], calls: Sequence[Call], output: Tensor) -> Flow:
    """How ``inputs`` flow through ``calls`` to the ``output``.

    Raises ``ValueError`` when a call's input is neither what an earlier one gave nor the sum of two of these, so that
    a drawing would have to guess.

    >>> import torch
    >>> class Residual(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.part = torch.nn.Linear(3, 3)
    ...
    ...     def forward(self, x):
    ...         return x + self.part(x)
    >>> module, x = Residual(), torch.ones(2, 3)
    >>> calls = calls_of(module, x)
    >>> flow = flow_of({"x": x}, outermost(calls), calls[-1].outputs[0])
    >>> [(edge.start, edge.end) for edge in flow.edges], flow.last
    ([('x', 'part'), ('part', 'sum 1'), ('x', 'sum 1')], 'sum 1')
    """
    found = _Found(inputs)
    for call in calls:
        if type(call.part).__name__ == "Identity":
            continue
        for place, tensor in enumerate(call.inputs):
            start = found.source(tensor, f"the input of {call.name}")
            found.edges.append(Edge(start, call.name, place, tuple(tensor.shape)))
        found.nodes[call.name] = call
        found.known += [(tensor, call.name) for tensor in call.outputs[:1]]
    last = found.source(output, "the output")
    return Flow(found.nodes, found.edges, last, tuple(output.shape))


class _Found:
    """What is known of a flow so far."""

    def __init__(self, inputs: Mapping[str, Tensor]) -> None:
        self.known = [(tensor, name) for name, tensor in inputs.items()]
        self.nodes: dict[str, Call | None] = {}
        self.edges: list[Edge] = []

    def source(self, tensor: Tensor, what: str) -> str:
        for known, name in reversed(self.known):
            if known is tensor:
                return name
        for (a, start), (b, other) in combinations(reversed(self.known), 2):
            if a.shape == b.shape == tensor.shape and (a + b).equal(tensor):
                return self._sum(tensor, (start, other))
        raise ValueError(
            f"{what} must be what an earlier part gave, or the sum of two of them, to be drawn; "
            f"got {tuple(tensor.shape)} from something that is not a module"
        )

    def _sum(self, tensor: Tensor, starts: Sequence[str]) -> str:
        name = f"sum {1 + sum(call is None for call in self.nodes.values())}"
        self.nodes[name] = None
        self.edges += [Edge(start, name, place, tuple(tensor.shape)) for place, start in enumerate(starts)]
        self.known.append((tensor, name))
        return name


def _tensors(value: object) -> list[Tensor]:
    """All tensors in ``value``, in their order, however deep in tuples and lists."""
    if isinstance(value, tuple | list):
        return [tensor for part in value for tensor in _tensors(part)]
    return [value] if hasattr(value, "shape") else []

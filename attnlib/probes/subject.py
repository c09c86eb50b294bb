"""How a probe runs a model without leaving a trace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
import torch
from torch import nn

from attnlib._base.checks import check_number, check_size
from attnlib.probes.outputs import TOLERANCE, NaNError, ShapeError, UnfitError, change, first_tensor, size_of
from attnlib.probes.report import Report

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Shaped
    from torch import Tensor

    from attnlib._base.arrays import Array

__all__ = ["Subject", "modules_of", "observe", "probe", "undisturbed"]


P = ParamSpec("P")


def probe(find: Callable[P, Report]) -> Callable[P, Report]:
    """Turn what makes a probe impossible into a finding of its own."""

    @wraps(find)
    def found(*args: P.args, **kwargs: P.kwargs) -> Report:
        try:
            return find(*args, **kwargs)
        except UnfitError as unfit:
            return Report(find.__name__, False, str(unfit), fit=False)

    return found


class Subject:
    """A model under observation, and the input at which it is observed. Made by `observe`."""

    def __init__(
        self,
        model: Callable,
        x: Tensor,
        *,
        numpy: bool,
        random: bool,
        tolerance: float | None,
        n_tokens: int | None,
        seed: int,
    ) -> None:
        self.model, self.x, self.numpy, self._tolerance, self._n_tokens = model, x, numpy, tolerance, n_tokens
        self.may_draw = random  # numbers that differ from call to call
        self.is_random = False  # did they, at the latest `baseline`?
        self.pooled: bool | None = None  # one output for a sequence, not for a position; None: look at the first
        self.shape: tuple[int, ...] = ()  # of the latest output
        self.output: Any = None  # all of it, weights too
        self.generator = torch.Generator().manual_seed(seed)
        self.dtypes = {x.dtype, *(p.dtype for m in modules_of(model).values() for p in m.parameters())}

    def run(self, x: Tensor, *more: Tensor, draw: int = 0) -> Tensor:
        """The model's output for ``x``; a model that draws random numbers gets the same ones for the same ``draw``."""
        torch.default_generator.manual_seed(draw)
        np.random.seed(draw)  # noqa: NPY002  for models that draw from it
        if x.is_cuda:
            torch.cuda.manual_seed(draw)
        given = [a.clone() for a in (x, *more)]  # a model may write into its input
        self.output = self.model(*((a.numpy() for a in given) if self.numpy else given))
        out = first_tensor(self.output)
        self.dtypes.add(out.dtype)
        self.shape = tuple(out.shape)
        return out

    def answer(self, x: Tensor, *more: Tensor, draw: int = 0) -> Float[Tensor, "batch n d"]:
        """The same without a gradient and in float64, where differences are exact; ``n`` is 1 for pooled outputs."""
        with torch.no_grad():
            return self.arranged(self.run(x, *more, draw=draw), *x.shape[:2]).cpu().to(torch.float64)

    @property
    def is_ambiguous(self) -> bool:
        """Could the second axis be positions as well as features?"""
        return len(self.shape) == 2 and self.shape[1] == self.x.shape[1]

    def arranged(self, out: Tensor, batch: int, n: int) -> Shaped[Tensor, "batch n d"]:
        """An output with three axes, of which the second is one where it is pooled."""
        by_position = out.ndim > 1 and out.shape[1] == n
        if self.pooled is None:
            self.pooled = not by_position
        if out.ndim == 0 or len(out) != batch or not (self.pooled or by_position):
            expected = f"(batch, ...) = ({batch}, ...)" if self.pooled else f"(batch, n, ...) = ({batch}, {n}, ...)"
            raise ShapeError(f"model must return {expected}; got {tuple(out.shape)}")
        return out.reshape(batch, 1 if self.pooled else n, -1)  # (batch, n, features)

    def baseline(self, *more: Tensor, where: Bool[Tensor, "batch n"] | None = None) -> Tensor:
        """The answer at ``x``, which must come twice, whatever is drawn, and hold no NaN where it counts."""
        third, whole, second = (self.answer(self.x, *more, draw=draw) for draw in (1, 0, 0))  # `output` is of the last
        self.is_random = self.differ(whole.nan_to_num(), third.nan_to_num())
        counts = torch.ones_like(whole, dtype=torch.bool)
        if where is not None:
            counts &= (where.any(1, keepdim=True) if self.pooled else where).cpu()[..., None]
        if (whole.isnan() & counts).any():
            place = ", ".join(map(str, (whole.isnan() & counts).nonzero()[0].tolist()))
            raise NaNError(place)
        first, second, third = (torch.where(counts, answer, 0.0) for answer in (whole, second, third))
        if self.differ(first, second):
            raise UnfitError("The same input gave two answers, so that nothing can be told.")
        if not self.may_draw and self.differ(first, third):
            raise UnfitError(
                "The model draws random numbers in eval mode, as F.dropout(x, p) does without training=self.training. "
                "If it should, say random=True."
            )
        return whole

    def differ(self, before: Tensor, after: Tensor) -> bool:
        """Is there a change that is more than rounding?"""
        return bool((change(before, after) > self.tolerance).any())

    @property
    def tolerance(self) -> float:
        """Changes up to this share of the output are rounding: of the coarsest format in sight, unless given."""
        return max(TOLERANCE.get(dtype, 0.0) for dtype in self.dtypes) if self._tolerance is None else self._tolerance

    @cached_property
    def vocabulary(self) -> Int[Tensor, " n_tokens"]:
        """The tokens that may stand in the input: all of ``n_tokens``, or those that do."""
        present = self.x.unique()
        if self._n_tokens is None:
            if len(present) < 2:
                raise ValueError("x must hold two different tokens, or n_tokens say how many there are")
            return present
        if check_size("n_tokens", self._n_tokens) < 2 or present.min() < 0 or present.max() >= self._n_tokens:
            raise ValueError(f"n_tokens must be at least 2 and above all tokens in x; got {self._n_tokens}")
        return torch.arange(self._n_tokens, dtype=present.dtype, device=present.device)

    def other(self, x: Tensor, times: float = 1.0) -> Tensor:
        """Another value for every entry of ``x``: another token, or a number about the size of ``x`` away."""
        if not x.is_floating_point():
            at = torch.searchsorted(self.vocabulary, x.contiguous())
            step = torch.randint(1, len(self.vocabulary), x.shape, generator=self.generator).to(x.device)
            return self.vocabulary[(at + step) % len(self.vocabulary)]
        step = torch.randn(x.shape, generator=self.generator).to(x)
        return x + step * (times * size_of(self.x))


@contextmanager
def observe(
    model: Callable,
    x: Array,
    *,
    training: bool,
    random: bool = False,
    tolerance: float | None = None,
    n_tokens: int | None = None,
    seed: int,
) -> Iterator[Subject]:
    """A `Subject`, with every argument checked and the model back as it was at the end.

    In eval mode a model must not draw random numbers, unless ``random``.
    """
    if not callable(model):
        raise TypeError(f"model must be a function or a module; got {type(model).__name__}")
    if not isinstance(x, np.ndarray | torch.Tensor):
        raise TypeError(f"x must be a NumPy array or a torch tensor; got {type(x).__name__}")
    data = x.detach().clone() if isinstance(x, torch.Tensor) else torch.tensor(np.array(x))
    if data.dtype == torch.bool or data.is_complex():
        raise TypeError(f"x must hold floating-point numbers or tokens, which are integers; got dtype {data.dtype}")
    if data.ndim < 2 or 0 in data.shape:
        raise ValueError(
            f"x must have shape (batch, n, d), or (batch, n) for tokens, and no empty axis; got {x.shape}"
        )
    if tolerance is not None and not check_number("tolerance", tolerance) >= 0:
        raise ValueError(f"tolerance must not be negative; got {tolerance}")
    seed = check_size("seed", seed)
    with undisturbed(model, training=training, device=data.device):
        yield Subject(
            model,
            data,
            numpy=isinstance(x, np.ndarray),
            random=training or random,
            tolerance=tolerance,
            n_tokens=n_tokens,
            seed=seed,
        )


@contextmanager
def undisturbed(model: Callable, *, training: bool, device: torch.device) -> Iterator[None]:
    """Eval or training mode for a while; then modes, buffers and random streams as they were."""
    modules = list({module: None for root in modules_of(model).values() for module in root.modules()})
    modes = [(module, module.training) for module in modules]
    buffers = [(m, name, b, b.clone()) for m in modules for name, b in m._buffers.items() if b is not None]
    state = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            for module in modules:
                module.training = training
            yield
        finally:
            for module, mode in modes:
                module.training = mode
            for module, name, buffer, value in buffers:
                with torch.no_grad():
                    module._buffers[name] = buffer.copy_(value)
            np.random.set_state(state)  # noqa: NPY002


def modules_of(model: Callable) -> dict[str, nn.Module]:
    """The modules that ``model`` is or, a function, mentions: those it closes over, is bound to or was given.

    A function that it calls is not searched in turn.

    >>> layer = nn.Linear(2, 2)
    >>> modules_of(lambda x: layer(x).relu())
    {'layer': Linear(in_features=2, out_features=2, bias=True)}
    """
    if isinstance(model, nn.Module):
        return {"": model}
    if isinstance(model, partial):
        given = {**{str(i): a for i, a in enumerate(model.args)}, **model.keywords}
        return {**modules_of(model.func), **_only_modules(given)}
    if inspect.ismethod(model):
        return _only_modules({"self": model.__self__})
    if inspect.isfunction(model):
        names = model.__code__.co_names
        mentioned = {name: model.__globals__.get(name) for name in names}
        for owner, thing in list(mentioned.items()):  # one.model, of which `names` has both parts
            own = getattr(thing, "__dict__", {})
            mentioned |= {f"{owner}.{name}": own[name] for name in names if name in own}
        defaults = {str(i): default for i, default in enumerate(model.__defaults__ or ())}
        return _only_modules({**mentioned, **_closed_over(model), **defaults, **(model.__kwdefaults__ or {})})
    return _only_modules(getattr(model, "__dict__", {}))


def _closed_over(function: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a variable that is not set yet
            found[name] = cell.cell_contents
    return found


def _only_modules(things: dict[str, Any]) -> dict[str, nn.Module]:
    return {name: thing for name, thing in things.items() if isinstance(thing, nn.Module)}

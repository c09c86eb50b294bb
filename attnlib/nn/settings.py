"""Checks that the configurations of all models share, on their fields by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from attnlib._base.checks import check_at_least_one, check_one_of, check_share, check_size

__all__ = ["check_choices", "check_config", "check_divides", "check_sizes", "check_special_tokens", "fill"]


def check_config(config: object, kind: type) -> None:
    """Raise unless ``config`` is a configuration of its ``kind``."""
    if not isinstance(config, kind):
        got = config.__name__ if isinstance(config, type) else type(config).__name__
        raise TypeError(f"config must be a {kind.__name__}; got {got}")


def fill(config: object, **sizes: int) -> None:
    """What was left at 0 is as large as this, in a configuration that is frozen."""
    for name, size in sizes.items():
        if getattr(config, name) == 0:
            object.__setattr__(config, name, size)


def check_sizes(config: object, *names: str) -> None:
    """Raise unless each is an integer of at least one."""
    for name in names:
        check_at_least_one(name, getattr(config, name))


def check_divides(config: object, **wholes: str) -> None:
    """Raise unless each divides the field that it is given: ``n_heads="d_model"``."""
    for name, whole in wholes.items():
        if getattr(config, whole) % getattr(config, name):
            raise ValueError(f"{name} must divide {whole} = {getattr(config, whole)}; got {getattr(config, name)}")


def check_choices(config: object, **known: Iterable[str]) -> None:
    """Raise unless each is one of the words that are known; and the dropout a share, and what is yes or no a bool."""
    check_share("dropout", config.dropout)
    for field in fields(config):
        if field.type == "bool" and type(getattr(config, field.name)) is not bool:
            raise TypeError(f"{field.name} must be True or False; got {getattr(config, field.name)!r}")
    for name, words in known.items():
        check_one_of(name, getattr(config, name), words)


def check_special_tokens(config: object, size: str, *names: str, optional: Iterable[str] = ()) -> None:
    """Raise unless each is a token of the vocabulary whose size stands in ``size``; what is optional may be None."""
    for name in (*names, *(name for name in optional if getattr(config, name) is not None)):
        token = check_size(name, getattr(config, name))
        if token >= getattr(config, size):
            raise ValueError(f"{name} must be a token below {size} = {getattr(config, size)}; got {token}")

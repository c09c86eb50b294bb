"""What an installation may lack: a room that cannot do without it imports a module from here, before all else."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["needs"]


def needs(package: str, extra: str) -> None:
    """Raise a ``ModuleNotFoundError`` that says how to get ``package``, unless it is installed.

    >>> needs("numpy", extra="torch")
    >>> needs("not_there", extra="torch")
    Traceback (most recent call last):
    ModuleNotFoundError: this part of attnlib needs not_there: pip install '.[torch]', in the folder of the course
    """
    if find_spec(package) is None:
        raise ModuleNotFoundError(
            f"this part of attnlib needs {package}: pip install '.[{extra}]', in the folder of the course",
            name=package,
        )

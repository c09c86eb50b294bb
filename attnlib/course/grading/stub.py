"""Recognises an answer that nobody has written yet."""

from __future__ import annotations

import dis
from typing import Any

_NOTHING = {"RESUME", "NOP", "CACHE", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "NOT_TAKEN"}


def is_stub(answer: Any) -> bool:
    """Whether `answer` is None, `...`, or a function whose body is `...`, `pass` or a docstring.

    >>> def weights(q, k):
    ...     "Your code here."
    ...     ...
    >>> is_stub(weights), is_stub(...), is_stub(lambda x: 2 * x)
    (True, True, False)
    """
    if answer is None or answer is Ellipsis:
        return True
    try:
        code = getattr(answer, "__code__", None)
    except Exception:  # an object that answers no question is not a stub
        return False
    if code is None:
        return False
    steps = list(dis.get_instructions(code))
    constants = [step.argval for step in steps if "CONST" in step.opname]
    return all(step.opname in _NOTHING for step in steps) and all(
        constant is None or constant is Ellipsis for constant in constants
    )

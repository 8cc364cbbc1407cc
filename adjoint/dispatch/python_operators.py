"""Calls by Python's symbols, such as `x * 2`, and the first calls in a capture, which need no generated code."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy

from ..tape.modes import STATE
from ..tensor import Tensor, wrap
from .arguments import MISSING, is_number
from .declaration import Operator
from .lazy_stubs import overridden
from .slow_path import call
from .source import public_name

getframe = sys._getframe


def call_operator(op: Operator, args: tuple[Any, ...]) -> Any:
    """Apply `op` as a Python operator. If it returns `NotImplemented`, Python tries the type of the other operand."""
    if not isinstance(args[0], Tensor):
        kind = type(args[0]).__name__
        raise TypeError(f"descriptor '{op.name}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object")
    if len(args) > 1 and type(value := args[1]) is not Tensor:
        if op.name == "eq" and isinstance(value, numpy.ndarray):  # only `==` accepts arrays
            return call(op, (args[0], wrap(value)))
        if not isinstance(value, Tensor) and not is_number(value):
            return not_known(depth=1)
    return call(op, args)


def not_known(depth: int = 0) -> Any:
    """Return the result of a Python operator for an unknown operand: NotImplemented, unless the call is overridden."""
    again = overridden(getframe(depth + 1))
    return NotImplemented if again is None else again()


def captured_call(op: Operator, variant: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Call a variant of an operator without its generated code.

    Return NotImplemented if there is no capture, or if the call fails or needs the code, which raises its error.
    """
    if STATE.capture is None or variant not in ("function", "operator"):
        return NotImplemented
    names, defaults, positional = parameters(op)
    others = names[len(args) :]
    if len(args) > positional or not keywords.keys() <= {*others}:
        return NotImplemented
    given = defaults | keywords if keywords else defaults
    if not given.keys() >= {*others}:
        return NotImplemented
    values = (*args, *map(given.__getitem__, others))
    try:
        return call_operator(op, values) if variant == "operator" else call(op, values)
    except Exception:  # noqa: BLE001
        return NotImplemented


@cache
def parameters(op: Operator) -> tuple[list[str], dict[str, Any], int]:
    """Return the public names of an operator's parameters, the defaults, and the number of positional parameters."""
    defaults = {public_name(name): value for name, value in op.defaults.items() if value is not MISSING}
    return [*map(public_name, op.names)], defaults, len(op.names) - len(op.keyword_only)

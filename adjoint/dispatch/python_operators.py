"""Calls by Python's symbols, such as `x * 2`."""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ..tensor import Tensor, wrap
from .arguments import is_number
from .declaration import Operator
from .lazy_stubs import overridden
from .slow_path import call

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

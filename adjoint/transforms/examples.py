"""If an operator refuses one example of a batch, for wrong ranks, sizes or dimensions, it refuses the whole batch."""

from __future__ import annotations

from typing import Any

import numpy

from .. import dtypes
from ..dispatch.arguments import bind
from ..dispatch.declaration import Operator
from ..dispatch.plan import FUNCTION, Call
from ..dispatch.planning import plan_of
from ..kernels.linalg import LinAlgError
from ..kernels.runtime.lazy_conj import LazyConjNeg
from ..kernels.runtime.meta_array import Unread
from ..tensor import Tensor, wrap

_MOST = 4096

_accepted: set[Any] = set()
"""The shapes, dtypes and parameters that operators have accepted for one example."""


def check_example(op: Operator, args: tuple[Any, ...]) -> None:
    """Raise the error of `op` for the first example.

    If the operator has accepted one example, other examples with these shapes are not tried.

    The operator is applied to copies, so it changes nothing. Errors that depend on elements are not raised here.
    """
    key: list[Any] = [op.name]
    for value in args:
        if isinstance(value, Tensor):
            array = value._array
            key.append((array.shape, array.dtype.char))
        elif not _describe(value, key):
            return
    signature = tuple(key)
    if signature in _accepted:
        return
    example = tuple([_first(value) for value in args])
    if any(value is None and given is not None for value, given in zip(example, args, strict=True)):
        return
    try:
        plan, call = plan_of(op, example), Call(op, FUNCTION, bind(op, example))
        call.args = list(call.given)
        for step in plan.reading:
            step(call)
        plan.arrays.compute(plan, call.arrays)
    except LinAlgError:
        return
    if len(_accepted) >= _MOST:
        _accepted.clear()
    _accepted.add(signature)


_PLAIN = (int, float, complex, str, bool, type(None), dtypes.dtype)


def _describe(value: Any, key: list[Any]) -> bool:
    """Append the identifying properties of an argument that is not a tensor. Return False if its type is not plain."""
    if type(value) in _PLAIN:
        key.append((type(value), value))
        return True
    if type(value) is not list and type(value) is not tuple:
        return False
    key.append(len(value))
    for item in value:
        if isinstance(item, Tensor):
            key.append((item._array.shape, item._array.dtype.char))
        elif not _describe(item, key):
            return False
    return True


def _first(value: Any) -> Any:
    """Return the first example in separate memory, or None for a tensor without ordinary elements."""
    if isinstance(value, (list, tuple)):
        return type(value)([_first(item) for item in value])
    if not isinstance(value, Tensor):
        return value
    whole: Any = value
    while hasattr(whole, "bdim"):
        whole = whole.value
    array, kind = value._array, type(whole._array)
    if not (kind is numpy.ndarray or issubclass(kind, LazyConjNeg)) or (array.size and not whole._array.size):
        return None
    return wrap(numpy.array(array.view(numpy.ndarray) if isinstance(array, Unread) else array))

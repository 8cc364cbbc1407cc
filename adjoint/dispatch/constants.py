"""Python numbers as operands: constants of the dtype of the tensor, created once and cached."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

from .. import dtypes
from ..codegen.backend import NUMPY
from ..tensor import PLAIN_TYPES, Tensor, wrap

NUMBERS = frozenset((int, float))

_HALVES = frozenset((dtypes.float16.numpy, dtypes.bfloat16.numpy))
_FLOATS = frozenset((*(numpy.dtype(char) for char in "fdFD"), *_HALVES))
_INTEGERS = frozenset(numpy.dtype(char) for char in ("i8", "i4", "i2", "i1", "u1"))
_WHOLE = frozenset((*_INTEGERS, numpy.dtype(bool)))
_LIMIT = 4096
_of_ints: dict[Any, dict[Any, Tensor]] = {kind: {} for kind in (*_FLOATS, *_INTEGERS)}
_of_floats: dict[Any, dict[Any, Tensor]] = {kind: {} for kind in _FLOATS}
"""The constants by dtype and number. 2 and 2.0 are kept separately, because they are equal as keys."""


def constant(number: Any, like: Any) -> Any:
    """`number` as a zero-dimensional tensor of the dtype that the result of an operation on it and `like` has.

    For rare dtypes return the number itself, for the slow path.
    """
    if type(like) is not Tensor and type(like) not in PLAIN_TYPES:
        return number
    kind = like._array.dtype
    table = (_of_ints if type(number) is int else _of_floats).get(kind)
    if table is None:  # a number of a higher category than the tensor: `like` is promoted to its dtype
        if kind not in _WHOLE:
            return number
        kind = dtypes.scalar_dtype(number).numpy
        table = (_of_ints if type(number) is int else _of_floats)[kind]
    found = table.get(number)
    if found is None or (number == 0 and type(number) is float):
        found = _make(number, kind, table)
    return found


def of_its_own_dtype(number: Any) -> Tensor:
    """A number as a zero-dimensional tensor of the dtype that it has without other operands."""
    return wrap(numpy.asarray(number, dtype=dtypes.scalar_dtype(number).numpy))


def _make(number: Any, kind: Any, table: dict[Any, Tensor]) -> Any:
    try:
        array = NUMPY.constant(number, kind)
    except OverflowError:
        return number
    if kind in _HALVES and float(array) != number:  # it takes part as it is, not rounded
        return number
    tensor = wrap(array)
    tensor._own_extra().number = partial(of_its_own_dtype, number)
    if (number != 0 or type(number) is int) and number == number:
        if len(table) >= _LIMIT:
            table.clear()
        table[number] = tensor
    return tensor

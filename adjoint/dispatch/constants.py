"""Python numbers as operands: constants in the dtype of the tensor, created once and cached."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

from .. import dtypes
from ..codegen.backend import NUMPY
from ..kernels.runtime.floating import unwarned
from ..kernels.runtime.narrow_array import cast, kept
from ..tensor import PLAIN_TYPES, Tensor, wrap

NUMBERS = frozenset((int, float))

_FLOAT32 = dtypes.float32.numpy
_HALVES = frozenset((dtypes.float16.numpy, dtypes.HELD[dtypes.bfloat16]))
_COMPLEX = frozenset(map(numpy.dtype, "FD"))
_FLOATS = frozenset((*map(numpy.dtype, "fd"), *_HALVES))
_INTEGERS = frozenset(map(numpy.dtype, ("i8", "i4", "i2", "i1", "u1")))
_BOOL = frozenset((numpy.dtype(bool),))
_LIMIT = 4096

_tables: dict[Any, dict[Any, dict[Any, Tensor]]] = {
    bool: {kind: {} for kind in _BOOL | _INTEGERS | _FLOATS | _COMPLEX},
    int: {kind: {} for kind in _INTEGERS | _FLOATS | _COMPLEX},
    float: {kind: {} for kind in _FLOATS | _COMPLEX},
    complex: {kind: {} for kind in _COMPLEX},
}
"""The constants by type of the number, dtype, and number. 2 and 2.0 are stored separately, because they are equal as keys."""

SCALARS = frozenset(
    (*_tables, *(kind for kind in numpy.sctypeDict.values() if issubclass(kind, (numpy.number, numpy.bool_))))
)
"""The types of Python's and NumPy's numbers."""

_higher: dict[Any, Any] = {}
"""The dtypes for numbers of a higher category than the tensor, by type of the number, tensor dtype, and default dtype."""


def constant(number: Any, like: Any) -> Any:
    """Return `number` as a zero-dimensional tensor in the dtype of its result with `like`, or itself for rare dtypes."""
    if type(like) is not Tensor and type(like) not in PLAIN_TYPES:
        return number
    tables, kind = _tables.get(type(number)), like._array.dtype
    if tables is None:
        plain = number.item()  # of NumPy's
        return constant(plain, like) if type(plain) in _tables else number
    table = tables.get(kind)
    if table is None:  # a number of a higher category: `like` is promoted to its dtype
        kind = _dtype_of_both(number, kind)
        if kind is None:
            return number
        table = tables[kind]
    found = table.get(number or repr(number))  # 0.0 and -0.0 are equal, but not their texts
    if found is None:
        found = _make(number, kind, table)
    return found


def _dtype_of_both(number: Any, kind: Any) -> Any:
    """Return NumPy's common dtype of a number and a tensor of the lower dtype `kind`, or None for rare dtypes."""
    key = type(number), kind, dtypes.get_default_dtype()
    if key not in _higher:
        target = None
        if kind in _tables[bool]:
            target = dtypes.promote(
                ((dtypes.from_numpy(kind), dtypes.Rank.ZERO_DIM), (dtypes.scalar_dtype(number), dtypes.Rank.SCALAR))
            )
        _higher[key] = None if target is None or target.roles else target.numpy
    return _higher[key]


def constant_tensor(number: Any, kind: Any) -> Tensor:
    """Return a zero-dimensional tensor of dtype `kind` for a number."""
    table = _tables.get(type(number), {}).get(kind.numpy)
    if table is not None:
        found = table.get(number or repr(number))
        if found is None:
            found = _make(number, kind.numpy, table)
        if found is not number and found._array.dtype is kind.numpy:
            return found
    value = number
    if type(number) not in SCALARS:  # its class may define the conversion
        base: Any = next(kind for kind in type(number).__mro__ if kind in SCALARS)
        value = base.__pos__(number)
    try:
        with unwarned():
            array = numpy.asarray(value, dtype=None if kind.roles else kind.numpy)
        array = kept(cast(array, kind.numpy)) if kind.roles else array
    except (OverflowError, TypeError):
        array = wrapped_integer(value, kind)
    return _tensor_for_number(number, array)


def _tensor_for_number(number: Any, array: Any) -> Tensor:
    """Return a tensor on `array` that represents a number."""
    tensor = wrap(array)
    tensor._own_extra().number = partial(of_its_own_dtype, number)
    return tensor


def wrapped_integer(number: Any, kind: Any) -> Any:
    """Return an integer of up to 64 bits as NumPy would cast it to `kind`: modulo its size, or rounded."""
    if isinstance(number, int) and -(1 << 63) <= number < 1 << 64:
        return numpy.asarray(number, dtype=numpy.int64 if number < 0 else numpy.uint64).astype(kind.numpy)
    raise OverflowError("int too big to convert")


def of_its_own_dtype(number: Any) -> Tensor:
    """Return a number as a zero-dimensional tensor of the dtype that it has without other operands."""
    return wrap(numpy.asarray(number, dtype=dtypes.scalar_dtype(number).numpy))


def _make(number: Any, kind: Any, table: dict[Any, Tensor]) -> Any:
    try:
        array = NUMPY.constant(number, kind)
    except (OverflowError, TypeError):
        return number
    if (
        kind in _HALVES and float(array) != number
    ):  # not rounded yet: promotion rounds it unless the operator uses the number itself
        array = NUMPY.constant(number, _FLOAT32)
    tensor = _tensor_for_number(number, array)
    if number == number:
        if len(table) >= _LIMIT:
            table.clear()
        table[number or repr(number)] = tensor
    return tensor

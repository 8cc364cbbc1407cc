"""Floating-point numbers: kinds of dtype, the precision that kernels compute in, and NumPy's warnings, which are off.

Half types are computed in float32. Infinities and NaNs are ordinary values, so they cause no warnings. `numpy.errstate`
takes longer than a small multiplication. NumPy stores the state in a context variable, and setting this variable
directly is ten times faster. If a future NumPy lacks this variable, `seterr` is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ... import dtypes
from ..._runtime.uninterrupted import uninterrupted

Array = ndarray[Any, Any]

BFLOAT16 = dtypes.HELD[dtypes.bfloat16]
FLOAT16 = numpy.dtype(numpy.float16)
FLOAT32 = numpy.dtype(numpy.float32)
FLOAT64 = numpy.dtype(numpy.float64)
INT64 = numpy.dtype(numpy.int64)
HALVES = (FLOAT16, BFLOAT16)
_FLOATS = frozenset((BFLOAT16, *(held for kind, held in dtypes.NARROW.items() if kind.is_floating_point)))


def compute_dtype(dtype: numpy.dtype[Any]) -> numpy.dtype[Any]:
    """Return the type in which `dtype` is computed: float32 for half types, otherwise `dtype`."""
    return FLOAT32 if dtype.itemsize == 2 and dtype in HALVES else dtype


def is_floating(dtype: numpy.dtype[Any]) -> bool:
    """Return whether `dtype` is a real floating-point type (including the types of `ml_dtypes`, whose NumPy kind is void)."""
    return dtype.kind == "f" or dtype in _FLOATS


def is_inexact(dtype: numpy.dtype[Any]) -> bool:
    """Return whether `dtype` is a floating-point or complex type."""
    return dtype.kind in "fcW" or dtype in _FLOATS


def type_name(dtype: numpy.dtype[Any]) -> str:
    """Return the name of a type in error messages, as in `'Float'` or `'ComplexDouble'`."""
    return dtypes.from_numpy(dtype).scalar_type


def c_name(dtype: numpy.dtype[Any]) -> str:
    """Return the name of a type in messages that use C++ names, such as `'long int'`."""
    return dtypes.C_NAMES[dtypes.from_numpy(dtype)]


try:
    from numpy._core.umath import _extobj_contextvar as _state
    from numpy._core.umath import _make_extobj

    OFF = _make_extobj(all="ignore")
    UNBUFFERED = _make_extobj(all="ignore", bufsize=16)

    class _Warnings:
        __slots__ = ()
        __getitem__ = _state.set

    restore = _state.reset
    """Restore the previous state of the warnings."""

except ImportError:  # pragma: no cover
    OFF: Any = {"all": "ignore"}  # type: ignore[no-redef]
    UNBUFFERED = OFF

    class _Warnings:  # type: ignore[no-redef]
        __slots__ = ()

        def __getitem__(self, state: Any) -> Any:
            return numpy.seterr(**state)

    def restore(token: Any) -> None:
        """Restore the previous state of the warnings."""
        numpy.seterr(**token)


WARNINGS: Any = _Warnings()
"""`token = WARNINGS[OFF]` turns the warnings off, and `restore(token)` restores them.

After a call instead of a subscript, an interrupt could lose the token.
"""


class unwarned:
    """A context in which the warnings are off, which an interrupt cannot break as it can `numpy.errstate`."""

    __slots__ = ("token",)

    def __enter__(self) -> None:
        self.token = WARNINGS[OFF]

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        restore(self.token)


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)` with the warnings off."""
    token = WARNINGS[OFF]
    try:
        return function(*args)
    finally:
        restore(token)


def refuse(name: str, of: Any) -> NotImplementedError:
    """Return the error for a dtype, or the dtype of an array, that PyTorch's kernel `name` does not support."""
    kind = of.scalar_type if isinstance(of, dtypes.dtype) else type_name(getattr(of, "dtype", of))
    return NotImplementedError(f"\"{name}\" not implemented for '{kind}'")


def check_floating(name: str, array: ndarray) -> None:
    """Raise an error unless the array has a real floating-point type."""
    if not is_floating(array.dtype):
        raise refuse(name, array)

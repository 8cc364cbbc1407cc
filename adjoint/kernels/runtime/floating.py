"""Floating-point numbers: kinds of dtype, the precision that kernels compute in, and NumPy's warnings, which are off.

Half types are computed in float32. Infinities and NaNs are values, not accidents, so nobody is warned of them:
`numpy.errstate` costs more than a small multiplication. NumPy keeps the state in a context variable; setting that
directly is ten times cheaper, and `seterr` remains the way where a future NumPy has it no longer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy
from numpy import ndarray

from ... import dtypes

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
FLOAT16 = numpy.dtype(numpy.float16)
FLOAT32 = numpy.dtype(numpy.float32)
HALVES = (FLOAT16, BFLOAT16)

UNBUFFERED_LENGTH = 192
"""From how many elements of a row on its loop may begin anew."""


def compute_dtype(dtype: numpy.dtype[Any]) -> numpy.dtype[Any]:
    """The type that arithmetic on `dtype` is done in: float32 for the half types, otherwise `dtype`."""
    return FLOAT32 if dtype.itemsize == 2 and dtype in HALVES else dtype


def widen(x: ndarray) -> ndarray:
    """`x` in the type that arithmetic on it is done in; `x` itself unless it is of a half type."""
    dtype = x.dtype
    if dtype.itemsize != 2 or dtype not in HALVES:
        return x
    return x.astype(FLOAT32)


def is_floating(dtype: numpy.dtype[Any]) -> bool:
    """Whether `dtype` is a real floating-point type (bfloat16, whose NumPy kind is void, included)."""
    return dtype.kind == "f" or dtype == BFLOAT16


def is_inexact(dtype: numpy.dtype[Any]) -> bool:
    """Whether `dtype` is a floating-point or complex type."""
    return dtype.kind in "fc" or dtype == BFLOAT16


def type_name(dtype: numpy.dtype[Any]) -> str:
    """The name of a type in error messages, as in `'Float'` or `'ComplexDouble'`."""
    return dtypes.from_numpy(dtype).scalar_type


try:
    from numpy._core.umath import _extobj_contextvar as _state
    from numpy._core.umath import _make_extobj

    _QUIET = _make_extobj(all="ignore")

    quiet = functools.partial(_state.set, _QUIET)
    """Turn the warnings off; returns what `restore` takes."""

    restore = _state.reset
    """Turn the warnings back to what they were."""

    _UNBUFFERED = _make_extobj(all="ignore", bufsize=16)

    def quiet_rows(length: int) -> Any:
        """`quiet`, and make NumPy's loops fast for broadcast rows of this length; returns what `restore` takes.

        NumPy's iterator copies operands that do not lie one after the other into buffers, unless rows fill these. Small ones
        are filled by rows from a few hundred elements on, for which copying costs more than beginning a loop anew.
        """
        return _state.set(_UNBUFFERED if length >= UNBUFFERED_LENGTH else _QUIET)

except ImportError:  # pragma: no cover

    def quiet() -> Any:  # type: ignore[misc]
        """Turn the warnings off; returns what `restore` takes."""
        return numpy.seterr(all="ignore")

    def restore(token: Any) -> None:
        """Turn the warnings back to what they were."""
        numpy.seterr(**token)

    def quiet_rows(length: int) -> Any:
        """`quiet`: here nothing is known of buffers."""
        return quiet()


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` with the warnings off."""
    token = quiet()
    try:
        return function(*args)
    finally:
        restore(token)


def refuse(name: str, array: ndarray) -> NotImplementedError:
    """The error for a dtype that PyTorch's kernel `name` is not defined for."""
    return NotImplementedError(f"\"{name}\" not implemented for '{type_name(array.dtype)}'")

"""Arrays of dtypes that `ml_dtypes` provides and kernels do not compute with: 8-bit floats, complex halves, bits.

They have a separate class, so no path for ordinary arrays accepts them. They are converted with PyTorch's rounding.
NumPy's kind of complex halves is "W". NumPy's functions convert complex halves to complex64, and refuse the other dtypes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy

from ... import dtypes
from ...dtypes import NARROW, complex32, from_numpy
from .floating import FLOAT32, quietly, refuse

COMPLEX64 = numpy.dtype(numpy.complex64)
HALVES = NARROW[complex32]

_NUMBERS = frozenset(held.num for held in NARROW.values())
_ONE_NAN = tuple(NARROW[kind] for kind in (dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz, dtypes.float8_e8m0fnu))
"""Dtypes with a single NaN, which has no sign. It is converted to the integer 0."""


def _part(name: str) -> property:
    def read(array: Any) -> Any:
        return plain(array).view([("real", "f2"), ("imag", "f2")])[name] if array.dtype == HALVES else array

    def write(array: Any, value: Any) -> None:
        read(array)[...] = value

    return property(read, write)


class Narrow(numpy.ndarray[Any, Any]):
    """An array of such a dtype. Its views have this class too, unless they have another dtype."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        if self.dtype != HALVES:
            name = "add_stub" if ufunc is numpy.add else f"{ufunc.__name__}_cpu"
            raise refuse(f"{name}", self)
        result = narrowed(getattr(ufunc, method)(*map(widened, inputs), **options))
        for target in out:
            target[...] = result
        return out[0] if out else result

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        if function is not numpy.copyto:
            return super().__array_function__(function, types, args, keywords)
        args[0][...] = cast(numpy.asanyarray(args[1]), args[0].dtype)
        return None

    def __setitem__(self, key: Any, value: Any) -> None:
        plain(self)[key] = cast(numpy.asanyarray(value), self.dtype)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:
        """Return the elements as another dtype."""
        dtype = numpy.dtype(dtype)
        return self if self.dtype == dtype and not keywords.get("copy", True) else kept(cast(self, dtype))

    def view(self, *args: Any, **keywords: Any) -> Any:
        """Return the bytes as another dtype or class."""
        result: Any = super().view(*args, **keywords)
        return result if is_narrow(result.dtype) else result.view(numpy.ndarray)

    real, imag = map(_part, ("real", "imag"))


def is_narrow(dtype: numpy.dtype[Any]) -> bool:
    """Return whether kernels do not compute with elements of `dtype`."""
    return dtype.num in _NUMBERS


def kept(array: Any) -> Any:
    """Return `array`, with the class `Narrow` if its dtype requires it."""
    return array.view(Narrow) if array.dtype.num in _NUMBERS and type(array) is numpy.ndarray else array


def plain(array: Any) -> Any:
    """Return the same memory as a plain array."""
    return array.view(numpy.ndarray) if type(array) is Narrow else array


def widened(value: Any) -> Any:
    """Return the numbers of a `Narrow` array in their computing type. Other values are returned unchanged."""
    if not isinstance(value, numpy.ndarray) or not is_narrow(value.dtype):
        return value
    return cast(value, COMPLEX64 if value.dtype == HALVES else FLOAT32)


def narrowed(array: Any, dtype: Any = HALVES) -> Any:
    """Round a result that was computed from `widened` numbers to `dtype`, or from complex halves to float16."""
    array = numpy.asarray(array)
    if array.dtype == FLOAT32:
        dtype = numpy.dtype(numpy.float16) if dtype == HALVES else dtype
    elif array.dtype != COMPLEX64 or dtype != HALVES:
        return array
    return kept(cast(array, dtype))


def cast(array: Any, dtype: numpy.dtype[Any]) -> Any:
    """Return a plain array of the elements of `array` as `dtype`. Each of the two dtypes may be narrow."""
    source = plain(array)
    return source.copy() if source.dtype == dtype else quietly(_cast, source, dtype)


@cache
def _numbers(dtype: numpy.dtype[Any]) -> Any:
    """Return all numbers of a dtype of eight bits as float32."""
    numbers = numpy.arange(256, dtype=numpy.uint8).view(dtype).astype(FLOAT32)
    if dtype in _ONE_NAN:
        numbers[numpy.isnan(numbers)] = numpy.nan
    return numbers


def _cast(array: Any, dtype: numpy.dtype[Any]) -> Any:
    for held in (array.dtype, dtype):
        if is_narrow(held) and "converts" not in (from_numpy(held).roles or ""):
            raise refuse("copy_", held)
    if array.dtype == HALVES:
        array = array.astype(COMPLEX64)
    elif is_narrow(array.dtype) and not (array.dtype in _ONE_NAN and dtype.kind in "iu"):
        array = numpy.asarray(_numbers(array.dtype)[array.view(numpy.uint8)])
    if not is_narrow(dtype):
        return array.astype(dtype)
    if dtype == HALVES:
        return array.astype(COMPLEX64, copy=False).astype(dtype)
    array = (array.real if array.dtype.kind == "c" else array).astype(FLOAT32)
    kind = from_numpy(dtype)
    if kind is dtypes.float8_e4m3fn:  # saturates
        numpy.clip(array, -448.0, 448.0, out=array)
    elif kind is dtypes.float8_e8m0fnu:  # has no sign, and no zero
        numpy.abs(array, out=array)
    result = array.astype(dtype)
    codes = result.view(numpy.uint8)
    if kind is dtypes.float8_e8m0fnu:
        numpy.copyto(codes, 0, where=array == 0)
    elif kind is dtypes.float8_e5m2:  # PyTorch's NaN
        numpy.bitwise_or(codes, 3, out=codes, where=numpy.isnan(array))
    return result

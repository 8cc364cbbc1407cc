"""Select between elements by a condition, by order, or by bounds.

Elements that are not selected have no effect, even if `0 * inf` would be NaN, because masks are never factors.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy
from numpy._core.umath import clip  # type: ignore[attr-defined]  # the ufunc: `numpy.clip` is written in Python

from ..._runtime.tracebacks import warn
from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import of_any_size, of_kinds
from ...codegen.pointwise import pointwise
from ...codegen.selection import choose, chosen
from ...codegen.tracing import xp
from ...dtypes import Rank, can_cast, from_numpy, promote, scalar_dtype
from ..memory.copying import expanded
from ..runtime.costs import LARGE
from ..runtime.floating import Array, c_name, is_floating, refuse, type_name
from ..runtime.positions import gives_positions
from ..runtime.scalar import ZERO, typed

_BOOL = numpy.dtype(bool)
_PLAIN = frozenset((int, float, type(None)))


def common_dtype(*values: Any) -> numpy.dtype[Any]:
    """Return the common dtype of arrays and numbers. Numbers influence the dtype as in `dtypes.promote`."""
    operands = []
    for value in values:
        if isinstance(value, numpy.ndarray):
            operands.append((from_numpy(value.dtype), Rank.DIMENSIONED if value.ndim else Rank.ZERO_DIM))
        elif value is not None:
            operands.append((scalar_dtype(value), Rank.SCALAR))
    return promote(tuple(operands)).numpy


def promoted(*arrays: Array) -> list[Array]:
    """Return the arrays in their common dtype."""
    whole = [numpy.asarray(array) for array in arrays]  # some may be scalars
    dtype = common_dtype(*whole)
    return [array.astype(dtype, copy=False) for array in whole]


# --- by a condition -------------------------------------------------------------------------------------------


def where(condition: Array, self: Array, other: Array) -> Array:
    """Return `self` where `condition` is true, and `other` elsewhere."""
    if condition.dtype is not _BOOL:
        if condition.dtype != numpy.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{type_name(condition.dtype)}"
            )
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of "
            "PyTorch. Use a boolean condition instead."
        )
        condition = condition.astype(bool)
    if self.dtype is not other.dtype:
        self, other = promoted(self, other)
    found = chosen(condition, self, other)
    return choose(condition, self, other) if found is NotImplemented else found


@gives_positions()
def indices_where(condition: Array) -> tuple[Array, ...]:
    """Return the indices of nonzero elements, one array per dimension (and one for a scalar array)."""
    return numpy.nonzero(numpy.atleast_1d(condition))


def heaviside(self: Array, values: Array) -> Array:
    """Return 0 where `self` is negative or NaN, 1 where it is positive, and `values` where it is 0."""
    if self.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if self.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if is_floating(self.dtype):
        return numpy.asarray(_heaviside(self, values))
    zero = ZERO[self.dtype]
    return numpy.where(self == zero, values, self > zero)


@pointwise("heaviside_cpu")
def _heaviside(self: Array, values: Array) -> Any:
    return xp.where(self == 0, values, xp.where(self > 0, 1, 0))


# --- by order -------------------------------------------------------------------------------------------------


def _unordered(name: str, _: Array) -> Exception:
    return RuntimeError(f"{name} not implemented for complex tensors.")


maximum, minimum, fmax, fmin = (
    of_kinds(ufunc, "biufVW", functools.partial(_unordered, ufunc.__name__))
    for ufunc in (numpy.maximum, numpy.minimum, numpy.fmax, numpy.fmin)
)


# --- by bounds ------------------------------------------------------------------------------------------------


def clamp(self: Array, min: Any = None, max: Any = None, out: Array | None = None) -> Array:
    """Return `self` limited to `[min, max]`, which are numbers, arrays, or None. If `min` is greater, the result is `max`."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    dtype = self.dtype
    if dtype.kind == "f" and type(min) in _PLAIN and type(max) in _PLAIN:
        low, high = _numbers(min, max, dtype)
        if LOOPS.takes(self.size, LARGE):
            return _limited(self, low, high, out)
        target = out if out is not None and out.dtype is dtype and out.shape == self.shape else None
        return clip(self, typed(low, dtype), typed(high, dtype), target)
    only = max if min is None else min if max is None else None
    if dtype.kind == "f" and type(only) is numpy.ndarray and only.dtype is dtype:
        return (_minimum if min is None else _maximum)(self, only)
    else:
        self = numpy.asarray(self)
        if dtype.kind not in "iub" and (type(min) is complex or type(max) is complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
        if not (self.ndim and dtype.kind in "fi" and _has_dtype(min, dtype) and _has_dtype(max, dtype)):
            dtype = common_dtype(self, min, max)
        if dtype.kind == "c":
            raise NotImplementedError("clamp is not supported for complex types")
        if dtype.kind == "b" and not isinstance(min if max is None else max, numpy.ndarray):
            raise refuse("clamp_scalar_cpu", numpy.zeros((), dtype))
        if dtype.kind == "b" and min is not None and max is not None:
            raise refuse("clamp_cpu", numpy.zeros((), dtype))
        if dtype is not self.dtype:
            self = self.astype(dtype)
    least = None if min is None else _bound(min, dtype)
    most = None if max is None else _bound(max, dtype)
    if least is not None and most is not None and LOOPS.takes(self.size, LARGE) and dtype.kind in "fiu":
        if least.ndim == most.ndim == 0:
            return _limited(self, least.item(), most.item())
        return _limited_by_arrays(self, least, most)
    if least is not None and most is not None and dtype.kind in "iu":
        return numpy.asarray(clip(self, least, most))
    if least is not None:
        self = _maximum(self, least)
    return self if most is None else _minimum(self, most)


_maximum, _minimum = of_any_size(numpy.maximum), of_any_size(numpy.minimum)


def clamp_(self: Array, min: Any = None, max: Any = None) -> Array:
    """Compute `clamp` in place."""
    result = clamp(self, min, max, self)
    if result is self:
        return self
    if not can_cast(from_numpy(result.dtype), from_numpy(self.dtype)):
        given, wanted = type_name(result.dtype), c_name(self.dtype)
        raise RuntimeError(f"result type {given} can't be cast to the desired output type {wanted}")
    numpy.copyto(self, expanded(result, self), casting="unsafe")
    return self


@pointwise("clamp_cpu", "fiu")
def _limited(self: Array, min: float, max: float) -> Any:
    """Compute `clamp` of many numbers. A zero that equals a bound keeps its sign."""
    raised = xp.where(self == min, self, xp.maximum(self, min))
    return xp.where(raised == max, raised, xp.minimum(raised, max))


@pointwise("clamp_cpu", "fiu")
def _limited_by_arrays(self: Array, min: Array, max: Array) -> Any:
    """Compute `clamp` of many numbers with separate limits."""
    return xp.minimum(xp.maximum(self, min), max)


def _numbers(min: Any, max: Any, dtype: numpy.dtype[Any]) -> tuple[float, float]:
    """Return the bounds as numbers, which must be in the range of float16 if this is the dtype."""
    if dtype.itemsize == 2:
        for bound in (min, max):
            if bound is not None:
                typed(bound, dtype)
    return -math.inf if min is None else min, math.inf if max is None else max


def _has_dtype(bound: Any, dtype: numpy.dtype[Any]) -> bool:
    """Return whether a bound certainly does not change the common dtype, which is `dtype`."""
    return bound is None or (type(bound) is int or getattr(bound, "dtype", None) is dtype)


def _bound(bound: Any, dtype: numpy.dtype[Any]) -> Array:
    if isinstance(bound, numpy.ndarray):
        return bound if bound.dtype is dtype else bound.astype(dtype)
    return typed(bound, dtype)


def clamp_min(self: Array, min: Any) -> Array:
    """Return `self`, but at least `min`, which is a number or an array."""
    return maximum(*promoted(self, min)) if isinstance(min, numpy.ndarray) else clamp(self, min)


def clamp_max(self: Array, max: Any) -> Array:
    """Return `self`, but at most `max`, which is a number or an array."""
    return minimum(*promoted(self, max)) if isinstance(max, numpy.ndarray) else clamp(self, None, max)


def inside(self: Array, min: Any = None, max: Any = None) -> Array:
    """Return whether `self` is in `[min, max]`, including the bounds."""
    if min is None:
        return self <= max
    return (self >= min) if max is None else (self >= min) & (self <= max)

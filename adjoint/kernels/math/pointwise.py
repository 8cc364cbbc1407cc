"""Elementwise functions of one array that NumPy lacks, or whose rules for dtypes differ from NumPy's.

`fused` makes kernels of functions of several passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...codegen.kernel import FLOATS, Kernel
from ..memory.copying import clone
from ..runtime.floating import BFLOAT16, HALVES, is_floating, type_name, widen
from ..runtime.parallel import parallel_rows
from ..runtime.scalar import ONE, ZERO, Number

Array = numpy.ndarray[Any, Any]

_TILED = 1 << 15
_FLOAT32, _FLOAT64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
_PI = Number(math.pi)
_DEGREE = Number(math.pi / 180)
_RADIAN = Number(180 / math.pi)


def fused(name: str, kinds: str = "fc") -> Callable[[Any], Any]:
    """Make a function of float32 or float64 arrays of one shape into a kernel for any size and any float.

    Half types are computed in float32 and rounded once; large contiguous arrays go in tiles that stay in cache, on
    several threads. Arguments that are not arrays of the first one's shape are passed on. Dtypes that are not of the
    given `kinds` (NumPy's) are refused in the name of PyTorch's kernel.
    """

    def decorate(function: Any) -> Any:
        def of_two(first: Array, second: Any) -> Array:  # which is faster to call
            dtype = first.dtype
            if (dtype is _FLOAT32 or dtype is _FLOAT64) and first.size < _TILED:
                return function(first, second)
            return _general(function, name, kinds, (first, second), {})

        def of_any(first: Array, *rest: Any, **options: Any) -> Array:
            dtype = first.dtype
            if (dtype is _FLOAT32 or dtype is _FLOAT64) and first.size < _TILED:
                return function(first, *rest, **options)
            return _general(function, name, kinds, (first, *rest), options)

        code = function.__code__
        plain = code.co_argcount == 2 and not code.co_kwonlyargcount and not function.__defaults__
        kernel: Any = of_two if plain else of_any
        kernel.__name__ = kernel.__qualname__ = function.__name__
        kernel.__doc__ = function.__doc__
        return Kernel(kernel, small=function, takes=FLOATS, limit=_TILED)

    return decorate


def _general(function: Any, name: str, kinds: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Array:
    first = arguments[0]
    dtype = first.dtype
    if dtype.itemsize == 2 and dtype in HALVES:
        widened = tuple(widen(item) if hasattr(item, "dtype") else item for item in arguments)
        return numpy.asarray(_in_tiles(function, widened, options)).astype(dtype)
    if dtype.kind not in kinds:
        raise refuse(name, first)
    return _in_tiles(function, arguments, options)


def _in_tiles(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Array:
    first = arguments[0]
    if first.size < _TILED:
        return function(*arguments, **options)
    cut = [isinstance(item, numpy.ndarray) and item.shape == first.shape for item in arguments]
    fits = [
        item.flags.c_contiguous if is_cut else getattr(item, "size", 1) == 1
        for item, is_cut in zip(arguments, cut, strict=True)
    ]
    if not all(fits):
        return function(*arguments, **options)
    flat = [item.reshape(-1) if is_cut else item for item, is_cut in zip(arguments, cut, strict=True)]
    result = numpy.empty(first.shape, first.dtype)
    target = result.reshape(-1)

    def work(start: int, stop: int) -> None:
        parts = [item[start:stop] if is_cut else item for item, is_cut in zip(flat, cut, strict=True)]
        target[start:stop] = function(*parts, **options)

    parallel_rows(work, first.size, first.itemsize * (sum(cut) + 1))
    return result


def refuse(name: str, array: Array) -> NotImplementedError:
    """The error for a dtype that `name` is not defined for."""
    return NotImplementedError(f"\"{name}\" not implemented for '{type_name(array.dtype)}'")


# --- exponentials ---------------------------------------------------------------------------------------------


@fused("sigmoid_cpu")
def sigmoid(self: Array) -> Array:
    """`1 / (1 + exp(-self))`."""
    result = numpy.exp(-self)
    result += ONE[self.dtype]
    return numpy.reciprocal(result)


@fused("sigmoid_backward_cpu")
def sigmoid_backward(grad: Array, result: Array) -> Array:
    """`grad * (1 - result) * result`."""
    product = ONE[result.dtype] - result
    product *= result
    if product.dtype.kind == "c":
        product = product.conj()
    product *= grad
    return product


@fused("tanh_backward_cpu")
def tanh_backward(grad: Array, result: Array) -> Array:
    """`grad * (1 - result ** 2)`."""
    dtype = result.dtype
    product = ONE[dtype] - result * result
    if dtype.kind == "c":
        product = product.conj()
    product *= grad
    return product


@fused("rsqrt_cpu")
def rsqrt(self: Array) -> Array:
    """`1 / sqrt(self)`."""
    return numpy.reciprocal(numpy.sqrt(self))


@fused("logit_cpu", "f")
def logit(self: Array, eps: float | None = None) -> Array:
    """`log(self / (1 - self))`, `self` first clamped to `[eps, 1 - eps]` if `eps` is given."""
    one = ONE[self.dtype]
    if eps is not None:
        low = numpy.asarray(eps, self.dtype)
        self = numpy.where(self < low, low, numpy.where(self > one - low, one - low, self))
    return numpy.log(self / (one - self))


@fused("logit_backward_cpu", "f")
def logit_backward(grad: Array, self: Array, eps: float | None = None) -> Array:
    """The derivative of `logit` times `grad`: 0 where `self` was clamped, nan outside [0, 1] if nothing is."""
    low = ZERO[self.dtype] if eps is None else numpy.asarray(eps, self.dtype)
    outside = numpy.asarray(math.nan if eps is None else 0.0, self.dtype)
    inside = (self >= low) & (self <= ONE[self.dtype] - low)
    return numpy.where(inside, grad / (self * (ONE[self.dtype] - self)), outside)


@fused("sinc_cpu")
def sinc(self: Array) -> Array:
    """`sin(pi * self) / (pi * self)`, 1 at 0."""
    angle = self * _PI[self.dtype]
    with_hole = numpy.sin(angle) / angle
    return numpy.where(self == ZERO[self.dtype], ONE[self.dtype], with_hole)


# --- angles ---------------------------------------------------------------------------------------------------


@fused("deg2rad_cpu")
def deg2rad(self: Array) -> Array:
    """Degrees as radians."""
    if self.dtype.kind == "c":
        raise RuntimeError("deg2rad is not supported for complex tensors.")
    return self * _DEGREE[self.dtype]


@fused("rad2deg_cpu")
def rad2deg(self: Array) -> Array:
    """Radians as degrees."""
    if self.dtype.kind == "c":
        raise RuntimeError("rad2deg is not supported for complex tensors.")
    return self * _RADIAN[self.dtype]


def angle(self: Array) -> Array:
    """The argument of complex numbers; of real ones 0 or, where negative, pi. nan stays nan."""
    if self.dtype.kind == "c":
        return numpy.arctan2(self.imag, self.real, order="C")
    angles = numpy.where(self < ZERO[self.dtype], _PI[self.dtype], ZERO[self.dtype])
    return numpy.where(numpy.isnan(self), self, angles)


def conj(self: Array) -> Array:
    """The complex conjugates; a real array itself."""
    return numpy.conjugate(self) if self.dtype.kind == "c" else self


# --- rounding -------------------------------------------------------------------------------------------------


def _rounding(name: str, ufunc: Any) -> Any:
    def kernel(self: Array) -> Array:
        if self.dtype.kind in "iu":
            return clone(self)
        if self.dtype.kind == "c":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        if self.dtype.kind == "b":
            raise refuse(f"{name}_vml_cpu", self)
        return ufunc(self)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.__doc__ = f"`numpy.{ufunc.__name__}` of floating-point numbers; integers as they are."
    return kernel


floor = _rounding("floor", numpy.floor)
ceil = _rounding("ceil", numpy.ceil)
trunc = _rounding("trunc", numpy.trunc)
rint = _rounding("round", numpy.rint)


@fused("round_cpu", "f")
def round_decimals(self: Array, decimals: int) -> Array:
    """`self` rounded to `decimals` decimal places (before the point, if negative), halves to even."""
    scale = numpy.asarray(10.0 ** abs(decimals), self.dtype)
    return numpy.rint(self * scale) / scale if decimals >= 0 else numpy.rint(self / scale) * scale


def frac(self: Array) -> Array:
    """What is left of `self` without its integer part; it has the sign of `self`."""
    if not is_floating(self.dtype):
        raise refuse("frac_cpu", self)
    return self - numpy.trunc(self)


# --- signs ----------------------------------------------------------------------------------------------------


def absolute(self: Array) -> Array:
    """Magnitudes: real, of complex numbers too."""
    if self.dtype.kind == "b":
        raise refuse("abs_cpu", self)
    return numpy.absolute(self)


def neg(self: Array) -> Array:
    """The negative."""
    if self.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return numpy.negative(self)


def sign(self: Array) -> Array:
    """-1, 0 or 1; 0 for nan."""
    if self.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if self.dtype.kind == "b":
        return clone(self)
    if self.dtype.kind in "iu":
        return numpy.sign(self)
    zero = ZERO[self.dtype]
    return (self > zero).astype(self.dtype) - (self < zero).astype(self.dtype)


def sgn(self: Array) -> Array:
    """`sign`; of complex numbers the number of magnitude 1 in the same direction, 0 for 0."""
    if self.dtype.kind != "c":
        return sign(self)
    magnitude = numpy.absolute(self)
    return numpy.where(magnitude == 0, ZERO[self.dtype], self / magnitude).astype(self.dtype, copy=False)


# --- properties -----------------------------------------------------------------------------------------------


def _property(name: str, ufunc: Any) -> Any:
    def kernel(self: Array) -> Array:
        return numpy.zeros_like(self, bool) if self.dtype.kind in "iub" else ufunc(self)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.__doc__ = f"`numpy.{ufunc.__name__}`, False for integers."
    return kernel


isnan = _property("isnan", numpy.isnan)
isinf = _property("isinf", numpy.isinf)


def isfinite(self: Array) -> Array:
    """Whether elements are neither infinite nor nan."""
    return numpy.ones_like(self, bool) if self.dtype.kind in "iub" else numpy.isfinite(self)


def isposinf(self: Array) -> Array:
    """Whether elements are infinite and positive."""
    if self.dtype.kind == "c":
        raise RuntimeError("isposinf does not support complex inputs.")
    return isinf(self) & (self > ZERO[self.dtype])


def isneginf(self: Array) -> Array:
    """Whether elements are infinite and negative."""
    if self.dtype.kind == "c":
        raise RuntimeError("isneginf does not support complex inputs.")
    return isinf(self) & (self < ZERO[self.dtype])


def isreal(self: Array) -> Array:
    """Whether the imaginary part is 0."""
    return self.imag == 0 if self.dtype.kind == "c" else numpy.ones_like(self, bool)


def signbit(self: Array) -> Array:
    """Whether the sign is set, also that of zeros and nans."""
    if self.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return self < ZERO[self.dtype] if self.dtype.kind in "iub" else numpy.signbit(self)


def nan_to_num(
    self: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Finite numbers for nans and infinities, by default 0 and the dtype's extremes; in both parts if complex."""
    if self.dtype.kind in "iub":
        return clone(self)
    if self.dtype.kind == "c":
        result = numpy.asarray(numpy.positive(self))
        result.real = nan_to_num(self.real, nan, posinf, neginf)
        result.imag = nan_to_num(self.imag, nan, posinf, neginf)
        return result
    result = numpy.asarray(numpy.positive(self))
    limits = numpy.finfo(self.dtype) if self.dtype != BFLOAT16 else _bfloat16_limits()
    isnan_, positive, negative = numpy.isnan(self), isposinf(self), isneginf(self)
    result[isnan_] = 0 if nan is None else nan
    result[positive] = limits.max if posinf is None else posinf
    result[negative] = limits.min if neginf is None else neginf
    return result


def _bfloat16_limits() -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(BFLOAT16)

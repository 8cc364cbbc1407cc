"""The elementwise functions of `torch`, with the standard's promotion rules for two operands."""

from __future__ import annotations

from collections.abc import Callable

import adjoint as torch

from .data_types import Scalar, as_common

__all__ = """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
    greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not
    logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder round
    sign signbit sin sinh sqrt square subtract tan tanh trunc
""".split()


Operand = torch.Tensor | Scalar


def _of_one(name: str, function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the function of `torch` for one operand."""

    def apply(x: torch.Tensor, /) -> torch.Tensor:
        return function(x)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`torch.{function.__name__}` of each element."
    return apply


def _of_two(name: str, function: Callable[..., torch.Tensor]) -> Callable[[Operand, Operand], torch.Tensor]:
    """Return the function of `torch` for two operands of any dtypes. One operand may be a number."""

    def apply(x1: Operand, x2: Operand, /) -> torch.Tensor:
        return function(*as_common(x1, x2))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`torch.{function.__name__}` of operands that are promoted first; one of them may be a number."
    return apply


abs = _of_one("abs", torch.abs)
acos = _of_one("acos", torch.acos)
acosh = _of_one("acosh", torch.acosh)
asin = _of_one("asin", torch.asin)
asinh = _of_one("asinh", torch.asinh)
atan = _of_one("atan", torch.atan)
atanh = _of_one("atanh", torch.atanh)
ceil = _of_one("ceil", torch.ceil)
cos = _of_one("cos", torch.cos)
cosh = _of_one("cosh", torch.cosh)
exp = _of_one("exp", torch.exp)
expm1 = _of_one("expm1", torch.expm1)
floor = _of_one("floor", torch.floor)
isfinite = _of_one("isfinite", torch.isfinite)
isinf = _of_one("isinf", torch.isinf)
isnan = _of_one("isnan", torch.isnan)
log = _of_one("log", torch.log)
log1p = _of_one("log1p", torch.log1p)
log2 = _of_one("log2", torch.log2)
log10 = _of_one("log10", torch.log10)
logical_not = _of_one("logical_not", torch.logical_not)
negative = _of_one("negative", torch.negative)
positive = _of_one("positive", torch.positive)
real = _of_one("real", torch.real)
reciprocal = _of_one("reciprocal", torch.reciprocal)
signbit = _of_one("signbit", torch.signbit)
sin = _of_one("sin", torch.sin)
sinh = _of_one("sinh", torch.sinh)
sqrt = _of_one("sqrt", torch.sqrt)
square = _of_one("square", torch.square)
tan = _of_one("tan", torch.tan)
tanh = _of_one("tanh", torch.tanh)
trunc = _of_one("trunc", torch.trunc)
bitwise_invert = _of_one("bitwise_invert", torch.bitwise_not)
conj = _of_one("conj", torch.conj_physical)

add = _of_two("add", torch.add)
atan2 = _of_two("atan2", torch.atan2)
bitwise_and = _of_two("bitwise_and", torch.bitwise_and)
bitwise_left_shift = _of_two("bitwise_left_shift", torch.bitwise_left_shift)
bitwise_or = _of_two("bitwise_or", torch.bitwise_or)
bitwise_right_shift = _of_two("bitwise_right_shift", torch.bitwise_right_shift)
bitwise_xor = _of_two("bitwise_xor", torch.bitwise_xor)
copysign = _of_two("copysign", torch.copysign)
divide = _of_two("divide", torch.div)
equal = _of_two("equal", torch.eq)
greater = _of_two("greater", torch.gt)
greater_equal = _of_two("greater_equal", torch.ge)
hypot = _of_two("hypot", torch.hypot)
less = _of_two("less", torch.lt)
less_equal = _of_two("less_equal", torch.le)
logaddexp = _of_two("logaddexp", torch.logaddexp)
logical_and = _of_two("logical_and", torch.logical_and)
logical_or = _of_two("logical_or", torch.logical_or)
logical_xor = _of_two("logical_xor", torch.logical_xor)
maximum = _of_two("maximum", torch.maximum)
minimum = _of_two("minimum", torch.minimum)
multiply = _of_two("multiply", torch.mul)
nextafter = _of_two("nextafter", torch.nextafter)
not_equal = _of_two("not_equal", torch.ne)
pow = _of_two("pow", torch.pow)
subtract = _of_two("subtract", torch.sub)


def clip(x: torch.Tensor, /, min: Operand | None = None, max: Operand | None = None) -> torch.Tensor:
    """Return the elements limited to two bounds, in the dtype of `x`."""
    if not x.dtype.is_floating_point and x.dtype is not torch.bool:
        limits = torch.iinfo(x.dtype)
        min = None if isinstance(min, int) and min <= limits.min else min
        max = None if isinstance(max, int) and max >= limits.max else max
    if min is None and max is None:
        return x.clone()
    bounds = [None if each is None else torch.asarray(each, dtype=x.dtype) for each in (min, max)]
    return torch.clamp(x, *bounds)


def floor_divide(x1: Operand, x2: Operand, /) -> torch.Tensor:
    """Return the quotients rounded down. An infinity divided by a finite number gives an infinity."""
    first, second = as_common(x1, x2)
    result = torch.floor_divide(first, second)
    if not result.dtype.is_floating_point:
        return result
    return torch.where(torch.isinf(first) & torch.isfinite(second), first / second, result)


def remainder(x1: Operand, x2: Operand, /) -> torch.Tensor:
    """Return the remainders of floored divisions. A remainder has the sign of its divisor, even if the remainder is zero."""
    first, second = as_common(x1, x2)
    result = torch.remainder(first, second)
    return (
        torch.where(result == 0, torch.copysign(result, second), result) if result.dtype.is_floating_point else result
    )


def imag(x: torch.Tensor, /) -> torch.Tensor:
    """Return the imaginary part, which is zero for real tensors."""
    return torch.imag(x) if x.dtype.is_complex else torch.zeros_like(x)


def round(x: torch.Tensor, /) -> torch.Tensor:
    """Return the nearest integers, with halves rounded to even integers. Both parts of a complex number are rounded."""
    return torch.complex(torch.round(x.real), torch.round(x.imag)) if x.dtype.is_complex else torch.round(x)


def sign(x: torch.Tensor, /) -> torch.Tensor:
    """The signs.

    NaN gives NaN. The sign of a complex number, even of an infinite number, has absolute value one and the direction of
    the number.
    """
    if not x.dtype.is_complex:
        return torch.where(torch.isnan(x), x, torch.sgn(x)) if x.dtype.is_floating_point else torch.sgn(x)
    parts = [torch.copysign(torch.isinf(part).to(part.dtype), part) for part in (x.real, x.imag)]
    signs = torch.sgn(torch.where(torch.isinf(x), torch.complex(*parts), x))
    return torch.where(torch.isnan(x), complex("nan+nanj"), signs)

"""Special functions elementwise: the error function, the gamma function's logarithm, the normal distribution, Bessel functions.

float64 is accurate to a few units in the last place (near the zeros of `lgamma`, `digamma` and `log_ndtr`, relative to
the terms that cancel there). float32 is computed in float64 and rounded, except `erf`. The formulas are polynomials and
rational functions, each on the part of the array that lies in its range; small arrays go through the `math` module,
which costs less than a formula's many passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import asarray, ndarray

from ...codegen.elementary import decomposition, elementary
from ...codegen.pointwise import pointwise
from ...codegen.tracing import ARRAY, apply, xp
from ..runtime.scalar import Number

Array = numpy.ndarray[Any, Any]

_FEW = 512  # elements up to which a Python call for each is the cheaper way
_SQRT_HALF = math.sqrt(0.5)
_INVERSE_SQRT_PI = 1 / math.sqrt(math.pi)


class _Polynomial:
    """Coefficients from the highest power down; called with an array, its values."""

    def __init__(self, *coefficients: float) -> None:
        self._numbers = [Number(c) for c in coefficients]

    def __call__(self, x: Any) -> Any:
        dtype = x.dtype
        first, second, *rest = self._numbers
        result = x * first[dtype]
        result += second[dtype]
        for number in rest:
            result *= x
            result += number[dtype]
        return result


def _pointwise(refusal: str) -> Callable[[Callable[..., Any]], Any]:
    """Make a function `_name` of float64 arrays into the elementary function `name`, and return the kernel of that alone."""

    def declare(function: Callable[..., Any]) -> Any:
        name = function.__name__.removeprefix("_")
        elementary(name)(function)

        def of_one(self: Any) -> Any:
            return apply(name, self)

        def of_two(self: Any, other: Any) -> Any:
            return apply(name, self, other)

        expression = of_one if function.__code__.co_argcount == 1 else of_two
        expression.__annotations__ = dict.fromkeys(("self", "other"), ARRAY)
        expression.__name__, expression.__doc__ = name, function.__doc__
        return pointwise(refusal)(expression)

    return declare


def _one_by_one(function: Callable[[float], float], x: ndarray) -> ndarray:
    result = numpy.empty_like(x)
    result[...] = numpy.fromiter(map(function, x.reshape(-1).tolist()), numpy.float64, x.size).reshape(x.shape)
    return result


def _piecewise(x: ndarray, *pieces: tuple[ndarray, Callable[[ndarray], Any]]) -> ndarray:
    """Each function's values where its condition is the first to hold; nan where none does."""
    result = numpy.full_like(x, math.nan)
    free = numpy.ones_like(x, bool)
    for condition, function in pieces:
        here = condition & free
        if here.all():
            return asarray(function(x))
        if here.any():
            result[here] = function(x[here])
            free &= ~condition
    return result


# ---------------------------------------------------------------------------------------------------------------------
# The error function

# erf(x) = tanh(x p(x ** 2)); p fits atanh(erf(x)) / x on [0, 4.1] with a relative error of erf below 3.2e-8.
_ERF_SINGLE = (
    -1.6407388343877219e-09, 5.391642685877616e-08, -5.15099497376279e-07, -1.860991090529486e-06,
    7.648922059040508e-05, -0.0006036801154681473, -0.00020215277085595495, 0.10277131534988769, 1.1283792022806272,
)  # fmt: skip
_ERF_SINGLE_LIMIT = 16.8

# W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969).
_CODY_A = _Polynomial(
    1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3
)
_CODY_B = _Polynomial(1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_CODY_C = _Polynomial(
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
    8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
)  # fmt: skip
_CODY_D = _Polynomial(
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)  # fmt: skip
_CODY_P = _Polynomial(
    1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
    1.60837851487422766e-2, 6.58749161529837803e-4,
)  # fmt: skip
_CODY_Q = _Polynomial(
    1.0,
    2.56852019228982242,
    1.87295284992346725,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_CODY_SPLIT = 0.46875


def _erf(x: ndarray) -> ndarray:
    """The error function, twice the integral of exp(-t ** 2) / sqrt(pi) from 0 to `x`."""
    if x.size <= _FEW:
        return _one_by_one(math.erf, x)
    magnitude = numpy.abs(x)
    return _piecewise(
        x,
        (asarray(magnitude <= _CODY_SPLIT), _erf_center),
        (asarray(magnitude >= 0), _erf_outside),
    )


erf = _pointwise("erf_vml_cpu")(_erf)


@decomposition("erf", numpy.float32)
def _erf_single(x: Any) -> Any:
    square = xp.minimum(x * x, _ERF_SINGLE_LIMIT)
    slope = square * _ERF_SINGLE[0] + _ERF_SINGLE[1]
    for coefficient in _ERF_SINGLE[2:]:
        slope = slope * square + coefficient
    return xp.tanh(slope * x)


def _erf_outside(x: ndarray) -> Any:
    """Beyond 4 the complement is below 2e-8, so what the formula for [0.46875, 4] loses there does not show."""
    magnitude = numpy.minimum(numpy.abs(x), 6)
    complement = _CODY_C(magnitude)
    complement /= _CODY_D(magnitude)
    magnitude *= -magnitude
    complement *= numpy.exp(magnitude, out=magnitude)
    return numpy.copysign(1 - complement, x)


def _erf_center(x: ndarray) -> Any:
    square = x * x
    return x * (_CODY_A(square) / _CODY_B(square))


def _erfc(x: ndarray) -> ndarray:
    """1 - erf(x), without cancellation for large `x`."""
    if x.size <= _FEW:
        return _one_by_one(math.erfc, x)
    return _piecewise(
        x,
        (asarray(numpy.abs(x) <= _CODY_SPLIT), lambda part: 1 - _erf_center(part)),
        (asarray(x > 0), _erfc_positive),
        (asarray(x < 0), lambda part: 2 - _erfc_positive(-part)),
    )


erfc = _pointwise("erfc_vml_cpu")(_erfc)


def _erfc_positive(x: Any) -> Any:
    """Where `x` is not less than 0.46875. The square is split so that its rounding is not magnified by exp."""
    high = numpy.trunc(x * 16) / 16
    with_finite = numpy.where(numpy.isinf(x), 0, (x - high) * (x + high))
    return numpy.exp(-high * high) * numpy.exp(-with_finite) * _erfcx_positive(x)


def _erfcx_positive(x: ndarray) -> ndarray:
    return _piecewise(
        x,
        (asarray(x <= 4), lambda part: _CODY_C(part) / _CODY_D(part)),
        (asarray(x > 4), _erfcx_tail),
    )


def _erfcx_tail(x: ndarray) -> Any:
    inverse = 1 / (x * x)
    return (_INVERSE_SQRT_PI - inverse * (_CODY_P(inverse) / _CODY_Q(inverse))) / x


def _erfcx(x: ndarray) -> ndarray:
    """exp(x ** 2) * erfc(x)."""
    return _piecewise(
        x,
        (asarray(numpy.abs(x) <= _CODY_SPLIT), lambda part: numpy.exp(part * part) * (1 - _erf_center(part))),
        (asarray(x > 0), _erfcx_positive),
        (asarray(x < 0), lambda part: 2 * numpy.exp(part * part) - _erfcx_positive(-part)),
    )


erfcx = _pointwise("erfcx_cpu")(_erfcx)


# ---------------------------------------------------------------------------------------------------------------------
# The normal distribution

# M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37 (1988).
_AS241_A = _Polynomial(
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080,
)  # fmt: skip
_AS241_B = _Polynomial(
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
_AS241_C = _Polynomial(
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
    3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
)  # fmt: skip
_AS241_D = _Polynomial(
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0,
)  # fmt: skip
_AS241_E = _Polynomial(
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
)  # fmt: skip
_AS241_F = _Polynomial(
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip


def _quantile(distance: ndarray, tail: ndarray) -> ndarray:
    """The normal quantile at 0.5 + distance, where 0.5 - abs(distance) is `tail`, given apart to keep its precision."""
    result = numpy.full_like(distance, math.nan)
    center = asarray(numpy.abs(distance) <= 0.425)
    q = distance[center]
    square = 0.180625 - q * q
    result[center] = q * (_AS241_A(square) / _AS241_B(square))
    outside = asarray((tail > 0) & ~center)
    root = numpy.sqrt(-numpy.log(tail[outside]))
    size = _piecewise(
        root,
        (root <= 5, lambda r: _AS241_C(r - 1.6) / _AS241_D(r - 1.6)),
        (root > 5, lambda r: _AS241_E(r - 5) / _AS241_F(r - 5)),
    )
    result[outside] = numpy.copysign(size, distance[outside])
    edge = asarray(tail == 0)
    result[edge] = numpy.copysign(math.inf, distance[edge])
    return result


def _ndtri(x: ndarray) -> ndarray:
    """The number that a standard normal variable is below with probability `x`; the inverse of `ndtr`."""
    return _quantile(asarray(x - 0.5), asarray(numpy.minimum(x, 1 - x)))


ndtri = _pointwise("ndtri_cpu")(_ndtri)


def _erfinv(x: ndarray) -> ndarray:
    """The inverse of `erf`: infinite at -1 and 1, nan beyond."""
    result = _quantile(asarray(x * 0.5), asarray((1 - numpy.abs(x)) * 0.5))
    result *= _SQRT_HALF
    return result


erfinv = _pointwise("erfinv_vml_cpu")(_erfinv)


def _ndtr(x: ndarray) -> ndarray:
    """The probability that a standard normal variable is below `x`."""
    return 0.5 * _erfc(asarray(x * -_SQRT_HALF))


ndtr = _pointwise("ndtr_cpu")(_ndtr)


def _log_ndtr(x: ndarray) -> ndarray:
    """The logarithm of `ndtr`, without underflow."""
    return _piecewise(
        x,
        (asarray(x < -1), lambda part: numpy.log(0.5 * _erfcx(part * -_SQRT_HALF)) - 0.5 * part * part),
        (asarray(x >= -1), lambda part: numpy.log1p(-0.5 * _erfc(part * _SQRT_HALF))),
    )


log_ndtr = _pointwise("log_ndtr_cpu")(_log_ndtr)


# ---------------------------------------------------------------------------------------------------------------------
# The gamma function

# NIST Digital Library of Mathematical Functions (DLMF) 5.7.3:
# ln Gamma(2 + z) = (1 - gamma) z + sum (-1)^k (zeta(k) - 1) z^k / k.
_LGAMMA_NEAR_2 = _Polynomial(
    -6.4229645638381e-11, 1.330476437424449e-10, -2.7595228851242334e-10, 5.731367241678862e-10,
    -1.1921401405860912e-09, 2.4836745438024785e-09, -5.183475041970047e-09, 1.0838659214896955e-08,
    -2.2711094608943164e-08, 4.7698101693639804e-08, -1.0043224823968099e-07, 2.1207184805554665e-07,
    -4.492469198764566e-07, 9.55141213040742e-07, -2.039215753801366e-06, 4.374866789907488e-06, -9.439488275268397e-06,
    2.050721277567069e-05, -4.492623673813314e-05, 9.945751278180853e-05, -0.00022315475845357939,
    0.0005096695247430425, -0.001192753911703261, 0.0028905103307415234, -0.007385551028673986, 0.020580808427784546,
    -0.0673523010531981, 0.3224670334241132, 0.42278433509846713,
)  # fmt: skip
# NIST DLMF 5.11.1, Stirling's series: B(2k) / (2k (2k - 1)) for k from 11 down to 1.
_STIRLING = _Polynomial(
    77683 / 5796, -174611 / 125400, 43867 / 244188, -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680,
    1 / 1260, -1 / 360, 1 / 12,
)  # fmt: skip
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _lgamma(x: ndarray) -> ndarray:
    """The logarithm of the absolute value of the gamma function; infinite at 0 and negative integers."""
    if x.size <= _FEW and x.size and bool(numpy.all((x > 0) & (x < 1e300))):
        return _one_by_one(math.lgamma, x)
    return _piecewise(
        x,
        (asarray(numpy.isinf(x)), numpy.abs),
        (asarray(x >= 0.5), _lgamma_right),
        (asarray((x <= 0) & (x == numpy.floor(x))), lambda part: numpy.full(part.shape, math.inf)),
        (asarray(x > 0), lambda part: _lgamma_right(part + 2) - numpy.log(part * (part + 1))),
        (asarray(x < 0), _lgamma_reflected),
    )


lgamma = _pointwise("lgamma_vml_cpu")(_lgamma)


def _lgamma_right(x: ndarray) -> ndarray:
    """Where `x` is not less than 0.5; by steps of 1 into [1.5, 2.5), or by Stirling's series."""
    return _piecewise(
        x,
        (x < 1.5, lambda part: _lgamma_near_2(part - 1) - numpy.log(part)),
        (x < 2.5, lambda part: _lgamma_near_2(part - 2)),
        (x < 6.5, _lgamma_stepping),
        (x >= 6.5, _stirling),
    )


def _lgamma_near_2(z: ndarray) -> Any:
    return z * _LGAMMA_NEAR_2(z)


def _lgamma_stepping(x: ndarray) -> Any:
    product = numpy.ones(x.shape)
    for _ in range(4):
        beyond = x >= 2.5
        x = numpy.where(beyond, x - 1, x)
        product = numpy.where(beyond, product * x, product)
    return numpy.log(product) + _lgamma_near_2(x - 2)


def _stirling(x: ndarray) -> Any:
    inverse = 1 / x
    return (x - 0.5) * (numpy.log(x) - 1) - 0.5 + _HALF_LOG_TWO_PI + inverse * _STIRLING(inverse * inverse)


def _lgamma_reflected(x: ndarray) -> Any:
    """Gamma(x) Gamma(1 - x) = pi / sin(pi x) (NIST DLMF 5.5.3)."""
    return math.log(math.pi) - numpy.log(numpy.abs(_sin_pi(x))) - _lgamma_right(1 - x)


def _sin_pi(x: ndarray) -> Any:
    """The sine of pi * x, up to its sign, exact at integers."""
    return numpy.sin(math.pi * (x - numpy.rint(x)))


# NIST DLMF 5.11.2: B(2k) / 2k for k from 10 down to 1.
_DIGAMMA_SERIES = _Polynomial(
    -174611 / 6600, 43867 / 14364, -3617 / 8160, 1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12
)


def _digamma(x: ndarray) -> ndarray:
    """The derivative of `lgamma`; -inf at 0, inf at -0, nan at negative integers."""
    return _piecewise(
        x,
        (asarray(x == 0), lambda part: numpy.copysign(math.inf, -part)),
        (asarray(x > 0), _digamma_right),
        (asarray((x < 0) & (x != numpy.floor(x))), _digamma_reflected),
    )


digamma = _pointwise("digamma")(_digamma)


def _digamma_right(x: ndarray) -> ndarray:
    return _piecewise(x, (x >= 8, _digamma_large), (x < 8, _digamma_shifted))


def _digamma_large(x: ndarray) -> Any:
    inverse = 1 / x
    square = inverse * inverse
    return numpy.log(x) - 0.5 * inverse - square * _DIGAMMA_SERIES(square)


def _digamma_shifted(x: ndarray) -> Any:
    total = 1 / (x + 7)
    for step in range(6, -1, -1):
        total += 1 / (x + step)
    return _digamma_large(x + 8) - total


def _digamma_reflected(x: ndarray) -> Any:
    """NIST DLMF 5.5.4."""
    return _digamma_right(1 - x) - math.pi / numpy.tan(math.pi * (x - numpy.rint(x)))


def polygamma(n: int, x: ndarray) -> ndarray:
    """The `n`-th derivative of `digamma`.

    Raises:
        RuntimeError: if `n` is negative.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(x)
    return _trigamma_kernel.general(x) if n == 1 else _polygamma_kernel.general(x, n)


def _trigamma(x: ndarray) -> ndarray:
    return _piecewise(
        x,
        (asarray(x == math.inf), numpy.zeros_like),
        (asarray(x >= 0.5), lambda part: _hurwitz(2, part)),
        # NIST DLMF 5.15.6
        (asarray(x > -math.inf), lambda part: (math.pi / _sin_pi_apart(part)) ** 2 - _hurwitz(2, 1 - part)),
    )


_trigamma_kernel = _pointwise("trigamma")(_trigamma)


def _sin_pi_apart(x: ndarray) -> Any:
    """The sine of pi * x, rounded as pi * x is: not exactly zero at integers other than zero."""
    return numpy.sin(math.pi * x)


@elementary("polygamma_of_order")
def _polygamma(x: ndarray, n: ndarray) -> ndarray:
    """NIST DLMF 25.11.12."""
    order = float(n)
    return math.copysign(math.gamma(order + 1), (-1) ** (order + 1)) * _zeta(numpy.full(x.shape, order + 1), x)  # type: ignore[arg-type]


@pointwise("polygamma")
def _polygamma_kernel(self: Array, n: int) -> Any:
    """The `n`-th derivative of `digamma`, for `n` greater than 1."""
    return xp.polygamma_of_order(self, n)


def _zeta(x: ndarray, q: ndarray) -> ndarray:
    """The Hurwitz zeta function, the sum of (k + q) ** -x over k from 0: inf for `x` = 1, nan for less."""
    pole = (q <= 0) & (q == numpy.floor(q))
    undefined = (x < 1) | ((q < 0) & ~pole & (x != numpy.floor(x)))
    with numpy.errstate(all="ignore"):
        result = _hurwitz(x, numpy.where(pole | undefined | numpy.isinf(q), 1.0, q))
    result = numpy.where(pole, math.inf, result)
    result = numpy.where(numpy.isinf(q), numpy.where(q > 0, math.nan, math.inf), result)
    result = numpy.where(undefined | numpy.isnan(x) | numpy.isnan(q), math.nan, result)
    return numpy.where(x == 1, math.inf, result)


zeta = _pointwise("zeta_cpu")(_zeta)


# B(2k) / (2k)! for k from 1 up.
_EULER_MACLAURIN = [
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
]  # fmt: skip


def _hurwitz(s: Any, q: ndarray) -> Any:
    """NIST DLMF 25.11.5, the Euler-Maclaurin formula, once the argument has been moved above 14."""
    total = numpy.zeros(q.shape)
    q = q + 0.0
    lowest = float(numpy.fmin.reduce(q, None, initial=14.0))  # ignores nan
    steps = int(15 - lowest)
    for _ in range(steps):
        low = q < 14
        total += numpy.where(low, q**-s, 0)
        q = numpy.where(low, q + 1, q)
    overflowed = numpy.isinf(total)
    power = q**-s
    total += power * (q / (s - 1) + 0.5)
    factor = s * power / q
    square = q * q
    for k, coefficient in enumerate(_EULER_MACLAURIN):
        total += coefficient * factor
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) / square
    return numpy.where(overflowed, math.inf, total)


# ---------------------------------------------------------------------------------------------------------------------
# The rest


def _i0(x: ndarray) -> ndarray:
    """The modified Bessel function of the first kind and order 0."""
    return asarray(numpy.i0(x)).reshape(x.shape)


i0 = _pointwise("i0_cpu")(_i0)


@pointwise("xlogy_cpu")
def xlogy(x: Array, y: Array) -> Any:
    """The product x * log(y), and 0 where `x` is 0, unless `y` is nan."""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log(y))


@pointwise("xlog1py_cpu")
def xlog1py(x: Array, y: Array) -> Any:
    """The product x * log(1 + y), and 0 where `x` is 0, unless `y` is nan."""
    return xp.where((x == 0) & ~xp.isnan(y), 0, x * xp.log1p(y))


@pointwise("entr_cpu")
def entr(self: Array) -> Any:
    """`-self * log(self)`: 0 at 0, -inf below."""
    return xp.where(self <= 0, xp.where(self == 0, 0, -math.inf), -self * xp.log(self))

"""Functions of large complex arrays as compiled loops over real and imaginary parts.

Each function is an expression with two outputs. Where parts of a result are not finite, NumPy computes again: the expressions do
not treat infinities and what is out of range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.floating import unwarned
from .numpy_tiles import result_like
from .pointwise import Program
from .tracing import xp

Array = ndarray[Any, Any]


class ComplexFunction:
    """A function of one or two complex arrays, by an expression of their parts. `exact`: its special values are NumPy's."""

    def __init__(self, expression: Callable[..., Any], exact: bool) -> None:
        self.name = expression.__name__.strip("_")
        self.exact = exact
        self.program = Program(expression, self.name, "f", False)

    def run(self, operands: tuple[Array, ...]) -> Any:
        """The result for arrays of one dtype; NotImplemented if NumPy is to compute."""
        result = result_like(operands, operands[0].dtype, False)
        parts = [part for item in operands for part in (item.real, item.imag)]
        dtype = result.real.dtype
        found = self.program.compiled.run(parts, (), dtype, dtype, (result.real, result.imag))
        if found is NotImplemented:
            return NotImplemented
        if not self.exact:
            self._mend(result, operands)
        return result

    def _mend(self, result: Array, operands: tuple[Array, ...]) -> None:
        with unwarned():
            if numpy.isfinite(numpy.sum(result)):  # cheap, and seldom wrong
                return
            wrong = ~numpy.isfinite(result)
            if wrong.any():
                given = [numpy.broadcast_to(item, result.shape)[wrong] for item in operands]
                result[wrong] = getattr(numpy, self.name)(*given)


def joined(result: Array, real: Array, imag: Array) -> bool:
    """Whether compiled loops have written both parts of an array."""
    found = _PARTS.compiled.run((real, imag), (), real.dtype, real.dtype, (result.real, result.imag))
    return found is not NotImplemented


def _parts(a: Array, b: Array) -> Any:
    return xp.positive(a), xp.positive(b)


_PARTS = Program(_parts, "complex_cpu", "f", False)

FUNCTIONS: dict[str, ComplexFunction] = {}
"""By the name of NumPy's function."""


def _complex(exact: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(expression: Callable[..., Any]) -> Callable[..., Any]:
        function = ComplexFunction(expression, exact)
        FUNCTIONS[function.name] = function
        return expression

    return declare


@_complex(True)
def _multiply(a: Array, b: Array, c: Array, d: Array) -> Any:
    return a * c - b * d, a * d + b * c


@_complex(True)
def _divide(a: Array, b: Array, c: Array, d: Array) -> Any:
    """R. L. Smith, "Algorithm 116: complex division" (1962)."""
    first = xp.abs(c) >= xp.abs(d)
    large, small = xp.where(first, c, d), xp.where(first, d, c)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = xp.where(first, a + b * ratio, a * ratio + b) * scale
    imag = xp.where(first, b - a * ratio, b * ratio - a) * scale
    zero = (c == 0) & (d == 0)
    return xp.where(zero, a / xp.abs(c), real), xp.where(zero, b / xp.abs(c), imag)


@_complex(True)
def _reciprocal(a: Array, b: Array) -> Any:
    first = xp.abs(b) <= xp.abs(a)
    large, small = xp.where(first, a, b), xp.where(first, b, a)
    ratio = small / large
    below = large + small * ratio
    return xp.where(first, 1, ratio) / below, -xp.where(first, ratio, 1) / below


@_complex(False)
def _exp(a: Array, b: Array) -> Any:
    size = xp.exp(a)
    return size * xp.cos(b), size * xp.sin(b)


@_complex(False)
def _log(a: Array, b: Array) -> Any:
    """Near the unit circle, the logarithm of what is missing to 1."""
    large, small = xp.maximum(xp.abs(a), xp.abs(b)), xp.minimum(xp.abs(a), xp.abs(b))
    near = (large > 0.5) & (large < 2)
    missing = 0.5 * xp.log1p((large - 1) * (large + 1) + small * small)
    return xp.where(near, missing, xp.log(xp.hypot(a, b))), xp.arctan2(b, a)


@_complex(False)
def _sin(a: Array, b: Array) -> Any:
    return xp.sin(a) * xp.cosh(b), xp.cos(a) * xp.sinh(b)


@_complex(False)
def _cos(a: Array, b: Array) -> Any:
    return xp.cos(a) * xp.cosh(b), -(xp.sin(a) * xp.sinh(b))


@_complex(False)
def _sinh(a: Array, b: Array) -> Any:
    return xp.sinh(a) * xp.cos(b), xp.cosh(a) * xp.sin(b)


@_complex(False)
def _cosh(a: Array, b: Array) -> Any:
    return xp.cosh(a) * xp.cos(b), xp.sinh(a) * xp.sin(b)


@_complex(False)
def _tanh(a: Array, b: Array) -> Any:
    """W. Kahan, "Branch cuts for complex elementary functions" (1987)."""
    tangent, sine = xp.tan(b), xp.sinh(a)
    slope = 1 + tangent * tangent
    below = 1 + slope * sine * sine
    far = xp.abs(a) > 20
    decay = xp.exp(-xp.abs(a))
    real = xp.where(far, xp.copysign(1, a), slope * xp.sqrt(1 + sine * sine) * sine / below)
    imag = xp.where(far, 4 * xp.sin(b) * xp.cos(b) * decay * decay, tangent / below)
    return real, imag


@_complex(False)
def _sqrt(a: Array, b: Array) -> Any:
    root = xp.sqrt((xp.abs(a) + xp.hypot(a, b)) * 0.5)
    other = xp.where(root == 0, xp.abs(b), xp.abs(b) / (root + root))
    right = a >= 0
    return xp.where(right, root, other), xp.copysign(xp.where(right, other, root), b)

"""Functions of large complex arrays as compiled loops over real and imaginary parts.

Each function is an expression with two outputs. Where parts of a result are not finite, NumPy computes again: the expressions do
not treat infinities and what is out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import ndarray

from ..kernels.runtime.floating import unwarned
from ..kernels.runtime.lazy_conj import lazy_bits_of, without_lazy_bits
from .compiled_pointwise import CompiledPointwise
from .complex_parts import ARITHMETIC, parts_of_input
from .expression import PARAMETER, SCALAR, Expression
from .pointwise import Program
from .tracing import Symbol, Trace, xp

Array = ndarray[Any, Any]


class ComplexFunction:
    """A function of one or two complex arrays, by an expression of their parts. `exact`: its special values are NumPy's.

    Operands may be yet to be conjugated or negated, which is part of the expression then.
    """

    def __init__(self, name: str, function: Callable[..., Any], exact: bool) -> None:
        self.name = name
        self.exact = exact
        self.function = function
        self._compiled: dict[Any, CompiledPointwise] = {}

    def run(self, operands: Sequence[Any], numbers: Sequence[Any], plans: Any, out: Array | None = None) -> Any:
        """The result for arrays of one dtype, then numbers; NotImplemented if NumPy is to compute.

        `plans`: where plans for plain arrays may be noted for direct calls. `out` is only for exact functions.
        """
        bits = tuple(map(lazy_bits_of, operands))
        compiled = self._compiled.get((bits, len(numbers)))
        if compiled is None:
            compiled = self._compiled[bits, len(numbers)] = self._compile(bits, len(numbers))
            if plans is not None and self.exact and not any(bits) and not numbers:
                compiled.direct = plans
        arrays = [without_lazy_bits(item) for item in operands]
        dtype = arrays[0].dtype
        values = [part for number in numbers for part in (number.real, number.imag)]
        result = compiled.run(arrays, values, dtype, arrays[0].real.dtype, out)
        if not self.exact and result is not NotImplemented:
            self._mend(result, operands)
        return result

    def _compile(self, bits: tuple[int, ...], numbers: int) -> CompiledPointwise:
        trace = Trace({})
        pairs, names, parameters = [], [f"x{index}" for index in range(len(bits))], []
        for name, wanted in zip(names, bits, strict=True):
            pairs += parts_of_input(trace, name, wanted)
        for index in range(2 * numbers):
            parameters.append(f"n{index}")
            pairs.append(Symbol(trace.graph.node(PARAMETER, (), SCALAR, parameters[-1]), trace))
        real, imag = self.function(*pairs)
        tree = Expression((real.node, imag.node))
        return CompiledPointwise(f"complex_{self.name}", tree, names, parameters, of_parts=True)

    def _mend(self, result: Array, operands: Sequence[Array]) -> None:
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

FUNCTIONS = {name: ComplexFunction(name, function, True) for name, function in ARITHMETIC.items()}
"""By the name of NumPy's function."""


def _complex(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__.strip("_")
    FUNCTIONS[name] = ComplexFunction(name, function, False)
    return function


@_complex
def _exp(a: Array, b: Array) -> Any:
    size = xp.exp(a)
    return size * xp.cos(b), size * xp.sin(b)


@_complex
def _log(a: Array, b: Array) -> Any:
    """Near the unit circle, the logarithm of what is missing to 1."""
    large, small = xp.maximum(xp.abs(a), xp.abs(b)), xp.minimum(xp.abs(a), xp.abs(b))
    near = (large > 0.5) & (large < 2)
    missing = 0.5 * xp.log1p((large - 1) * (large + 1) + small * small)
    return xp.where(near, missing, xp.log(xp.hypot(a, b))), xp.arctan2(b, a)


@_complex
def _sin(a: Array, b: Array) -> Any:
    return xp.sin(a) * xp.cosh(b), xp.cos(a) * xp.sinh(b)


@_complex
def _cos(a: Array, b: Array) -> Any:
    return xp.cos(a) * xp.cosh(b), -(xp.sin(a) * xp.sinh(b))


@_complex
def _sinh(a: Array, b: Array) -> Any:
    return xp.sinh(a) * xp.cos(b), xp.cosh(a) * xp.sin(b)


@_complex
def _cosh(a: Array, b: Array) -> Any:
    return xp.cosh(a) * xp.cos(b), xp.sinh(a) * xp.sin(b)


@_complex
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


@_complex
def _sqrt(a: Array, b: Array) -> Any:
    root = xp.sqrt((xp.abs(a) + xp.hypot(a, b)) * 0.5)
    other = xp.where(root == 0, xp.abs(b), xp.abs(b) / (root + root))
    right = a >= 0
    return xp.where(right, root, other), xp.copysign(xp.where(right, other, root), b)

"""Compile NumPy's elementwise functions as loops over large arrays. Each is an expression with one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy
from numpy import ndarray

from .._runtime.first_use import computed_once
from ..kernels.runtime.costs import LARGE, MOVED, PASSES, STEPS, THREADED
from ..kernels.runtime.floating import BFLOAT16, FLOAT16, FLOAT32, HALVES, OFF, WARNINGS, refuse, restore, unwarned
from ..kernels.runtime.lazy_conj import lazy_bits_of
from .acceleration import LOOPS
from .compiled_complex import EXACT, FUNCTIONS, PARTS
from .compiled_pointwise import BOOLEAN, CompiledPointwise, computed_in, is_costly, smallest, smallest_repeated
from .expression import BOOL, CONSTANT, INPUT, NUMBER, OPERATIONS, PARAMETER, SCALAR, Expression, Graph
from .numpy_tiles import result_like, run_tiles

_OF_INTEGERS = frozenset(
    "add subtract multiply negative absolute less less_equal greater greater_equal equal not_equal maximum minimum".split()
)
_OF_BITS = frozenset("bitwise_and bitwise_or bitwise_xor invert gcd left_shift right_shift".split())
_OF_FLOATS = frozenset(
    "divide square reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
    "arccosh arctanh sqrt cbrt floor ceil trunc rint isnan isinf isfinite signbit power fmax fmin copysign arctan2 hypot".split()
)
_OF_TRUTHS = frozenset("logical_and logical_or logical_xor logical_not".split())
"""The functions that test whether elements are 0."""

_OF_SIGNED = frozenset(["lcm"])

_KNOWN = _OF_SIGNED | _OF_INTEGERS | _OF_BITS | _OF_FLOATS | _OF_TRUTHS


class LargeUfunc:
    """The compiled form of a ufunc for large arrays of one dtype, or for an array and a number (`with_number`)."""

    def __init__(self, ufunc: Any, with_number: bool) -> None:
        name = str(ufunc.__name__)
        self.ufunc = ufunc
        graph = Graph()
        names = ["self", "other"][: ufunc.nin]
        nodes = [graph.node(INPUT, (), NUMBER, item) for item in names]
        if with_number:
            nodes[1] = graph.node(PARAMETER, (), SCALAR, names[1])
        kind = OPERATIONS[name].result
        if name in _OF_TRUTHS:
            zero = graph.node(CONSTANT, (), SCALAR, 0)
            operands = [graph.node("not_equal", (node, zero), BOOL) for node in nodes]
        else:
            operands = nodes
        result = graph.node(name, tuple(operands), kind if kind != "same" and kind != "real" else NUMBER)
        arrays = names[:1] if with_number else names
        self.with_number = with_number
        self.is_condition = kind == BOOL
        tree = Expression((result,))
        self.kinds = (
            "i" if name in _OF_SIGNED
            else "iu" if name in _OF_BITS
            else "fiu" if name in _OF_INTEGERS | _OF_TRUTHS and not with_number
            else "f"
        )  # fmt: skip
        self.compiled = CompiledPointwise(name, tree, arrays, names[len(arrays) :])
        self.compiled.of_complex = EXACT if name in EXACT else FUNCTIONS
        self.elements = smallest_repeated(tree) if is_costly(tree) else THREADED
        self.halves = PASSES if is_costly(tree) else STEPS
        self._elements_of_complex = smallest(tree) if is_costly(tree) else LARGE
        self.names = names

    @computed_once
    def direct(self) -> Callable[..., Any]:
        """Return the form for calls with only operands, which finds its loops in fewer steps."""
        return self.compiled.direct_form(self.names, self)

    @computed_once
    def into(self) -> Callable[..., Any]:
        """Return the form for calls with operands and an array to which the result is written."""
        return self.compiled.direct_form(self.names, self, into=True)

    def __call__(self, *operands: Any, out: ndarray | None = None) -> Any:
        """Return the result of the ufunc."""
        first = operands[0]
        if type(first) is ndarray or lazy_bits_of(first):
            last = first if self.with_number else operands[-1]
            fits = last.shape == first.shape[first.ndim - last.ndim :]
            size = first.size if fits else numpy.broadcast(*operands).size
            if self._is_large_enough(size, first.dtype):
                result = self._compute(operands, out)
                if result is not NotImplemented:
                    return result
            if first.dtype is BFLOAT16 and out is None and size >= MOVED and not self.with_number:
                return self._in_float32(operands)
        token = WARNINGS[OFF]
        try:
            return self.ufunc(*operands) if out is None else self.ufunc(*operands, out=out)
        finally:
            restore(token)

    def _in_float32(self, operands: tuple[ndarray, ...]) -> ndarray:
        """Compute bfloat16 numbers tile by tile, because NumPy converts each number for itself."""
        if any(item.dtype is not BFLOAT16 for item in operands):
            return self.ufunc(*operands)
        result = result_like(operands, BOOLEAN if self.is_condition else BFLOAT16, False)
        with unwarned():
            run_tiles(self.ufunc, list(operands), (), [result], FLOAT32)
        return result

    def _is_large_enough(self, size: int, dtype: numpy.dtype[Any]) -> bool:
        if dtype.itemsize == 2 and dtype in HALVES:
            many = LOOPS.takes(size, PASSES)
            return many or (dtype is FLOAT16 and LOOPS.takes(size, self.halves) and self.compiled.repays(size))
        if dtype.kind == "c":
            return LOOPS.takes(size, self._elements_of_complex)
        return LOOPS.takes(size, self.elements) and self.compiled.repays(size)

    def _compute(self, operands: tuple[Any, ...], out: ndarray | None) -> Any:
        arrays = operands[:1] if self.with_number else operands
        dtype = arrays[0].dtype
        lazy = dtype.kind == "c"
        for item in arrays:
            if not (type(item) is ndarray or (lazy and lazy_bits_of(item))) or item.dtype is not dtype:
                return NotImplemented
        if dtype is BOOLEAN and self.ufunc.__name__ in _OF_TRUTHS:
            operands = arrays = tuple([item.view(numpy.uint8) for item in arrays])
            dtype = arrays[0].dtype
        compute = computed_in(dtype)
        if not lazy and compute.kind not in self.kinds:
            return NotImplemented
        if out is not None and out.shape != numpy.broadcast_shapes(*[item.shape for item in arrays]):
            return NotImplemented
        exact = not lazy or self.compiled.of_complex is EXACT
        if out is not None and not exact:
            return NotImplemented
        result = self.compiled.run(arrays, operands[len(arrays) :], dtype, compute, out)
        if not exact and result is not NotImplemented:
            self._recompute_nonfinite(result, arrays)
        return result

    def _recompute_nonfinite(self, result: ndarray, operands: Sequence[ndarray]) -> None:
        with unwarned():
            if numpy.isfinite(numpy.sum(result)):  # cheap, and seldom wrong
                return
            wrong = ~numpy.isfinite(result)
            if wrong.any():
                given = [numpy.broadcast_to(item, result.shape)[wrong] for item in operands]
                result[wrong] = self.ufunc(*given)


@cache
def large(ufunc: Any) -> LargeUfunc | None:
    """Return the form for large arrays if expressions support this ufunc and llvmlite is installed."""
    return LargeUfunc(ufunc, False) if _is_known(ufunc) else None


@cache
def large_with_number(ufunc: Any) -> LargeUfunc | None:
    """Return the form for a large array and a number."""
    return LargeUfunc(ufunc, True) if _is_known(ufunc) else None


def of_any_size(form: Any) -> Any:
    """Return the form of a ufunc for large arrays, if it exists. Return any other function unchanged."""
    return (large(form) or form) if isinstance(form, numpy.ufunc) else form


def of_kinds(ufunc: Any, kinds: str, refusal: str | Callable[[ndarray], Exception], name: str | None = None) -> Any:
    """Return the kernel of a ufunc for dtypes of these `kinds`. Others are rejected with `refusal`, as in `pointwise`."""
    compute = of_any_size(ufunc)

    def kernel(*operands: Any) -> Any:
        if operands[0].dtype.kind not in kinds:
            raise refuse(refusal, operands[0]) if isinstance(refusal, str) else refusal(operands[0])
        return compute(*operands)

    kernel.__name__ = kernel.__qualname__ = name or ufunc.__name__
    kernel.__doc__ = f"`numpy.{ufunc.__name__}` of arrays of kinds {kinds}."
    return kernel


@cache
def _joining() -> CompiledPointwise:
    graph = Graph()
    parts = [graph.node("positive", (graph.node(INPUT, (), NUMBER, name),), NUMBER) for name in PARTS]
    return CompiledPointwise("complex", Expression(tuple(parts)), PARTS, [])


def joined(result: ndarray, real: ndarray, imag: ndarray) -> bool:
    """Return whether compiled loops have written both parts of a complex array."""
    parts = result.real, result.imag
    return _joining().run((real, imag), (), real.dtype, real.dtype, parts) is not NotImplemented


class LargeUfuncs(dict[str, LargeUfunc]):
    """The forms that `large` returns, by the name of the ufunc, for generated code."""

    def __missing__(self, name: str) -> LargeUfunc:
        found = large(getattr(numpy, name))
        assert found is not None
        self[name] = found
        return found


def _is_known(ufunc: Any) -> bool:
    return isinstance(ufunc, numpy.ufunc) and ufunc.__name__ in _KNOWN and LOOPS.installed

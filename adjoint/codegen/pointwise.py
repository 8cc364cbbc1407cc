"""Kernels of pointwise operators, each of which is declared by one expression.

    @pointwise("sigmoid_cpu", "fc")
    def sigmoid(self: Array):
        return 1 / (1 + xp.exp(-self))

The function is traced when the kernel is first used. Parameters annotated `Array` are arrays, which are broadcast. The
other parameters are scalars, which are the same for all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy
from numpy import ndarray

from .._runtime.first_use import computed_once
from .._runtime.forks import lock_across_forks
from ..kernels.runtime.costs import LARGE, THREADED
from ..kernels.runtime.floating import FLOAT32, HALVES, refuse
from ..kernels.runtime.layout import row_major
from ..kernels.runtime.scalar import typed
from . import source
from .acceleration import LOOPS, SHAPES
from .compiled_pointwise import CompiledPointwise, has_numpy_bits, is_costly, operations_of, smallest_repeated
from .expression import BOOL, REAL, ROW_OPERATIONS, Tree, leaves
from .kernel import FLOATS, Kernel
from .numpy_tiles import result_like, run_tiles
from .selection import choose, zero_where
from .tracing import ARRAY, Parameters, TracingError, apply, trace, xp

Dtype = numpy.dtype[Any]

FLOAT64 = numpy.dtype(numpy.float64)

BASE_NAMES: dict[str, Any] = {
    # A module whose name is None gets no warnings from C code, such as NumPy's of overflow and division by zero.
    "__name__": None,
    "__package__": "adjoint.kernels",
    "__builtins__": __builtins__,
    "inf": numpy.inf,
    "typed": typed,
    "choose": choose,
    "zero_where": zero_where,
    "positive": numpy.positive,
    "full_like": numpy.full_like,
    "row_major": row_major,
    "ndarray": ndarray,
    "asarray": numpy.asarray,
    "FLOAT32": FLOAT32,
    "FLOAT64": FLOAT64,
}

_building = lock_across_forks()


class Program:
    """One traced function and the code that has been generated from it."""

    def __init__(self, function: Callable[..., Any], refusal: Refusing, kinds: str, contiguous: bool) -> None:
        self.function = function
        self.name = function.__name__
        self.refusal = refusal
        self.kinds = kinds
        self.contiguous = contiguous
        self.parameters = Parameters(function)
        self._straight: dict[str, Callable[..., Any]] = {}

    @computed_once
    def tree(self) -> Tree:
        """The traced computation of the function, which is traced on first access."""
        tree = trace(self.function, self.parameters)
        if any(node.operation in ROW_OPERATIONS for leaf in leaves(tree) for node in leaf.nodes()):
            raise TracingError(f"{self.name} is no pointwise operator: it looks at whole rows")
        return tree

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters.names)}):\n{self.tree}"

    @computed_once
    def chooses(self) -> bool:
        """Return whether the expression contains a `where`, which has separate code for the smallest arrays."""
        return any(node.operation == "where" for leaf in leaves(self.tree) for node in leaf.nodes())

    @computed_once
    def limit(self) -> int:
        """Return the maximum number of elements for the small form. This form has the simplest code, with NumPy's `where`."""
        limit = LARGE if self.chooses else THREADED
        return min(limit, self.compiled_from - 1) if LOOPS.installed else limit

    @computed_once
    def compiled_from(self) -> int:
        """Return the number of elements above which compiled loops compute, if there are compiled loops."""
        return 0 if LOOPS.every_size else smallest_repeated(self.tree)

    @computed_once
    def takes_one_pass(self) -> bool:
        """Return whether NumPy computes the expression in one fast pass. Tiles would only add a copy."""
        names = operations_of(self.tree)
        return len(names) == 1 and hasattr(numpy, names[0]) and not is_costly(self.tree)

    @computed_once
    def compiled(self) -> CompiledPointwise:
        """The compiled loops."""
        parameters = self.parameters
        return CompiledPointwise(self.name, self.tree, parameters.arrays, parameters.scalars, self.contiguous)

    def straight(self, char: str) -> Callable[..., Any]:
        """Return the function for small arrays, or for tiles of large arrays, of one dtype."""
        found = self._straight.get(char)
        if found is None:
            with _building:
                namespace = dict(BASE_NAMES)
                names = [*self.parameters.arrays, *self.parameters.scalars]
                text = source.one_dtype_source(self.name, self.tree, names, char, namespace, self.contiguous)
                source.compile_source(text, f"{self.name} {char}", namespace)
                found = self._straight[char] = namespace[self.name]
        return found

    def run(self, arrays: Sequence[Any], scalars: Sequence[Any], out: ndarray | None = None) -> Any:
        """Compute on arrays of any supported dtype and any layout. Write the result to `out` if it is given."""
        operands, values, dtype = arrays, scalars, arrays[0].dtype
        for array in arrays:
            if type(array) is not ndarray or array.dtype is not dtype:
                operands, dtype = _promoted(arrays)
                break
        for value in scalars:
            if isinstance(value, ndarray):
                values = [item.item() if isinstance(item, ndarray) else item for item in scalars]
                break
        half = dtype.itemsize == 2 and dtype in HALVES
        if "d" in self.kinds if half else dtype.kind not in self.kinds:
            raise refuse(self.refusal, operands[0]) if isinstance(self.refusal, str) else self.refusal(operands[0])
        compute = FLOAT32 if half else dtype
        fits = (
            out is not None and out.dtype == dtype and out.shape == numpy.broadcast_shapes(*[x.shape for x in operands])
        )
        return self.computed(operands, values, dtype, compute, out if fits else None)

    def computed(
        self, operands: Sequence[ndarray], values: Sequence[Any], dtype: Dtype, compute: Dtype, out: ndarray | None
    ) -> Any:
        """Compute on arrays of `dtype`, and on truth values if the expression has any."""
        half = compute is not dtype
        size = numpy.broadcast(*operands).size
        if SHAPES.recorder is not None:
            same = size >= self.compiled_from or has_numpy_bits(self.tree)
            result = self.compiled.run(operands, values, dtype, compute, out) if same else NotImplemented
            return SHAPES.recorder.refuse() if result is NotImplemented else result
        if LOOPS.takes(size, self.compiled_from) and self.compiled.repays(size):
            result = self.compiled.run(operands, values, dtype, compute, out)
            if result is not NotImplemented:
                return result
        if size <= THREADED or (self.takes_one_pass and not half):
            if half:
                operands = [item.astype(compute) for item in operands]
            results = self.straight(compute.char)(*operands, *values)
            if out is not None:
                out[...] = results
                return out
            several = results if type(results) is tuple else (results,)
            arranged = tuple([narrowed(item, compute, dtype) for item in several])
            return arranged if type(results) is tuple else arranged[0]
        if out is not None:
            outs = [out]
        else:
            outputs = next(leaves(self.tree)).outputs
            outs = [result_like(operands, dtype_of(node.kind, dtype), self.contiguous) for node in outputs]
        if outs[0].size:
            run_tiles(self.straight(compute.char), list(operands), values, outs, compute)
        return outs[0] if len(outs) == 1 else tuple(outs)


def _promoted(arrays: Sequence[Any]) -> tuple[list[ndarray], Dtype]:
    """Return the arrays in their common dtype."""
    operands = [numpy.asarray(array) for array in arrays]
    dtype = operands[0].dtype
    if any(item.dtype != dtype for item in operands):
        dtype = numpy.result_type(*operands)
        operands = [item.astype(dtype, copy=False) for item in operands]
    return operands, dtype


def narrowed(result: Any, compute: Dtype, dtype: Dtype) -> ndarray:
    """Return `result` as an array, rounded to `dtype` if it was computed in another dtype."""
    array = result if type(result) is ndarray else numpy.asarray(result)
    return array.astype(dtype) if array.dtype is compute and compute is not dtype else array


def dtype_of(kind: str, dtype: Dtype) -> Dtype:
    """Return the dtype of a value of this kind if numbers have `dtype`."""
    if kind == BOOL:
        return numpy.dtype(bool)
    if kind == REAL and dtype.kind == "c":
        return numpy.dtype(f"f{dtype.itemsize // 2}")
    return dtype


Refusing = str | Callable[[ndarray], Exception]
"""The name of PyTorch's kernel in the error for an array of an unsupported dtype, or a function that creates this error."""


def pointwise(
    refusal: Refusing, kinds: str = "f", *, contiguous: bool = False
) -> Callable[[Callable[..., Any]], Kernel]:
    """Create a `Kernel` from an expression of elements.

    Half types are computed in float32 and rounded once. Dtypes outside the given `kinds` (as NumPy names them; "fd"
    excludes half precision) are rejected with `refusal`. `contiguous`: whether the result is row-major regardless of
    the memory order of the operands.
    """

    def declare(function: Callable[..., Any]) -> Kernel:
        program = Program(function, refusal, kinds, contiguous)
        xp.declare(program.name, function)
        small = _lazily(program, " small", _build_small)
        general = _lazily(program, "", _build_general)
        return Kernel(
            general,
            small=small,
            dtypes=FLOATS,
            inplace=_lazily(program, " in place", _build_inplace),
            quiet=True,
            expression=program,
        )

    return declare


def of_operation(name: str, refusal: Refusing, kinds: str = "f", arity: int = 1, doc: str | None = None) -> Kernel:
    """Return the kernel of one operation of expressions."""

    def of_one(self: Any) -> Any:
        return apply(name, self)

    def of_two(self: Any, other: Any) -> Any:
        return apply(name, self, other)

    expression = of_one if arity == 1 else of_two
    expression.__annotations__ = dict.fromkeys(("self", "other")[:arity], ARRAY)
    expression.__name__, expression.__doc__ = name, doc
    return pointwise(refusal, kinds)(expression)


def _begin(*args: Any, **options: Any) -> Any:
    return BUILD()(*args, **options)  # type: ignore[name-defined]  # noqa: F821 - in the namespace of the function


def _lazily(program: Program, form: str, build: Callable[[Program, dict[str, Any]], str]) -> Any:
    """Return a function whose code is generated at the first call, because an import declares many functions but uses few."""
    namespace = dict(BASE_NAMES)
    function = FunctionType(_begin.__code__, namespace, program.name)
    function.__doc__ = program.function.__doc__
    function.__module__ = program.function.__module__

    def built() -> FunctionType:
        with _building:
            if function.__code__ is _begin.__code__:
                text = build(program, namespace)
                source.compile_source(text, program.name + form, namespace)
                made = namespace.pop(program.name)
                function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
                function.__code__ = made.__code__
        return function

    namespace["BUILD"] = built
    return function


def _signature(program: Program, namespace: dict[str, Any]) -> str:
    parts = []
    for name in program.parameters.names:
        if name in program.parameters.defaults:
            namespace[f"default_{name}"] = program.parameters.defaults[name]
            parts.append(f"{name}=default_{name}")
        else:
            parts.append(name)
    return ", ".join(parts)


def _build_small(program: Program, namespace: dict[str, Any]) -> str:
    signature = _signature(program, namespace)
    first = program.parameters.arrays[0]
    return source.straight_source(program.name, program.tree, signature, first, namespace, program.contiguous)


def _build_large(program: Program, namespace: dict[str, Any]) -> str:
    otherwise = _run(program, namespace)
    return program.compiled.direct_source(_signature(program, namespace), otherwise, namespace)


def _run(program: Program, namespace: dict[str, Any], out: str = "") -> str:
    namespace["run"] = program.run
    return f"run(({_tuple(program.parameters.arrays)}), ({_tuple(program.parameters.scalars)}){out})"


def _build_into(program: Program, namespace: dict[str, Any]) -> str:
    """Write to `out` if the result fits. Arrays may be `out` itself."""
    namespace["small"] = _lazily(program, " small", _build_small)
    arrays, passed = program.parameters.arrays, ", ".join(program.parameters.names)
    alike = "".join(f" and {name}.dtype is dtype and {name}.shape == out.shape" for name in arrays)
    text = program.compiled.direct_source(f"{passed}, out", _run(program, namespace, ", out"), namespace, into=True)
    head, _, rest = text.partition("\n")
    lines = [
        head,
        "    dtype = out.dtype",
        f"    if (dtype is FLOAT32 or dtype is FLOAT64) and out.size <= {program.limit}{alike}:",
        f"        result = small({passed})",
        "        if result.dtype is not dtype:",
        "            return asarray(result)",
        "        out[...] = result",
        "        return out",
    ]
    return "\n".join([*lines, rest])


def _build_general(program: Program, namespace: dict[str, Any]) -> str:
    namespace["into"] = _lazily(program, " into", _build_into)
    passed = ", ".join(program.parameters.names)
    if program.compiled_from:
        text = _build_chosen(program, namespace, ", out=None")
    else:
        namespace["chosen"] = _lazily(program, " chosen", _build_chosen)
        signature = f"{_signature(program, namespace)}, out=None"
        text = program.compiled.direct_source(signature, f"chosen({passed})", namespace)
    head, _, rest = text.partition("\n")
    return "\n".join([head, "    if out is not None:", f"        return into({passed}, out)", rest])


def _build_chosen(program: Program, namespace: dict[str, Any], out: str = "") -> str:
    """Choose NumPy or a plan of compiled loops. The caller may already have looked for a plan."""
    first, *others = program.parameters.arrays
    namespace["small"] = _lazily(program, " small", _build_small)
    namespace["large"] = _lazily(program, " large", _build_large)
    alike = "".join(f" and {name}.dtype is dtype and {name}.shape == {first}.shape" for name in others)
    passed = ", ".join(program.parameters.names)
    several = len(next(leaves(program.tree)).outputs) > 1
    namespace["takes"], namespace["repays"] = LOOPS.takes, program.compiled.repays
    most = LARGE if program.chooses else THREADED
    lines = [
        f"def {program.name}({_signature(program, namespace)}{out}):",
        f"    dtype = {first}.dtype",
        f"    if (dtype is FLOAT32 or dtype is FLOAT64) and {first}.size <= {most}{alike} and (",
        f"        {first}.size < {program.compiled_from} or not takes({first}.size, {program.compiled_from})",
        f"        or not repays({first}.size)",
        "    ):",
    ]
    if several:
        lines.append(f"        return tuple(map(asarray, small({passed})))")
    else:
        lines.append(f"        result = small({passed})")
        lines.append("        return result if type(result) is ndarray else asarray(result)")
    if others and not several:  # few elements that are broadcast
        namespace["straight"] = program.straight
        fewer = min(most + 1, program.compiled_from)
        namespace["broadcast"] = numpy.broadcast
        each = "".join([f"{name}.dtype is dtype and " for name in others])
        size = f"broadcast({', '.join(program.parameters.arrays)}).size"
        arguments = ", ".join([*program.parameters.arrays, *program.parameters.scalars])
        lines += [
            f"    if (dtype is FLOAT32 or dtype is FLOAT64) and {each}{size} < {fewer}:",
            f"        return asarray(straight(dtype.char)({arguments}))",
        ]
    lines.append(f"    return {f'large({passed})' if program.compiled_from else _run(program, namespace)}")
    return "\n".join([*lines, ""])


def _build_inplace(program: Program, namespace: dict[str, Any]) -> str:
    namespace["into"] = _lazily(program, " into", _build_into)
    first, passed = program.parameters.arrays[0], ", ".join(program.parameters.names)
    return "\n".join([
        f"def {program.name}({_signature(program, namespace)}):",
        f"    if into({passed}, {first}) is not {first}:",
        "        raise ValueError('the result does not fit what it is to be written over')",
        f"    return {first}",
        "",
    ])  # fmt: skip


def _tuple(names: list[str]) -> str:
    return "".join(f"{name}, " for name in names)

"""Row programs: expressions of elements that also use the row that contains an element.

    @row_program()
    def layer_norm(x: Array, weight: PerColumn | None, eps: float):
        mean = row.mean(x)
        centred = x - mean
        rstd = xp.rsqrt(row.mean(centred * centred) + eps)
        normalized = centred * rstd
        return (normalized if weight is None else normalized * weight), mean, rstd

    result, mean, rstd = layer_norm.run((x, weight), -1, (1e-5,))

A row lies along one dimension of the arrays. The function has a parameter for each array. An array contains one value
for each element (`Array`), row (`PerRow`), part of a row (`PerPart`) or position in a row (`PerColumn`). The other
parameters are scalars. The results of the function become the outputs, each with its extent. An output is `None` if it
is not requested. `expression` describes `row.sum(x)`, `column.sum(x)` and the other functions of `row` and `column`.

A program is data: `variants` are its expressions, one for each path of its control flow, and `choose` selects the
variant for given arguments. An interpreter treats the arrays as (outer, length, inner), with the row along the middle
dimension.

NumPy computes parts of the arrays, each of which contains this dimension completely. The parts fit in the cache, and
several threads compute them. Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy
from numpy import ndarray

from .._runtime.first_use import computed_once, unwatched
from .._runtime.forks import lock_across_forks
from ..kernels.runtime.costs import THREADED
from ..kernels.runtime.floating import WARNINGS, compute_dtype, restore
from ..kernels.runtime.shapes import normalize_dim
from . import source
from .acceleration import LOOPS, SHAPES
from .compiled_rows import CompiledRows
from .expression import COLUMN, ELEMENT, ROW, ROW_LENGTH, Expression, Node, Tree, is_absent, leaves
from .plans import Memory, Plan, Plans, returned
from .pointwise import BASE_NAMES, dtype_of
from .row_tiles import ROW_FUNCTIONS, Geometry, RowTiles, off_for_rows
from .tracing import Parameters, trace

if TYPE_CHECKING:
    from .llvm.calls import NativeCall

Dtype = numpy.dtype[Any]
Arrays = Sequence[ndarray | None]
Shape = tuple[int, ...]

_building = lock_across_forks()


class RowProgram:
    """A traced row program and the code that has been generated from it."""

    def __init__(self, function: Callable[..., Any], refuse: Refusing | None = None, in_parts: bool = False) -> None:
        self.function = function
        self.name = function.__name__ + ("_in_parts" if in_parts else "")
        self.refuse = refuse
        self.parameters = Parameters(function, in_parts)
        self._extents = list(self.parameters.extents.values())
        self._whole = self._extents.index(ELEMENT) if ELEMENT in self._extents else 0
        self._code: dict[tuple[int, str], Callable[..., Any]] = {}
        self._loops: dict[tuple[int, str], CompiledRows] = {}
        self._plans: Plans[Plan] = Plans()
        """The plans for arrays of certain dtypes, shapes and strides."""

    @computed_once
    def tree(self) -> Tree:
        """The computation of the function, which is traced on first access."""
        return trace(self.function, self.parameters)

    @computed_once
    def in_parts(self) -> RowProgram:
        """Return the same program for rows that consist of several parts, which compiled loops run."""
        return RowProgram(self.function, self.refuse, True)

    @computed_once
    def variants(self) -> list[Expression]:
        """The expressions of the tree, from its first branch to its last."""
        return list(leaves(self.tree))

    @computed_once
    def choose(self) -> Callable[..., Any]:
        """Return the function that gives the variant's number and the arrays' signatures, or raises an error."""
        namespace, names = dict(BASE_NAMES), [*self.parameters.arrays, *self.parameters.scalars]
        text = source.choice_source("choose", self.tree, names, [*self.parameters.arrays], namespace)
        return source.compile_source(text, f"{self.name} choice", namespace)["choose"]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.parameters.names)}):\n{self.tree}"

    @property
    def _arguments(self) -> list[str]:
        return [*self.parameters.arrays, *self.parameters.scalars, ROW_LENGTH]

    def code(self, variant: int, char: str) -> Callable[..., Any]:
        """Return the function that computes arrays of one dtype, or tiles of them, with NumPy."""
        found = self._code.get((variant, char))
        if found is None:
            with _building:
                namespace = BASE_NAMES | ROW_FUNCTIONS
                arguments, first = ", ".join(self._arguments), self.parameters.arrays[self._whole]
                text = source.row_source("rows", self.variants[variant], arguments, first, char, namespace)
                made = source.compile_source(text, f"{self.name} rows {variant} {char}", namespace)
                found = self._code[variant, char] = made["rows"]
        return found

    def _compiled(self, variant: int, char: str) -> CompiledRows:
        """Return the compiled loops of one dtype."""
        found = self._loops.get((variant, char))
        if found is None:
            made = CompiledRows(self.name, self.variants[variant], self.parameters.arrays, char)
            found = self._loops.setdefault((variant, char), made)
        return found

    def run(self, arrays: Arrays, dim: int, scalars: Sequence[Any] = (), *, shape: Shape | None = None) -> Any:
        """Compute on arrays whose rows lie along `dim`.

        Return the output, or a tuple of outputs.

        Arrays of elements all have `shape`, which defaults to the shape of the first array. Arrays of rows have one
        element per row, in order, and arrays of columns have one element per column. Outputs of elements have the dtype
        of the first array, and other outputs have the dtype of the computation. Outputs of rows have `shape`, but
        length 1 along `dim`. Outputs of columns have one dimension. If there are no elements, other outputs are zeros.

        Raises:
            IndexError: if `dim` is out of range.
            NotImplementedError: if the program refuses the dtype.
        """
        if SHAPES.special:
            new, given = self.plan(arrays, dim, scalars, shape=shape), (*arrays, *scalars)
            return new.run(*given) if SHAPES.only else SHAPES.recorder.run(new, given)
        key = dim, shape, LOOPS._enabled, self.choose(*arrays, *scalars)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans.keep(key, self._new_plan(arrays, dim, key[-1][0], shape, LOOPS.enabled))
        results = plan.run(*arrays, *scalars)
        if results is NotImplemented:  # compiled loops reject scalars that are not numbers
            results = self._new_plan(arrays, dim, key[-1][0], shape, False).run(*arrays, *scalars)
        return results

    def plan(self, arrays: Arrays, dim: int, scalars: Sequence[Any] = (), *, shape: Shape | None = None) -> Plan:
        """Return the plan that `run` follows. Its functions take the arrays and then the scalars."""
        variant = self.choose(*arrays, *scalars)[0]
        return self._new_plan(arrays, dim, variant, shape, LOOPS.enabled)

    def call_in_parts(
        self, arrays: Arrays, scalars: Sequence[Any], shapes: dict[str, Shape], length: int, parts: Sequence[int]
    ) -> NativeCall | None:
        """Return the call of a program for rows `in_parts` (see `row_loops`), or None if NumPy must compute it."""
        dtype, variant = arrays[0].dtype, self.choose(*arrays, *scalars)[0]  # type: ignore[union-attr]
        outputs = self.variants[variant].outputs
        memory = [None if is_absent(node) else Memory(shapes[node.extent], dtype) for node in outputs]
        geometry = math.prod(shapes[ROW]), length, 1
        return self._compiled(variant, dtype.char).call(arrays, memory, geometry, dtype, parts)

    @unwatched
    def _new_plan(self, arrays: Arrays, dim: int, variant: int, shape: Shape | None, compiled: bool) -> Plan:
        whole: Any = arrays[self._whole]
        shape = whole.shape if shape is None else shape
        rank = len(shape)
        dim = dim if 0 <= dim < rank else normalize_dim(dim, rank)
        if self.refuse is not None:
            self.refuse(whole, dim)
        dtype, compute = arrays[0].dtype, compute_dtype(arrays[0].dtype)  # type: ignore[union-attr]
        length = shape[dim] if shape else 1
        outer, inner = math.prod(shape[:dim]), math.prod(shape[dim + 1 :])
        geometry = (outer, length, inner) if length > 1 else (1, length, outer * inner)
        size = outer * length * inner
        sizes = {ELEMENT: size, ROW: size // max(length, 1), COLUMN: length}
        for item, name in zip(arrays, self.parameters.arrays, strict=True):
            if item is not None and item.size != sizes[self.parameters.extents[name]] and size:
                raise ValueError(f"{name} has {item.size} elements, which do not fit rows of {length}")
        outputs = self.variants[variant].outputs
        memory = [None if is_absent(node) else _memory(node, shape, dim, dtype, compute) for node in outputs]
        if not size:  # Outputs other than elements are 0.
            return Plan(memory, into=_fill_with_zeros)
        if compiled:
            call = self._compiled(variant, compute.char).call(arrays, memory, geometry, compute)
            if call is not None:
                return call.plan([*self.parameters.arrays, *self.parameters.scalars])
        function = self.code(variant, compute.char)
        if size <= THREADED and compute is dtype:
            shapes = [item and item.shape for item in memory]
            return Plan(memory, run=SmallCall(function, arrays, self._extents, geometry, shapes))
        tiles, extents = RowTiles(function, self.variants[variant], compute, geometry), self._extents

        def into(results: Arrays, *arguments: Any) -> None:
            given, scalars = arguments[: len(extents)], arguments[len(extents) :]
            inputs = [
                (None if a is None else _view(a, extent, geometry), extent)
                for a, extent in zip(given, extents, strict=True)
            ]
            outs = [
                None if a is None else _view(a, node.extent, geometry) for node, a in zip(outputs, results, strict=True)
            ]
            tiles.run(inputs, scalars, outs)

        return Plan(memory, into=into)


class SmallCall:
    """The computation of small arrays with certain shapes, strides and dtypes by a function for small arrays."""

    __slots__ = ("_copied", "_function", "_length", "_shaped", "_views", "_warnings")

    def __init__(
        self, function: Callable[..., Any], arrays: Arrays, extents: Sequence[str], geometry: Geometry,
        results: Sequence[Shape | None],
    ) -> None:  # fmt: skip
        _, length, inner = geometry
        given = [
            (number, item, (length,) if extent == COLUMN and inner == 1 else _shape_of(extent, geometry))
            for number, (item, extent) in enumerate(zip(arrays, extents, strict=True))
            if item is not None
        ]
        self._function = function
        self._length = length
        self._warnings = off_for_rows(length if inner == 1 else inner)
        # Otherwise results would have the layout of their operands.
        self._copied = [number for number, item, _ in given if not item.flags.c_contiguous]
        self._views = [(number, shape) for number, item, shape in given if item.shape != shape]
        self._shaped = [(number, shape) for number, shape in enumerate(results) if shape is not None]

    def __call__(self, *arguments: Any) -> Any:
        """Return the results, with None for results that are not requested."""
        operands = list(arguments)
        for number in self._copied:
            operands[number] = numpy.ascontiguousarray(operands[number])
        for number, shape in self._views:
            operands[number] = operands[number].reshape(shape)
        token = WARNINGS[self._warnings]
        try:
            results = list(self._function(*operands, self._length))
        finally:
            restore(token)
        for number, shape in self._shaped:
            if results[number].shape != shape:
                results[number] = results[number].reshape(shape)
        return returned(results)


Refusing = Callable[[ndarray, int], None]
"""A function that raises an error for unsupported dtypes, given the first array and the dimension of its rows."""


def row_program(refuse: Refusing | None = None) -> Callable[[Callable[..., Any]], RowProgram]:
    """Convert a function of elements and rows to a row program."""
    return lambda function: RowProgram(function, refuse)


# --- arguments and results ------------------------------------------------------------------------------------


def _fill_with_zeros(out: Arrays, *_: Any) -> None:
    for item in out:
        if item is not None:
            item.fill(0)


def _shape_of(extent: str, geometry: Geometry) -> Shape:
    """Return the shape with rows along dimension 1: two dimensions, or three if dimensions follow the row."""
    outer, length, inner = geometry
    if inner == 1:
        return (outer, length) if extent == ELEMENT else (outer, 1) if extent == ROW else (1, length)
    return (outer, length, inner) if extent == ELEMENT else (outer, 1, inner) if extent == ROW else (1, length, 1)


def _view(array: ndarray, extent: str, geometry: Geometry) -> ndarray:
    shape = _shape_of(extent, geometry)
    return array if array.shape == shape else array.reshape(shape)


def _memory(node: Node, shape: Shape, dim: int, dtype: Dtype, compute: Dtype) -> Memory:
    if node.extent == ELEMENT:
        return Memory(shape, dtype_of(node.kind, dtype))
    row = (*shape[:dim], 1, *shape[dim + 1 :]) if shape else ()
    wanted = row if node.extent == ROW else (shape[dim] if shape else 1,)
    return Memory(wanted, dtype_of(node.kind, compute))

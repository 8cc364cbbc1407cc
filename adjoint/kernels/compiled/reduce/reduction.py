"""Reductions of large arrays by compiled loops: the loops for an array, and its division into pieces for threads."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from ....codegen.acceleration import SHAPES
from ....codegen.expression import ELEMENT, INPUT, NUMBER, ROW, Expression
from ....codegen.llvm.compilation import CompiledFunction
from ....codegen.llvm.kernels import *
from ....codegen.llvm.row_loops import row_kernel
from ....codegen.llvm.row_plan import ACROSS, ALONG, LAYOUT, RUN, TILE_VECTORS, TURNED, RowArray, RowPlan
from ....codegen.tracing import Symbol, Trace, row, xp
from ...memory.copying import convert
from ...runtime.costs import MOVED, NARROW, SHORT
from ...runtime.floating import compute_dtype, is_inexact
from ...runtime.layout import row_major_copy
from ...runtime.shapes import Dims, normalize_dims
from ..memory.copying import collapsed, row_steps

_CHUNK = 1 << 16
"""The number of elements of a piece of work in longer rows or in columns."""

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, center: row.sum(x),
    "nansum": lambda x, center: row.sum(xp.where(x == x, x, 0)),
    "prod": lambda x, center: row.prod(x),
    "amax": lambda x, center: row.max(x),
    "amin": lambda x, center: row.min(x),
    "any": lambda x, center: row.max(xp.where(x != 0, 1, 0)),
    "all": lambda x, center: row.min(xp.where(x != 0, 1, 0)),
    "any of bits": lambda x, center: row.max(x + x),  # without the sign
    "all of bits": lambda x, center: row.min(x + x),
    "count_nonzero": lambda x, center: row.sum(xp.where(x != 0, 1, 0)),
    "sum_of_squares": lambda x, center: row.sum(x * x),
    "sum_of_distances": lambda x, center: row.sum((x - center) * (x - center)),
    "sum_of_magnitudes": lambda x, center: row.sum(xp.abs(x)),
    "largest_magnitude": lambda x, center: row.max(xp.abs(x)),
    "smallest_magnitude": lambda x, center: row.min(xp.abs(x)),
}
"""The result of a row of elements `x`. `center` is a number for each row."""

_NEXT = {"row_sum": "sum", "row_prod": "prod", "row_max": "amax", "row_min": "amin"}
"""The reductions that combine the results of parts."""


@functools.cache
def _expression(name: str) -> Expression:
    trace = Trace({})
    nodes = [trace.graph.node(INPUT, (), NUMBER, *item) for item in (("x", ELEMENT), ("center", ROW))]
    return Expression((REDUCTIONS[name](*[Symbol(node, trace) for node in nodes]).node,))


@functools.cache
def _loops(name: str, kind: Any, numbers: Any, mode: str, bytes_: int, **options: Any) -> CompiledFunction:
    """Return the loops that reduce rows of type `kind` in the type `numbers`."""
    expression = _expression(name)
    given = [node for node in expression.nodes() if node.operation == INPUT]
    inputs = [RowArray(node, kind if node.value == "x" else numbers, node.extent) for node in given]
    (result,) = expression.outputs
    plan = RowPlan(expression, numbers, inputs, [RowArray(result, numbers, ROW)], [], mode, **options)
    return row_kernel(f"{name}_{kind}_{mode}", plan, str(expression))


_ACCUMULATED: dict[str, Any] = {"float16": f32, "bfloat16": f32, "float32": f32, "float64": f64}
_INT64 = numpy.dtype(numpy.int64)


def accumulated(name: str, dtype: numpy.dtype[Any]) -> Any:
    """Return the type in which a reduction of elements of `dtype` is computed, or None if it is not supported."""
    if dtype.kind in ("iub" if name[:3] in ("any", "all") else "iu" if name in ("amax", "amin") else ""):
        return type_of(dtype)
    if name == "count_nonzero" and dtype.kind in "iub":
        return i32 if dtype.itemsize < 8 else i64
    if name == "sum" and dtype.kind in "iub" and dtype.itemsize == 1:
        return i32  # the sums of pieces are exact
    return _ACCUMULATED.get(dtype.name, i64 if name in ("sum", "prod") and dtype.kind in "iub" else None)


def _dtype(type_: Any) -> numpy.dtype[Any]:
    return numpy.dtype(f"{type_.kind}{type_.bits // 8}")


class _Plan(NamedTuple):
    """The plan of the reduction of arrays of one layout."""

    calls: list[NativeCall]
    """The calls of loops. Each call reduces the result of the one before."""
    runs: list[Callable[..., ndarray]]
    """The functions that make these calls. The first takes the array, and the centers if there are any."""
    results: list[Memory]
    """Their results."""
    kept: tuple[int, ...]
    """The lengths of the dimensions that are kept, in memory order."""
    order: tuple[int, ...] | None
    """The order of these dimensions in the result, if it differs."""
    shape: tuple[int, ...]
    """The shape of the result."""
    walk: list[int]
    """The dimensions ordered by their strides, the largest first."""
    glued: int
    """The number of rows of columns that are joined into one row."""
    copied: bool = False
    """Whether the array is copied first."""

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The dtype of the result."""
        return self.results[-1].dtype

    def run(self, x: ndarray, center: ndarray | None = None) -> ndarray:
        """Return the reduction of an array as a row-major array, in the type of the computation."""
        arrays = [row_major_copy(x) if self.copied else x]
        if center is not None:
            middle = numpy.ascontiguousarray(center.transpose(self.walk), self.results[0].dtype)
            arrays.append(numpy.tile(middle.reshape(-1), self.glued) if self.glued > 1 else middle)
        for run in self.runs if SHAPES.recorder is None else [call.plan(call.arrays).compute for call in self.calls]:
            arrays = [run(*arrays)]
        found = arrays[0]
        if self.order is None:
            return found
        return numpy.ascontiguousarray(found.reshape(self.kept).transpose(self.order)).reshape(self.shape)


def planned(x: ndarray, name: str, dim: Dims, keepdim: bool, dtype: numpy.dtype[Any] | None) -> Any:
    """Return the plan that reduces `x` over `dim` by `name`, a reduction or "mean", to sums or products of `dtype`."""
    result = _result_dtype(name, x.dtype, dtype)
    dims = normalize_dims(dim, x.ndim)
    is_truth = x.dtype.kind == "b" and result is not None and result.kind == "b"
    if result is None or (is_truth and (len(dims) == x.ndim or x.shape[-1] > NARROW)):
        return NotImplemented  # NumPy's search in a long row of bool ends at the first element that decides
    divisor = math.prod([x.shape[axis] for axis in dims]) if name == "mean" else 0
    reduction = "sum" if name == "mean" else name
    plan = _plan(reduction, x.dtype, x.shape, x.strides, dims, keepdim, False, HOST.vector_bytes)
    if plan is None:
        return NotImplemented
    if len(plan.calls) == 1 and plan.dtype is result and not (divisor or plan.copied or plan.order):
        return plan.calls[0]
    in_parts = result.kind == "c"

    def run(x: ndarray, *_: Any) -> ndarray:
        found = plan.run(x)
        if divisor:
            numpy.true_divide(found, divisor, found)
        if in_parts:
            return found.view(result).reshape(found.shape[:-1])
        return found if plan.dtype is result else convert(found, result)

    return Plan([Memory(plan.shape[:-1] if in_parts else plan.shape, result)], run=recordable(run))


def _result_dtype(name: str, dtype: numpy.dtype[Any], asked: numpy.dtype[Any] | None) -> numpy.dtype[Any] | None:
    """Return the dtype of a reduction of elements of `dtype`, or None if it requires loops for another dtype."""
    if name in ("amax", "amin"):
        return dtype
    if name in ("any", "all"):
        return numpy.dtype(numpy.uint8 if dtype.char == "B" else bool)
    if name == "count_nonzero":
        return None if dtype.kind == "b" else _INT64
    if name == "nansum" and dtype.char not in "fd":
        return None
    wanted = asked or (dtype if is_inexact(dtype) else _INT64)
    if is_inexact(dtype):
        return wanted if wanted in (dtype, compute_dtype(dtype)) else None
    return wanted if wanted == _INT64 and name in ("sum", "prod") and dtype.kind in "iub" else None


@recordable
def reduce(name: str, x: ndarray, dims: tuple[int, ...], keepdim: bool = False, center: ndarray | None = None) -> Any:
    """Return the reduction `name` of `x` over `dims`, in the type of the computation.

    `center`, for "sum_of_distances", is the mean over `dims`, which are kept with size 1.
    """
    plan = _plan(name, x.dtype, x.shape, x.strides, dims, keepdim, center is not None, HOST.vector_bytes)
    few = SHAPES.recorder is not None and x.size < MOVED  # NumPy computes them elsewhere
    return NotImplemented if plan is None or few else plan.run(x, center)


@functools.lru_cache(1024)
def _plan(
    name: str, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], dims: tuple[int, ...], keepdim: bool,
    centered: bool, vector_bytes: int,
) -> _Plan | None:  # fmt: skip
    parts = 1
    if dtype.kind == "c" and name == "sum":  # the parts of complex numbers are one more dimension
        parts, dtype = 2, numpy.dtype(f"f{dtype.itemsize // 2}")
        shape, strides = (*shape, 2), (*strides, dtype.itemsize)
    if name in ("any", "all") and dtype.kind in "fV" and dtype.itemsize < 8:
        name, dtype = f"{name} of bits", numpy.dtype(f"u{dtype.itemsize}")
    kind, numbers = type_of(dtype), accumulated(name, dtype)
    if kind is None or numbers is None or not dims or 0 in shape or math.prod(shape) >= 1 << 31:
        return None
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    planning = _Planning(name, kind, numbers, vector_bytes, centered)
    left = [axis for axis in order if shape[axis] != 1]
    expected = dtype.itemsize
    for axis in reversed(left):
        if strides[axis] != expected:
            order = list(range(len(shape)))
            found = None if centered else planning.rows_apart(shape, [step / dtype.itemsize for step in strides], dims)
            if found is None:
                steps = tuple([step * dtype.itemsize for step in row_steps(shape)])
                plan = _plan(name, dtype, shape, steps, dims, keepdim, centered, vector_bytes)
                return plan and plan._replace(copied=True)
            left = found
            break
        expected *= shape[axis]
    # Adjacent axes that are both kept or both reduced become one.
    groups = [(fate, [shape[axis] for axis in axes]) for fate, axes in itertools.groupby(left, dims.__contains__)]
    fates, lengths = [fate for fate, _ in groups], [math.prod(sizes) for _, sizes in groups]
    if (True not in fates and not planning.calls) or (centered and len(fates) > 2):
        return None
    if True in fates:
        planning.reduce(lengths, fates, parts)
    kept = [axis for axis in order if axis not in dims]
    turned = tuple(sorted(range(len(kept)), key=kept.__getitem__)) if kept != sorted(kept) else None
    result = tuple([1 if axis in dims else length for axis, length in enumerate(shape) if keepdim or axis not in dims])
    results = planning.results
    if turned is None:
        results[-1] = results[-1]._replace(shape=result)
    for call, memory in zip(planning.calls, results, strict=True):
        call.results = [memory]
    return _Plan(
        planning.calls,
        [call.plan(call.arrays).run for call in planning.calls],
        results,
        tuple(shape[axis] for axis in kept),
        turned,
        result,
        order,
        planning.glued,
    )


class _Planning:
    """The planning of the steps of a reduction, which first reduces an array's elements and then the results of pieces."""

    def __init__(self, name: str, kind: Any, numbers: Any, vector_bytes: int, centered: bool) -> None:
        self.name = name
        self.kind = kind
        self.numbers = numbers
        self.vector_bytes = vector_bytes
        self.centered = centered
        self.calls: list[NativeCall] = []
        self.results: list[Memory] = []
        self.glued = 1

    @property
    def width(self) -> int:
        """Return the number of columns that loops process together, which is the maximum for elements of a row."""
        return 4 * max(1, self.vector_bytes * 8 // self.numbers.bits)

    def _registers(self, n: int) -> int:
        """Return the number of vectors that loops process together, so that they contain few elements beyond `n`."""
        return next((many for many in (4, 2) if -n % (self.width * many // 4) <= n // 8), 1)

    def _add(
        self, mode: str, results: int, piece: int, units: int, length: int, inner: int, chunk: int, tile: int, step: int,
        outer_step: int, rest: int = 0, place: tuple[int, ...] = (), lanes: int = 1,
    ) -> None:  # fmt: skip
        registers = self._registers(chunk if mode == ALONG else tile)
        function = _loops(
            self.name, self.kind, self.numbers, mode, self.vector_bytes, chunked=mode == ACROSS or chunk < length,
            apart=bool(place), glued=rest > 0, lanes=lanes, registers=registers,
            single=mode == ALONG and chunk <= RUN * self.width // 4 * registers,
        )  # fmt: skip
        layout = LAYOUT.pack(
            units=units, length=length, inner=inner, block=1, chunk=chunk, tile=tile, rest=rest, step=step,
            outer_step=outer_step, place=place or [0] * 5, parts=1, stretches=1, distance=0, period=1,
        )  # fmt: skip
        arrays = ["x", "center"] if self.centered else ["x"]
        self.calls.append(NativeCall(function, units, piece * self.kind.bits // 8, layout, arrays, ()))
        self.results.append(Memory((results,), _dtype(self.numbers)))
        self.kind, self.centered = self.numbers, False  # the next steps combine results
        if self.name == "count_nonzero" or (self.name == "sum" and self.numbers is i32):
            self.numbers = i64
        self.name = _NEXT[_expression(self.name).outputs[0].operation]

    def reduce(self, lengths: list[int], fates: list[bool], parts: int) -> None:
        """Reduce a contiguous array, whose axes are alternately kept and reduced, from its last axis to its first."""
        lengths, fates = lengths[:], fates[:]
        whole = parts if lengths[-1] == parts > 1 else 1
        if whole > 1:
            lengths.pop()
            fates.pop()
        if fates.pop():
            n = lengths.pop()
            self.rows(math.prod(lengths), n * whole, whole)
            if fates:
                fates.pop()
                lengths[-1] *= whole
        while fates:
            inner, rows = lengths.pop(), lengths.pop()
            self.columns(math.prod(lengths), rows, inner)
            fates.pop()
            lengths.append(lengths.pop() * inner if lengths else inner)
            if fates:
                fates.pop()

    def rows_apart(self, shape: tuple[int, ...], strides: list[float], dims: tuple[int, ...]) -> list[int] | None:
        """Reduce an array with gaps over its fastest axis. Return the other axes, or None without a loop."""
        if any(step % 1 for step in strides):
            return None
        steps = [int(step) for step in strides]
        reduced = sorted([axis for axis in dims if shape[axis] != 1], key=lambda axis: -abs(steps[axis]))
        if not reduced:
            return None
        n, _, step = collapsed([(shape[axis], steps[axis], steps[axis]) for axis in reduced])[-1]
        together = 0
        while math.prod(shape[axis] for axis in reduced[together:]) != n:
            together += 1
        left = [axis for axis in range(len(shape)) if shape[axis] != 1 and axis not in reduced[together:]]
        rows = tuple([shape[axis] for axis in left])
        axes = collapsed([(shape[axis], to, steps[axis]) for axis, to in zip(left, row_steps(rows), strict=True)])
        (inner, _, inner_step), (middle, _, middle_step), (_, _, outer_step) = [*axes[::-1], *[(1, 0, 0)] * 3][:3]
        if step == 1 and len(axes) <= 3:
            self.rows(math.prod(rows), n, 1, (inner, inner_step, middle, middle_step, outer_step))
        elif inner_step == 1 and len(axes) <= 2:
            self.columns(middle, n, inner, (step, middle_step))
        else:
            return None
        return left

    def rows(self, rows: int, n: int, lanes: int = 1, place: tuple[int, ...] = ()) -> None:
        """Reduce (rows, n) to (rows, lanes). `place`: the arguments of `row_place` if rows are not consecutive."""
        if n <= SHORT and rows > 1 and lanes == 1 and not place:
            self._add(TURNED, rows, n * self.width, -(-rows // self.width), n, rows, n, self.width, 1, 0)
            return
        chunk = min(n, _CHUNK)
        chunks = -(-n // chunk)
        self._add(ALONG, rows * chunks * lanes, chunk, rows * chunks, n, 1, chunk, 1, 1, n, place=place, lanes=lanes)
        if chunks > 1:
            self.rows(rows, chunks * lanes, lanes)

    def columns(self, outer: int, rows: int, inner: int, steps: tuple[int, int] | None = None) -> None:
        """Reduce (outer, rows, inner) to (outer, inner). `steps`: the distances of rows and matrices with gaps."""
        rest = 0
        glue = 1
        if steps is None and outer == 1 and inner < NARROW and rows >= 4 * self.width:
            glue = self.width  # several rows are joined to one long row, so that all vectors are full
            rest = rows % glue * inner
            rows //= glue
            inner *= glue
            if self.centered:
                self.glued = glue
        step, outer_step = steps or (inner, rows * inner)
        tile = min(inner, TILE_VECTORS * self.width)
        chunk = min(rows, max(16, _CHUNK // tile))
        parts = outer * -(-rows // chunk)
        units = parts * -(-inner // tile)
        self._add(ACROSS, parts * inner, chunk * tile, units, rows, inner, chunk, tile, step, outer_step, rest)
        if parts > outer or glue > 1:
            self.columns(outer, parts // outer * glue, inner // glue)

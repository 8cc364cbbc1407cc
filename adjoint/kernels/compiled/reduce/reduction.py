"""Reductions of large arrays by compiled loops: the loops for an array, and its division into pieces for threads."""

from __future__ import annotations

from typing import NamedTuple

from ....codegen.llvm.calls import CallTables
from ....codegen.llvm.kernels import *
from ...memory.copying import convert
from ...runtime.floating import compute_dtype, is_inexact
from ...runtime.shapes import Dims, normalize_dims
from ..memory.copying import collapsed, row_steps
from .loops import TILE, reduce_columns, reduce_rows, reduce_short_rows

_CHUNK = 1 << 16
"""The number of elements of a piece of work in longer rows or in columns."""

_SHORT = 16
"""The maximum number of elements of rows that are reduced side by side."""

_FEW = 64
"""The same maximum for rows with any steps between elements."""

_MANY = 64
"""The number of pieces of work that need not be divided further."""

_NARROW = 256
"""The number of columns below which rows are joined to longer rows."""

_MOST_ROWS = 1024
"""The maximum number of rows that one set of accumulators processes. A larger number would reduce the accuracy of float32."""


# ---------------------------------------------------------------------------------------------------------------------
# The conversion of an element, and the combination of two results


@loops
def itself(x: T, center: S) -> S:
    """Return the element."""
    return S(x)


@loops
def nonzero(x: T, center: S) -> S:
    """Return 1 if the number is not zero, and 0 otherwise."""
    return S((f32(x) if x.type.element.storage_only else x) != 0)


@loops
def square(x: T, center: S) -> S:
    """Return the square of an element."""
    return S(x) * S(x)


@loops
def squared_distance(x: T, center: S) -> S:
    """Return the square of the distance from the center."""
    distance = S(x) - center
    return distance * distance


@loops
def magnitude(x: T, center: S) -> S:
    """Return the absolute value."""
    return fabs(S(x))


@loops
def nan_as_zero(x: T, center: S) -> S:
    """Return the element, or zero for a NaN."""
    return where(S(x) == S(x), S(x), S(0))


@loops
def plus(a: T, b: T) -> T:
    """Return the sum."""
    return a + b


@loops
def times(a: T, b: T) -> T:
    """Return the product."""
    return a * b


@loops
def either(a: T, b: T) -> T:
    """Return the bitwise or."""
    return a | b


@loops
def both(a: T, b: T) -> T:
    """Return the bitwise and."""
    return a & b


class Reduction(NamedTuple):
    """A reduction: the conversion of each element, the combination of two results, and the neutral element."""

    mapping: Loops
    combination: Any
    identity: float


REDUCTIONS = {
    "sum": Reduction(itself, plus, 0),
    "nansum": Reduction(nan_as_zero, plus, 0),
    "prod": Reduction(itself, times, 1),
    "amax": Reduction(itself, maximum, -math.inf),
    "amin": Reduction(itself, minimum, math.inf),
    "any": Reduction(nonzero, either, 0),
    "all": Reduction(nonzero, both, 1),
    "count_nonzero": Reduction(nonzero, plus, 0),
    "sum_of_squares": Reduction(square, plus, 0),
    "sum_of_distances": Reduction(squared_distance, plus, 0),
    "sum_of_magnitudes": Reduction(magnitude, plus, 0),
    "largest_magnitude": Reduction(magnitude, maximum, 0),
    "smallest_magnitude": Reduction(magnitude, minimum, math.inf),
}

_ACCUMULATED: dict[str, Any] = {"float16": f32, "bfloat16": f32, "float32": f32, "float64": f64}
_NO_CENTER = numpy.zeros(1)
_INT64 = numpy.dtype(numpy.int64)


def accumulated(name: str, dtype: numpy.dtype[Any]) -> Any:
    """Return the type in which a reduction of elements of `dtype` is computed, or None if it is not supported."""
    if name in ("any", "all"):
        return u8 if dtype.itemsize == 1 else i64 if dtype.itemsize == 8 else i32
    if name == "count_nonzero":
        return i32
    if name in ("amax", "amin") and dtype.kind in "iu":
        return type_of(dtype)
    return _ACCUMULATED.get(dtype.name, i64 if name in ("sum", "prod") and dtype.kind in "iub" else None)


class _Step(NamedTuple):
    """One call of a loop: its pieces of work, and the results that it provides to the next step."""

    function: Any
    pieces: int
    piece_bytes: int
    shape: tuple[int, ...]
    tables: CallTables


class _Plan(NamedTuple):
    """The plan of the reduction of arrays of one layout."""

    steps: list[_Step]
    dtype: numpy.dtype[Any]
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

    def run(self, x: ndarray, center: ndarray | None = None) -> ndarray:
        """Return the reduction of an array as a row-major array, in the type of the computation."""
        middle = _NO_CENTER
        if center is not None:
            middle = numpy.ascontiguousarray(center.transpose(self.walk), self.dtype)
            if self.glued > 1:
                middle = numpy.tile(middle.reshape(-1), self.glued)
        source = x
        for function, pieces, piece_bytes, shape, tables in self.steps:
            out = numpy.empty(shape, self.dtype)
            table = tables.make((out, source, middle), ())
            launch(function, pieces, piece_bytes, tables.address(table))
            source = out
        if self.order is None:
            return source
        return numpy.ascontiguousarray(source.reshape(self.kept).transpose(self.order)).reshape(self.shape)


def planned(x: ndarray, name: str, dim: Dims, keepdim: bool, dtype: numpy.dtype[Any] | None) -> Any:
    """Return the plan that reduces `x` over `dim` by `name` (a reduction or "mean"), or NotImplemented without a loop.

    `dtype`: the dtype of the sum or product.
    """
    result = _result_dtype(name, x.dtype, dtype)
    dims = normalize_dims(dim, x.ndim)
    is_truth = x.dtype.kind == "b" and result is not None and result.kind == "b"
    if result is None or (is_truth and (len(dims) == x.ndim or x.size < _MANY * x.shape[-1] ** 2)):
        return NotImplemented  # NumPy's search in a long row of bool ends at the first element that decides
    divisor = math.prod([x.shape[axis] for axis in dims]) if name == "mean" else 0
    reduction = "sum" if name == "mean" else name
    plan = _plan(reduction, x.dtype, x.shape, x.strides, dims, keepdim, False, HOST.vector_bytes)
    if plan is None:
        return NotImplemented
    in_parts = result.kind == "c"

    def run(x: ndarray, *_: Any) -> ndarray:
        found = plan.run(x)
        if divisor:
            numpy.true_divide(found, divisor, found)
        if in_parts:
            return found.view(result).reshape(found.shape[:-1])
        return found if plan.dtype is result else convert(found, result)

    return Plan([Memory(plan.shape[:-1] if in_parts else plan.shape, result)], run=run)


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


def reduce(name: str, x: ndarray, dims: tuple[int, ...], keepdim: bool = False, center: ndarray | None = None) -> Any:
    """Return the reduction `name` of `x` over `dims`, in the type of the computation, or NotImplemented without a loop.

    `center`, for "sum_of_distances", is the mean over `dims`, which are kept with size 1.
    """
    plan = _plan(name, x.dtype, x.shape, x.strides, dims, keepdim, center is not None, HOST.vector_bytes)
    return NotImplemented if plan is None else plan.run(x, center)


@functools.lru_cache(1024)
def _plan(
    name: str, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], dims: tuple[int, ...], keepdim: bool,
    centered: bool, vector_bytes: int,
) -> _Plan | None:  # fmt: skip
    parts = 1
    if dtype.kind == "c" and name == "sum":  # the parts of complex numbers are one more dimension
        parts, dtype = 2, numpy.dtype(f"f{dtype.itemsize // 2}")
        shape, strides = (*shape, 2), (*strides, dtype.itemsize)
    kind, numbers = type_of(dtype), accumulated(name, dtype)
    if kind is None or numbers is None or not dims or 0 in shape or math.prod(shape) >= 1 << 31:
        return None
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    planning = _Planning(REDUCTIONS[name], kind, numbers, vector_bytes, centered)
    left = [axis for axis in order if shape[axis] != 1]
    expected = dtype.itemsize
    for axis in reversed(left):
        if strides[axis] != expected:
            if centered:
                return None
            order = list(range(len(shape)))
            found = planning.rows_apart(shape, [step / dtype.itemsize for step in strides], dims)
            if found is None:
                return None
            left = found
            break
        expected *= shape[axis]
    lengths: list[int] = []
    fates: list[bool] = []
    for axis in left:  # adjacent axes that are both kept or both reduced become one
        if fates and fates[-1] == (axis in dims):
            lengths[-1] *= shape[axis]
        else:
            lengths.append(shape[axis])
            fates.append(axis in dims)
    if (True not in fates and not planning.steps) or (centered and len(fates) > 2):
        return None
    if True in fates:
        planning.reduce(lengths, fates, parts)
    kept = [axis for axis in order if axis not in dims]
    turned = tuple(sorted(range(len(kept)), key=kept.__getitem__)) if kept != sorted(kept) else None
    result = tuple([1 if axis in dims else length for axis, length in enumerate(shape) if keepdim or axis not in dims])
    if turned is None:
        planning.steps[-1] = planning.steps[-1]._replace(shape=result)
    return _Plan(
        planning.steps,
        numpy.dtype(f"{numbers.kind}{numbers.bits // 8}"),
        tuple(shape[axis] for axis in kept),
        turned,
        result,
        order,
        planning.glued,
    )


class _Planning:
    """The planning of the steps of a reduction, which first reduces an array's elements and then the results of pieces."""

    def __init__(self, reduction: Reduction, kind: Any, numbers: Any, vector_bytes: int, centered: bool) -> None:
        self.reduction = reduction
        self.mapping = reduction.mapping
        self.identity: float = reduction.identity
        if numbers.kind != "f" and math.isinf(self.identity):
            limits = numpy.iinfo(f"{numbers.kind}{numbers.bits // 8}")
            self.identity = limits.min if self.identity < 0 else limits.max
        self.kind = kind
        self.numbers = numbers
        self.width = 8 * vector_bytes // numbers.bits
        self.centered = centered
        self.steps: list[_Step] = []
        self.glued = 1

    def _add(self, loop: Loops, results: int, pieces: int, elements: int, *arguments: int, **static: Any) -> None:
        function = loop.compiled(
            T=self.kind, S=self.numbers, W=self.width, MAP=self.mapping, COMBINE=self.reduction.combination, **static
        )
        tables = CallTables(arguments, 3, 0, "q")
        self.steps.append(_Step(function, pieces, elements * self.kind.bits // 8, (results,), tables))
        self.kind, self.mapping, self.centered = self.numbers, itself, False  # the next steps combine results

    def reduce(self, lengths: list[int], fates: list[bool], parts: int) -> None:
        """Reduce a contiguous array, whose axes are alternately kept and reduced, from its last axis to its first.

        The last axis of rows of complex numbers consists of the two parts.
        """
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
        """Reduce an array with gaps or repeated elements over the axis with the smallest stride, and return the other axes.

        Return None if there is no loop for it. Adjacent axes that form one axis in memory are reduced together.
        """
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
        place = (inner, inner_step, middle, middle_step, outer_step)
        if len(axes) > 3:
            return None
        if step == 1 and n > _SHORT:
            self.rows(math.prod(rows), n, 1, place)
        elif inner < _SHORT:
            return None
        elif inner_step == 1 and len(axes) < 3:
            self.columns(middle, n, inner, (step, middle_step))
        elif n <= _FEW or (n <= _MOST_ROWS and abs(inner_step) <= 4):
            self._add(reduce_short_rows, math.prod(rows), math.prod(rows), n + 8, 0, n, step, *place)
        else:
            return None
        return left

    def rows(self, rows: int, n: int, parts: int = 1, place: tuple[int, ...] | None = None) -> None:
        """Reduce (rows, n) to (rows, parts). `place`: the arguments of `row_place` if rows are not consecutive."""
        step = int(self.centered and rows > 1)
        if n <= _SHORT and rows > 1 and parts == 1:
            self._add(reduce_short_rows, rows, rows, n + 8, step, n, 1, rows, n, 1, 0, 0)
            return
        chunk = n if rows >= _MANY and n < 1 << 30 else min(n, _CHUNK)
        chunks = -(-n // chunk)
        pieces = rows * chunks
        self._add(
            reduce_rows, pieces * parts, pieces, chunk, step, n, chunk, *(place or ()), IDENTITY=self.identity, PARTS=parts,
            APART=place is not None,
        )  # fmt: skip
        if chunks > 1:
            self.rows(rows, chunks * parts, parts)

    def columns(self, outer: int, rows: int, inner: int, steps: tuple[int, int] | None = None) -> None:
        """Reduce (outer, rows, inner) to (outer, inner).

        `steps`: the distances between rows and between matrices, if there are gaps.
        """
        rest = 0
        glue = 1
        if steps is None and outer == 1 and inner < _NARROW and rows * inner >= 4 * _NARROW:
            # Several rows are joined to one long row.
            glue = -(-_NARROW // inner)
            rest = rows % glue * inner
            rows //= glue
            inner *= glue
            if self.centered:
                self.glued = glue
        step, outer_step = steps or (inner, rows * inner)
        tiles = -(-inner // TILE)
        chunk = min(rows, _MOST_ROWS)
        if outer * tiles < _MANY:
            chunk = min(chunk, max(16, _CHUNK // min(inner, TILE)))
        chunks = -(-rows // chunk)
        self._add(
            reduce_columns, outer * chunks * inner, outer * chunks * tiles, chunk * min(inner, TILE), rows, inner, chunk, rest,
            step, outer_step, IDENTITY=self.identity, CENTERED=self.centered,
        )  # fmt: skip
        if chunks > 1 or glue > 1:
            self.columns(outer, chunks * glue, inner // glue)

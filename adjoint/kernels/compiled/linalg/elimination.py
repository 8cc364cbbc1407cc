"""Elimination with partial pivoting, and substitution, for each matrix of a stack separately.

The matrices are panels or small matrices.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ....codegen.plans import Memory, Plan
from ...runtime.shapes import broadcast_shapes

Array = numpy.ndarray[Any, Any]


@loops
def exceeds(size: T, most: T) -> boolean:
    """Return whether a number is preferred to the best pivot so far. The first NaN is preferred to numbers."""
    return (size > most) | ((size != size) & (most == most))


@loops
def largest(column: Pointer[T], first: Int, rows: Int, stride: Int) -> Int:
    """Return the row of the first of the largest elements of a column, from row `first` on."""
    chosen = first
    most = fabs(column[first * stride])
    for i in range(first + 1, rows):
        size = fabs(column[i * stride])
        better = exceeds(size, most)
        most = size if better else most
        chosen = i if better else chosen
    return chosen


@loops
def factor(
    matrix: Pointer[T], pivots: Pointer[i32], rows: Int, count: Int, columns: Int, stride: Int, W: Static
) -> Int:
    """Eliminate the first `count` columns in place. Return whether all pivots are nonzero numbers."""
    regular = i64(1)
    whole = columns // W * W
    rest = first_lanes(columns - whole, W)
    chosen = largest(matrix, i64(0), rows, stride)
    for k in range(count):
        pivots[k] = i32(chosen)
        top = matrix + k * stride
        other = matrix + chosen * stride
        if chosen != k:
            for j in range(columns):
                kept = top[j]
                top[j] = other[j]
                other[j] = kept
        pivot = top[k]
        if (pivot == 0) | (pivot - pivot != 0):
            regular = i64(0)
        following = minimum(k + 1, count - 1)
        if pivot == 0:
            chosen = largest(matrix + following, minimum(k + 1, rows - 1), rows, stride)
        else:
            first = k // W * W
            there = first_lanes(columns - first, W)
            place = lanes(i64, W)
            own, later = place == broadcast(k - first, W), place > broadcast(k - first, W)
            line = load(top + first, W, there)
            # Find the next pivot in the same pass.
            most = T(-1)
            next = top[following]
            chosen = minimum(k + 1, rows - 1)
            for i in range(k + 1, rows):
                row = matrix + i * stride
                share = row[k] / pivot
                size = fabs(fma(-share, next, row[following]))
                better = exceeds(size, most)
                most = size if better else most
                chosen = i if better else chosen
                factor = broadcast(-share, W)
                before = load(row + first, W, there)
                after = where(later, fma(factor, line, before), where(own, -factor, before))
                store(row + first, after, there)
                for j in range(first + W, whole, W):
                    store(row + j, fma(factor, load(top + j, W), load(row + j, W)))
                if (whole < columns) & (first < whole):
                    store(row + whole, fma(factor, load(top + whole, W, rest), load(row + whole, W, rest)), rest)
    return regular


@loops
def substitute(
    x: Pointer[T], x_row: Int, columns: Int, a: Pointer[T], a_row: Int, a_column: Int, size: Int,
    divided: boolean, W: Static,
) -> None:  # fmt: skip
    """Solve a lower triangular system of whole vectors in place, with or without dividing by the diagonal."""
    for k in range(size):
        known = x + k * x_row
        factors = a + k * a_column
        for j in range(0, columns, W):
            line = load(known + j, W)
            if divided:
                line = line / broadcast(factors[k * a_row], W)
                store(known + j, line)
            for i in range(k + 1, size):
                target = x + (i * x_row + j)
                store(target, fma(broadcast(-factors[i * a_row], W), line, load(target, W)))


@loops(noalias=False, plain=True)
def factor_stack(
    work: Pointer[T], pivots: Pointer[i32], rows: Int, columns: Int, stride: Int, matrix_stride: Int, pivot_stride: Int,
    W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Factor matrices `start` to `stop` in place."""
    for number in range(start, stop):
        matrix, chosen = work + number * matrix_stride, pivots + number * pivot_stride
        factor(matrix, chosen, rows, minimum(rows, columns), columns, stride, W)


@loops(noalias=False, plain=True)
def lu_stack(
    out: Pointer[T], pivots: Pointer[i32], work: Pointer[T], a: Pointer[T], a_row: Int, a_column: Int, matrix_stride: Int,
    rows: Int, columns: Int, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Store the factors of matrices in column-major order, and their pivots counted from 1. `work` is scratch memory."""
    count = minimum(rows, columns)
    for number in range(start, stop):
        matrix, own = a + number * matrix_stride, work + number * rows * columns
        target, chosen = out + number * rows * columns, pivots + number * count
        for i in range(rows):
            for j in range(columns):
                own[i * columns + j] = matrix[i * a_row + j * a_column]
        factor(own, chosen, rows, count, columns, columns, W)
        for j in range(columns):
            for i in range(rows):
                target[j * rows + i] = own[i * columns + j]
        for k in range(count):
            chosen[k] = chosen[k] + 1


@loops(noalias=False, plain=True)
def solve_stack(
    work: Pointer[T], pivots: Pointer[i32], regular: Pointer[i32], size: Int, columns: Int, W: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Solve systems in place. Each row contains the row of a square matrix and then the right-hand sides."""
    for number in range(start, stop):
        matrix = work + number * size * columns
        regular[number] = i32(factor(matrix, pivots + number * size, size, size, columns, columns, W))
        last = matrix + (size - 1) * columns
        substitute(last + size, -columns, columns - size, last + (size - 1), -columns, i64(-1), size, columns > 0, W)


@loops(noalias=False, plain=True)
def substitute_stack(
    x: Pointer[T], columns: Int, a: Pointer[T], a_row: Int, a_column: Int, matrix_stride: Int, size: Int, way: Int,
    divided: Int, irregular: Pointer[i64], W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Solve triangular systems in place, from the first row to the last, or in reverse order if `way` is -1.

    If the rows are `divided` by a diagonal with zeros or with numbers that are not finite, only set `irregular` to 1.
    """
    for number in range(start, stop):
        first = 0 if way > 0 else size - 1
        target = x + (number * size + first) * columns
        matrix = a + (number * matrix_stride + first * (a_row + a_column))
        usable = i64(1)
        if divided != 0:
            for i in range(size):
                pivot = matrix[way * i * (a_row + a_column)]
                if (pivot == 0) | (pivot - pivot != 0):
                    usable = i64(0)
        if usable == 0:
            irregular[0] = 1
        else:
            substitute(target, way * columns, columns, matrix, way * a_row, way * a_column, size, divided != 0, W)


@loops(noalias=False, plain=True, T=FLOATS)
def unpack_stack(
    lower: Pointer[T], upper: Pointer[T], permutation: Pointer[T], order: Pointer[i64], work: Pointer[T], pivots: Pointer[i32],
    rows: Int, columns: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Unpack both factors and the permutation into zeroed memory. `order` is scratch memory."""
    count = minimum(rows, columns)
    for number in range(start, stop):
        matrix, own = work + number * rows * columns, order + number * rows
        left, right = lower + number * rows * count, upper + number * count * columns
        for i in range(rows):
            own[i] = i
            for j in range(minimum(i, count)):
                left[i * count + j] = matrix[i * columns + j]
            if i < count:
                left[i * count + i] = T(1)
                for j in range(i, columns):
                    right[i * columns + j] = matrix[i * columns + j]
        for k in range(count):
            other = i64(pivots[number * count + k])
            kept = own[k]
            own[k] = own[other]
            own[other] = kept
        for i in range(rows):
            permutation[(number * rows + own[i]) * rows + i] = T(1)


def _width(array: Array) -> int:
    return HOST.vector_bytes // array.itemsize


def _work(rows: int, columns: int) -> int:
    """Return the cost of a matrix, as the number of bytes that could be copied in the same time."""
    return rows * columns * (64 + min(rows, columns))


def factor_panel(work: Array, pivots: Array) -> Any:
    """Factor matrices (batch, rows, columns) in place, and store their pivots. Return NotImplemented for complex matrices."""
    kind = FLOATS(work.dtype)
    item = work.itemsize
    if kind is None or work.strides[2] != item or pivots.strides[1] != pivots.itemsize:
        return NotImplemented
    batch, rows, columns = work.shape
    strides = work.strides[1] // item, work.strides[0] // item, pivots.strides[0] // pivots.itemsize
    function = factor_stack.compiled(T=kind, W=_width(work))
    launch(function, batch, _work(rows, columns), work, pivots, rows, columns, *strides)
    return None


def lu_factor(a: Array) -> Any:
    """Plan the factors of matrices in column-major order, and their pivots counted from 1."""
    kind, (rows, columns), batch = FLOATS(a.dtype), a.shape[-2:], a.shape[:-2]
    if kind is None or not a.size:
        return NotImplemented
    (outer, *inner), viewed = _strides_in_stack(a)
    function, count, work = lu_stack.compiled(T=kind, W=_width(a)), math.prod(batch), _work(rows, columns)
    order = (*range(len(batch)), a.ndim - 1, a.ndim - 2)

    def into(out: Any, a: Array) -> None:
        scratch = numpy.empty(a.size, a.dtype)
        launch(function, count, work, *out, scratch, a if viewed else a.copy(), *inner, outer, rows, columns)

    results = Memory(a.shape, a.dtype, order), Memory((*batch, min(rows, columns)), numpy.dtype(numpy.int32))
    return Plan(results, into=into)


def _strides_in_stack(a: Array) -> tuple[list[int], bool]:
    """Return the strides of matrices in a stack in elements, and whether the stack is a view of `a` and not a copy."""
    stack = a.reshape(-1, *a.shape[-2:])
    return [stride // a.itemsize for stride in stack.strides], numpy.may_share_memory(stack, a)


def unpack(work: Array, pivots: Array) -> Any:
    """Compute `factored.lu_unpack` for contiguous stacks, with pivots numbered from 0."""
    batch, rows, columns = work.shape
    count = min(rows, columns)
    made = [numpy.zeros((batch, *shape), work.dtype) for shape in ((rows, count), (count, columns), (rows, rows))]
    order = numpy.empty((batch, rows), numpy.int64)
    work_bytes = 4 * rows * columns * work.itemsize
    found = unpack_stack.run(batch, work_bytes, *made, order, work, pivots, rows, columns)
    return found if found is NotImplemented else made


def pivots_of(a: Array) -> Any:
    """Return the pivots of regular, finite matrices in float64, and the signs of their row exchanges."""
    size = a.shape[-1]
    if FLOATS(a.dtype) is None or not a.size:
        return NotImplemented
    work = numpy.array(a, numpy.float64, order="C").reshape(-1, size, size)
    exchanged = numpy.empty((len(work), size), numpy.int32)
    factor_panel(work, exchanged)
    diagonal = numpy.ascontiguousarray(work.diagonal(0, 1, 2).T).T  # reductions of few long columns are fast
    if not diagonal.all() or not numpy.isfinite(diagonal).all():
        return NotImplemented
    exchanges = numpy.not_equal(exchanged, numpy.arange(size, dtype=numpy.int32), order="F")
    odd = numpy.logical_xor.reduce(exchanges, 1)
    return diagonal, 1.0 - 2.0 * odd


def solve(a: Array, b: Array | None) -> Any:
    """Find X with `a @ X = b`, or the inverse if `b` is missing. Return NotImplemented if a matrix is singular or not finite."""
    kind, size = FLOATS(a.dtype), a.shape[-1]
    if kind is None or not a.size or (b is not None and (b.dtype is not a.dtype or not b.size)):
        return NotImplemented
    batch = a.shape[:-2] if b is None else broadcast_shapes(a.shape[:-2], b.shape[:-2])
    width = HOST.vector_bytes // 8
    wide = size if b is None else b.shape[-1]
    columns = size + -(-wide // width) * width
    work = numpy.empty((*batch, size, columns))
    work[..., :size] = a
    work[..., size + wide :] = 0
    work[..., size : size + wide] = numpy.eye(size) if b is None else b
    count = math.prod(batch)
    pivots, regular = numpy.empty((count, size), numpy.int32), numpy.empty(count, numpy.int32)
    solve_stack.run(count, _work(size, 2 * columns), work, pivots, regular, size, columns, W=width)
    return work[..., size : size + wide].astype(a.dtype) if regular.all() else NotImplemented


def solve_triangular(a: Array, b: Array, upper: bool, unitriangular: bool) -> Any:
    """Plan `a @ X = b` for stacks of small triangular matrices. Run it unless a diagonal has zeros or is not finite."""
    kind, size = FLOATS(a.dtype), a.shape[-1]
    if kind is None or a.dtype is not b.dtype or not b.size:
        return NotImplemented
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide, width = b.shape[-1], _width(a)
    columns = -(-wide // width) * width
    function = substitute_stack.compiled(T=kind, W=width)
    work, step, count = _work(size, columns), -1 if upper else 1, math.prod(batch)

    def spread(a: Array) -> Array:
        return numpy.broadcast_to(a, (*batch, size, size))

    (outer, *inner), viewed = _strides_in_stack(spread(a))

    def run(a: Array, b: Array, *_: Any) -> Any:
        result, irregular = numpy.empty((*batch, size, columns), b.dtype), numpy.zeros(1, numpy.int64)
        if columns > wide:
            result[..., wide:] = 0
        result[..., :wide] = b
        launch(
            function, count, work, result, columns, a if viewed else spread(a).copy(), *inner, outer, size, step,
            int(not unitriangular), irregular,
        )  # fmt: skip
        return NotImplemented if irregular[0] else result if columns == wide else result[..., :wide]

    return Plan((Memory((*batch, size, wide), b.dtype),), run=run)

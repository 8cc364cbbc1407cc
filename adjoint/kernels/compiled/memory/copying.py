"""Copy large arrays between any two layouts: rows are copied on several threads, and transposed matrices are copied in blocks.

Copies may convert the dtype.
"""

from __future__ import annotations

from ....codegen.acceleration import LOOPS, SHAPES
from ....codegen.expression import INPUT, NUMBER, Expression, Graph
from ....codegen.llvm import pointwise_loops
from ....codegen.llvm.kernels import *
from ....codegen.llvm.pointwise_loops import Operand, layout_of, pointwise_kernel
from ....codegen.llvm.streaming import elements_before_aligned, end_streams, is_streamed, stream
from ....codegen.llvm.vectors import transposed
from ....codegen.numpy_tiles import walked
from ....codegen.plans import Plans, memory_like
from ...memory.copying import empty_like
from ...runtime.costs import PARALLEL_BYTES

_BLOCK = 64
"""The number of rows of a transposed matrix that are written side by side."""

Axis = tuple[int, int, int]
"""A dimension of two arrays, with its size and its steps in the target and in the source, in elements."""


@loops
def copy_row(
    target: Pointer[T], source: Pointer[T], n: Int, target_step: Int, source_step: Int, KIND: Static, W: Static,
    STREAMED: Static = False,
) -> None:  # fmt: skip
    """Copy `n` elements. `KIND` describes the steps. If `STREAMED`, rows are written without the cache."""
    WRITE = stream if STREAMED else store
    i = 0
    if STREAMED:
        before = minimum(elements_before_aligned(as_integer(target), W, T), n)
        while i < before:
            target[i] = source[i] if KIND == "rows" else source[0]
            i += 1
    if KIND == "rows":
        while i + 2 * W <= n:
            first = load(source + i, W)
            second = load(source + (i + W), W)
            WRITE(target + i, first)
            WRITE(target + (i + W), second)
            i += 2 * W
        while i < n:
            target[i] = source[i]
            i += 1
    elif KIND == "backwards":
        i = 0
        while i + W <= n:
            turned = load(source - (i + W - 1), W)
            store(target + i, shuffle(turned, turned, [W - 1 - LANE for LANE in unrolled(W)]))
            i += W
        while i < n:
            target[i] = source[0 - i]
            i += 1
    elif KIND == "repeated":
        value = broadcast(source[0], W)
        while i + W <= n:
            WRITE(target + i, value)
            i += W
        while i < n:
            target[i] = source[0]
            i += 1
    elif KIND == "collected":
        while i + 4 <= n:
            for K in unrolled(4):
                target[i + K] = source[(i + K) * source_step]
            i += 4
        while i < n:
            target[i] = source[i * source_step]
            i += 1
    else:
        for i in range(n):
            target[i * target_step] = source[i * source_step]


@loops(explicit=True, plain=True)
def copy_stretch(
    target: Pointer[T], source: Pointer[T], KIND: Static, W: Static, STREAMED: Static, start: Int, stop: Int
) -> None:  # fmt: skip
    """Copy elements of one row, or repeat one element."""
    copy_row(target + start, source + (start if KIND == "rows" else 0), stop - start, 1, 1, KIND, W, STREAMED)
    if STREAMED:
        end_streams()


@loops(plain=True)
def copy_rows(
    target: Pointer[T], source: Pointer[T], n: Int, t0: Int, s0: Int, n1: Int, t1: Int, s1: Int, n2: Int, t2: Int, s2: Int,
    n3: Int, t3: Int, s3: Int, t4: Int, s4: Int, KIND: Static, W: Static, STREAMED: Static, N: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Copy rows of `n` elements in four dimensions with any steps. `N` is the number of elements of narrow rows, or 0."""
    i1 = start % n1
    i2 = (start // n1) % n2
    i3 = (start // (n1 * n2)) % n3
    i4 = start // (n1 * n2 * n3)
    row = start
    while row < stop:
        into = target + (i2 * t2 + i3 * t3 + i4 * t4)
        out_of = source + (i2 * s2 + i3 * s3 + i4 * s4)
        last = minimum(n1, i1 + stop - row)
        row += last - i1
        for i in range(i1, last):
            if N:
                for K in unrolled(N):
                    into[i * t1 + K] = out_of[i * s1 + K * s0]
            else:
                copy_row(into + i * t1, out_of + i * s1, n, t0, s0, KIND, W, STREAMED)
        i1 = 0
        i2 += 1
        if i2 == n2:
            i2 = 0
            i3 += 1
            if i3 == n3:
                i3 = 0
                i4 += 1
    if STREAMED:
        end_streams()


@loops(plain=True)
def transpose_blocks(
    target: Pointer[T], source: Pointer[T], columns: Int, source_step: Int, rows: Int, target_step: Int, n2: Int, t2: Int,
    s2: Int, n3: Int, t3: Int, s3: Int, t4: Int, s4: Int, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Transpose matrices in tiles of `W`, the last of which overlap others and write the same elements again."""
    blocks = (rows + _BLOCK - 1) // _BLOCK
    for piece in range(start, stop):
        matrix = piece // blocks
        first = minimum((piece - matrix * blocks) * _BLOCK, rows - W)
        last = minimum(first + _BLOCK, rows)
        line = matrix // n2
        into = target + ((matrix % n2) * t2 + (line % n3) * t3 + (line // n3) * t4)
        out_of = source + ((matrix % n2) * s2 + (line % n3) * s3 + (line // n3) * s4)
        i = 0
        while i < columns:
            column = minimum(i, columns - W)
            j = first
            while j < last:
                row = minimum(j, last - W)
                from_ = out_of + (column * source_step + row)
                to = into + (row * target_step + column)
                found = transposed([load(from_ + ROW * source_step, W) for ROW in unrolled(W)], W)
                for ROW in unrolled(W):
                    store(to + ROW * target_step, found[ROW])
                j += W
            i += W


@loops(plain=True, T=BITS)
def fill_elements(out: Pointer[T], bits: Int, W: Static, start: Int, stop: Int) -> None:
    """Write elements with the same bits."""
    element = T(bits)
    whole = start + (stop - start) // W * W
    for i in range(start, whole, W):
        store(out + i, vector(T, W)(element))
    for i in range(whole, stop):
        out[i] = element


@recordable
def fill(array: ndarray, bits: int) -> Any:
    """Write elements with the same bits to a row-major array."""
    return fill_elements.run(array.size, array.itemsize, array, bits)


@recordable
def copy_into(target: ndarray, source: ndarray) -> Any:
    """Write the elements of `source`, broadcast, to `target`, which has the same dtype."""
    if target.shape != source.shape:
        source = numpy.broadcast_to(source, target.shape)
    every_size = LOOPS.every_size or SHAPES.recorder is not None
    plan = _plan(target.shape, target.strides, source.strides, target.dtype, HOST.vector_bytes, every_size)
    if plan is None or target.dtype != source.dtype:
        return NotImplemented
    function, pieces, piece_bytes, arguments = plan
    launch(function, pieces, piece_bytes, target, source, *arguments)
    return target


@functools.lru_cache(1024)
def _plan(
    shape: tuple[int, ...], target_strides: tuple[int, ...], source_strides: tuple[int, ...],
    dtype: numpy.dtype[Any], vector_bytes: int, every_size: bool,
) -> Any:  # fmt: skip
    """Return the loop, its pieces, the bytes of each piece, and its arguments."""
    word, itemsize = BITS(dtype), dtype.itemsize
    if word is None or 0 in shape or any(step % itemsize for step in (*target_strides, *source_strides)):
        return None
    steps = zip(shape, target_strides, source_strides, strict=True)
    axes = collapsed([(n, t // itemsize, s // itemsize) for n, t, s in steps if n > 1]) or [(1, 1, 1)]
    if len(axes) > 5 or any(t == 0 for n, t, _ in axes if n > 1):
        return None
    width = vector_bytes // itemsize
    (n, t0, s0), outer = axes[-1], axes[:-1]
    across = next((axis for axis in outer if axis[2] == 1), None)
    tile = 0 if across is None else min(width, 16, 1 << min(n, across[0]).bit_length() - 1)
    if t0 == 1 and s0 not in (0, 1) and across is not None and tile >= 4:
        outer = [axis for axis in outer if axis is not across]
        (n2, t2, s2), (n3, t3, s3), (n4, t4, s4) = [*outer[::-1], *[(1, 0, 0)] * 3][:3]
        function = transpose_blocks.compiled(T=word, W=tile)
        rows, target_step = across[0], across[1]
        pieces = n2 * n3 * n4 * -(-rows // _BLOCK)
        arguments = (n, s0, rows, target_step, n2, t2, s2, n3, t3, s3, t4, s4)
        return function, pieces, 4 * min(rows, _BLOCK) * n * itemsize, arguments
    kind = "strided"
    if t0 == 1:
        kind = {1: "rows", -1: "backwards", 0: "repeated"}.get(s0, "collected")
    if kind in ("rows", "repeated") and n > 7 and not every_size and math.prod(shape) * itemsize < PARALLEL_BYTES:
        return None  # compared with NumPy, which is slow for short rows, only threads would be gained
    streamed = kind in ("rows", "repeated") and is_streamed(math.prod(shape) * itemsize)
    if kind in ("rows", "repeated") and not outer:
        return copy_stretch.compiled(T=word, KIND=kind, W=width, STREAMED=streamed), n, 2 * itemsize, ()
    (n1, t1, s1), (n2, t2, s2), (n3, t3, s3), (n4, t4, s4) = [*outer[::-1], *[(1, 0, 0)] * 4][:4]
    narrow = n if t0 == 1 and n <= 8 else 0  # by separate instructions
    function = copy_rows.compiled(T=word, KIND=kind, W=width, STREAMED=streamed and not narrow, N=narrow)
    piece_bytes = (2 if kind in ("rows", "repeated") else 4) * n * itemsize
    return function, n1 * n2 * n3 * n4, piece_bytes, (n, t0, s0, n1, t1, s1, n2, t2, s2, n3, t3, s3, t4, s4)


def collapsed(axes: list[Axis]) -> list[Axis]:
    """Return the dimensions by their steps in the target, the largest first, with adjacent ones merged."""
    result: list[Axis] = []
    for n, t, s in sorted(axes, key=lambda axis: (-abs(axis[1]), -abs(axis[2]))):
        if result and result[-1][1] == n * t and result[-1][2] == n * s:
            result[-1] = (result[-1][0] * n, t, s)
        else:
            result.append((n, t, s))
    return result


def row_steps(shape: tuple[int, ...]) -> list[int]:
    """Return the steps of an array in row-major order, in elements."""
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


_CONVERSIONS: Plans[Plan | None] = Plans()


@recordable
def convert(array: ndarray, dtype: Any, out: ndarray | None = None) -> Any:
    """Return a copy of an array in another dtype, or write the array to `out`, which has the same shape."""
    if out is None:
        out = empty(array.shape, dtype) if array.flags.c_contiguous else empty_like(array, dtype)
    key = array.dtype, array.shape, array.strides, dtype, out.strides
    plan = _CONVERSIONS[key] if key in _CONVERSIONS else _CONVERSIONS.keep(key, _conversion(["array"], array, out))
    if plan is None:
        return NotImplemented
    if SHAPES.recorder is None:
        plan.into((out,), array)
        return out
    return SHAPES.recorder.run(plan, (array,), out)


def half(array: ndarray, dtype: Any) -> Any:
    """Return the plan of a contiguous copy in another dtype."""
    return _conversion(["array", "dtype"], array, numpy.empty(array.shape, dtype)) or NotImplemented


def _conversion(names: list[str], array: ndarray, out: ndarray) -> Plan | None:
    shape, (read, written) = walked([array], [out])
    modes, layout = layout_of(shape, [read], [written], True, False)
    function = _converting(array.dtype, out.dtype, modes)
    if function is None:
        return None
    call = NativeCall(function, out.size, array.itemsize + out.itemsize, layout, ["array"], [memory_like(out)])
    return call.plan(names)


@functools.cache
def _converting(source: numpy.dtype[Any], target: numpy.dtype[Any], modes: tuple[str, ...]) -> Any:
    first, second = u8 if source.kind == "b" else type_of(source), type_of(target)  # truth values are 0 and 1
    if first is None or second is None or target.kind == "b":
        return None
    if first.kind == "f" and second.kind != "f" and second not in (i32, i64):
        return None  # NumPy defines the results for numbers that are too large for the type
    number = Graph().node(INPUT, (), NUMBER, "array")
    read, written = Operand(first, False, modes[0]), Operand(second, False, modes[1])
    widest = max(first, second, key=lambda each: each.bits)
    plan = pointwise_loops.Plan(Expression((number,)), widest, [([number], read)], [written], [])
    return pointwise_kernel(f"convert_{source.name}_{target.name}", plan, "array")

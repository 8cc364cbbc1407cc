"""Read elements at indices: rows of a table, elements along one dimension, and elements at several indices together."""

from __future__ import annotations

from ....codegen.acceleration import SHAPES
from ....codegen.llvm.calls import not_row_major
from ....codegen.llvm.kernels import *
from ...runtime.layout import row_major
from ..memory.copying import copy_row


@loops(plain=True, T=BITS)
def take_rows(
    out: Pointer[T], table: Pointer[T], index: Pointer[I], count: Int, length: Int, width: Int, SINGLE: Static, W: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Take rows from (outer, length, width) to (outer, count, width). Negative indices count from the end."""
    outer = start // count
    i = start - outer * count
    row = start
    while row < stop:
        part = minimum(stop - row, count - i)
        source = table + outer * length * width
        if SINGLE:
            for k in vectorized(0, part):
                place = i64(index[i + k])
                out[row + k] = source[place if place >= 0 else place + length]
        else:
            for k in range(part):
                place = i64(index[i + k])
                place = place if place >= 0 else place + length
                copy_row(out + (row + k) * width, source + place * width, width, 1, 1, "rows", W)
        row += part
        i = 0
        outer += 1


@recordable
def take(x: ndarray, index: ndarray, dim: int) -> Any:
    """Return `x.take(index, dim)` for indices that are known to be in bounds."""
    if not x.size:
        return NotImplemented
    outer, width = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    out = empty(x.shape[:dim] + index.shape + x.shape[dim + 1 :], x.dtype)
    return take_rows.run(
        outer * index.size, 2 * width * x.itemsize + 8,
        out, x, index, index.size, x.shape[dim], width, SINGLE=width == 1,
    )  # fmt: skip


def taken_in_planes(x: ndarray, planes: int, area: int, places: ndarray, result: Memory) -> Any:
    """Return the call that takes the elements at `places` in each plane of `x`, which has `area` elements."""
    if BITS(x.dtype) is None or not x.size:
        return NotImplemented
    function = take_rows.compiled(
        T=BITS(x.dtype), I=type_of(places.dtype), SINGLE=True, W=HOST.vector_bytes // x.itemsize
    )
    layout = [places, places.size, area, 1]
    return NativeCall(
        function, planes * places.size, 2 * x.itemsize + 8, layout, ["self"], [result], copied=not_row_major(self=x)
    )


@loops
def outside(index: Pointer[I], n: Int, length: Int, W: Static) -> i64:
    """Return, as a number, whether one of `n` indices is negative or not less than `length`."""
    found = vector(I, W)(0)
    one = vector(I, W)(1)
    i = 0
    while i + W <= n:
        places = load(index + i, W)
        found = found | where((places < 0) | (places >= I(length)), one, 0)
        i += W
    result = i64(reduce_or(found))
    while i < n:
        result = result | (1 if (index[i] < 0) | (index[i] >= I(length)) else 0)
        i += 1
    return result


@loops(plain=True)
def find_outside(
    flag: Pointer[i64], index: Pointer[I], length: Int, first: Int, W: Static, start: Int, stop: Int
) -> None:
    """Write 1 to `flag` if an index is less than `first` or not less than `length`."""
    if first == 0:
        if outside(index + start, stop - start, length, W) != 0:
            flag[0] = 1
    else:
        for i in range(start, stop):
            if i64(index[i]) < first or i64(index[i]) >= length:
                flag[0] = 1


@recordable
def are_inside(flag: ndarray, index: ndarray, length: int, first: int) -> Any:
    """Test whether all indices are in bounds. Otherwise write 1 to `flag`."""
    return find_outside.run(
        index.size, index.itemsize, flag, row_major(index), length, first, W=HOST.vector_bytes // index.itemsize
    )


@loops(plain=True, T=BITS)
def gather_elements(
    out: Pointer[T], x: Pointer[T], index: Pointer[I], wrong: Pointer[i64], run: Int, group: Int, length: Int, step: Int,
    ALONG: Static, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Read one element per index, in runs of `run` along the indexed dimension (`ALONG`) or across it.

    A `group` of runs reads from the same `length * step` elements. At an index out of bounds, only `wrong` is written.
    """
    i = checked = start
    line = start // run
    column = start - line * run
    while i < stop:
        if i == checked:
            checked = minimum(stop, i + 1024)  # so that they are still in the first-level cache when they are used
            if outside(index + i, checked - i, length, W) != 0:
                wrong[0] = 1
                return
        part = minimum(checked - i, run - column)
        source = x + (line if ALONG else line // group) * (length * step)
        target, places = out + i, index + i
        k = i64(0)
        if ALONG:
            while k + 8 <= part:
                for J in unrolled(8):
                    target[k + J] = source[i64(places[k + J])]
                k += 8
        while k < part:
            place = i64(places[k])
            target[k] = source[place if ALONG else place * step + column + k]
            k += 1
        i += part
        column += part
        if column == run:
            column = 0
            line += 1


@recordable
def gathered(x: ndarray, dim: int, index: ndarray) -> Any:
    """Return elements of `x` along `dim`, or None if an index is out of bounds."""
    alike = (
        x.ndim == index.ndim > 0 and x.shape[:dim] == index.shape[:dim] and x.shape[dim + 1 :] == index.shape[dim + 1 :]
    )
    if not alike or x.shape[dim] >= 1 << 31:
        return NotImplemented
    inner = math.prod(x.shape[dim + 1 :])
    count = index.shape[dim]
    out, length = empty(index.shape, x.dtype), x.shape[dim]
    if SHAPES.recorder is not None and SHAPES.recorder.expect(True, "index.lookup.are_inside", index, length, 0):
        wrong = empty((1,), numpy.int64)
    else:
        wrong = new_flag()
    run, group = (count, 1) if inner == 1 else (inner, count)
    found = gather_elements.run(
        index.size, 2 * x.itemsize + index.itemsize,
        out, x, index, wrong, run, group, length, inner, ALONG=inner == 1, W=HOST.vector_bytes // index.itemsize,
    )  # fmt: skip
    return None if is_set(wrong) else found

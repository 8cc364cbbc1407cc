"""Unsigned integers whose order is the order of an array's elements, for sorting and selection.

A NaN is greater than every number, and the two zeros are equal. In descending order all bits are inverted, so equal
elements stay in order. The module also distributes rows, with separate memory, to threads.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...runtime import parallel


def key_type(element: Any) -> Any:
    """Return the type of the keys of these elements."""
    return u64 if element.bits == 64 else u32


@loops
def order_key(x: Any, DESCENDING: Static) -> Any:
    """Return the keys of a vector of elements."""
    if x.type.kind == "u":
        key = key_type(x.type.element)(x)
    else:
        if x.type.kind == "f":
            number = (f32(x) if x.type.element.storage_only else x) + 0.0  # one zero
            pattern = bits(number)
            # The bits are in order after the bits of negative numbers have been inverted.
            mirrored = pattern ^ (
                pattern >> (pattern.type.element.bits - 1) & ((1 << pattern.type.element.bits - 1) - 1)
            )
            signed = where(number == number, mirrored, (1 << pattern.type.element.bits - 1) - 1)
        else:
            signed = (i64 if x.type.element.bits == 64 else i32)(x)
        key = unsigned(signed) ^ (1 << signed.type.element.bits - 1)
    return ~key if DESCENDING else key


@loops
def store_keys(keys: Any, x: Pointer[T], n: Int, W: Static, DESCENDING: Static) -> None:
    """Store the keys of `n` elements, followed by the greatest key up to the end of a vector."""
    i = 0
    while i + W <= n:
        store(keys + i, order_key(load(x + i, W), DESCENDING))
        i += W
    if i < n:
        store(keys + i, vector(key_type(T), W)((1 << key_type(T).bits) - 1))
        while i < n:
            keys[i] = order_key(x[i], DESCENDING)
            i += 1


def width_of(kind: Any, vector_bytes: int) -> int:
    """Return how many keys of elements of this type fit in a vector."""
    return vector_bytes * 8 // int(key_type(kind).bits)


def element_type(x: ndarray) -> Any:
    """Return the type of the elements, or None if kernels cannot order them."""
    return type_of(x.dtype) if x.dtype.kind != "c" else None


_BYTE, _INT64 = numpy.dtype(numpy.uint8), numpy.dtype(numpy.int64)


def row_plan(
    function: Any, x: ndarray, shape: tuple[int, ...], row_cost: int, row_memory: int, *scalars: int,
    finish: Callable[..., None] | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a selection of elements of the rows of `x` on several threads.

    Its results are the elements and their positions, with the given `shape`.

    The compiled function is called with the addresses of the two results and of the array, the `scalars`, and `(memory,
    row_memory, rows, pieces, start, stop)`. Each piece of the rows has at least `row_memory` bytes of separate memory,
    which begins at a cache line. `row_cost` is the cost of a row in bytes, as in `launch`. `finish` changes the
    results.
    """
    rows, row_memory = x.size // x.shape[-1], -(-row_memory // 64) * 64

    def into(out: Sequence[ndarray], x: ndarray, *_: Any) -> None:
        values, order = out
        pieces = min(rows, 4 * parallel.num_threads)  # four for each thread
        memory = workspace("keys", pieces * row_memory, _BYTE)
        launch(
            function, pieces, row_cost * rows // pieces, values, order, x, *scalars, memory, row_memory, rows, pieces
        )
        if finish is not None:
            finish(values, order)

    into = into if finish is not None else recordable(into)
    return Plan([Memory(shape, x.dtype), Memory(shape, _INT64)], into=into)


@loops
def first_row(piece: Int, rows: Int, pieces: Int) -> Any:
    """Return the first row of a piece."""
    return minimum(rows, rows * piece // pieces)

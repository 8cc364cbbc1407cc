"""Products of matrices and of stacks of matrices on the threads of compiled kernels.

A product is split into parts, by rows and columns of the result. The thread that takes a part computes it in one of
three ways: with register tiles (`panels`); with BLAS if the processor has few registers or the result fills only a few
of its tiles; or with the processor's matrix units, if it has them (`pieces`). Each sum starts with the bias. The bias
is written to the result first, and BLAS adds the product to it.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from ....codegen.acceleration import LOOPS
from ....codegen.llvm.amx import TILES, has_pairs
from ....codegen.llvm.atomics import atomic_exchange, atomic_store, call_address
from ....codegen.llvm.compilation import CompiledFunction
from ....codegen.llvm.external import apart
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import VECTORS, tile_rows
from ....codegen.llvm.workers import PIECES, WORKERS, run_ranges, run_ranges_apart
from ....codegen.plans import Launch
from ...runtime.costs import FLOPS_PER_BYTE, ON_ONE_THREAD, SECOND_CACHE
from ...runtime.parallel import get_num_threads
from .blas import BLAS, enter_alone, gemm, leave_alone
from .panels import PANEL_ROWS, multiply_rectangle
from .pieces import PIECES_OF, SIDE, SPACE, STEP, multiply_by_pieces, pack

Array = numpy.ndarray[Any, Any]

_TYPES = {"f": f32, "d": f64, "e": f16, "E": bf16, "i": i32}
_RESULTS = {char: numpy.dtype("d" if char == "d" else "f") for char in _TYPES}
_Layout = tuple[tuple[int, ...], tuple[int, ...]]

_UNIT = 16
"""The sizes of parts are multiples of this number of rows and columns, which BLAS computes together."""

_BY_VECTORS, _BY_PIECES, _TAKEN_APART, _WRITTEN = 13, {1: 1, 2: 4, 3: 6}, 450, 250
"""Times in picoseconds: the product of two numbers with vectors, and with one, two or three pieces; the conversion of a
number to pieces; the additional time that tiles need to write a number."""

ROW_MAJOR, PLAIN, TURNED = 101, 111, 112
"""The names of CBLAS for matrices that are stored row by row, and for factors that are used unchanged or transposed."""

FRESH, OFFSET = range(2)
"""The initial value of a product, which is either none or a vector in each row."""

PRODUCT = Struct(
    "result a b vector result_step a_step b_step result_row a_row b_row a_form b_form rows depth columns tall wide across parts "
    "begins spaces refused"
)
"""The table of a product: the addresses of the arrays; the distances, in elements, between matrices of a stack and between rows;
the forms of the factors; the sizes; the rows and columns of a part, the number of parts side by side, and the number of parts of
a matrix; the initial value; memory for pieces; and whether values have been found that cannot be split safely. For each part of
the memory, a word follows that is 1 while a thread uses it."""

REFUSED = PRODUCT.places["refused"]


@loops(plain=True)
def fill_rows(rows: Pointer[T], distance: Int, vector: Pointer[T], tall: Int, wide: Int, W: Static) -> None:
    """Write the vector to each row."""
    whole = wide // W * W
    for i in range(tall):
        row = rows + i * distance
        for j in range(0, whole, W):
            store(row + j, load(vector + j, W))
        for j in range(whole, wide):
            row[j] = vector[j]


@loops(noalias=False)
def part_at(told: Any, index: Int, T: Static, S: Static) -> Any:
    """Return where a part begins in the result, the factors and the vector, and the numbers of its rows and columns."""
    matrix, number = index // told.parts, index % told.parts
    top, left = number // told.across * told.tall, number % told.across * told.wide
    down, right = told.a_row if told.a_form == PLAIN else 1, 1 if told.b_form == PLAIN else told.b_row
    result = as_pointer(told.result, S) + (matrix * told.result_step + top * told.result_row + left)
    a = as_pointer(told.a, T) + (matrix * told.a_step + top * down)
    b = as_pointer(told.b, T) + (matrix * told.b_step + left * right)
    tall, wide = minimum(told.tall, told.rows - top), minimum(told.wide, told.columns - left)
    return result, a, b, as_pointer(told.vector, S) + left, tall, wide


@loops(noalias=False, plain=True)
def multiply_parts(table: Pointer[i64], start: Int, stop: Int, T: Static, W: Static, GEMM: Static) -> None:
    """Compute some parts of the products of two stacks of matrices."""
    told = fields(table, PRODUCT)
    for index in range(start, stop):
        result, a, b, begin, tall, wide = part_at(told, index, T, T)
        if told.begins == OFFSET:
            fill_rows(result, told.result_row, begin, tall, wide, W)
        beta = T(0) if told.begins == FRESH else T(1)
        GEMM(
            i32(ROW_MAJOR), i32(told.a_form), i32(told.b_form), tall, wide, told.depth, T(1), a, told.a_row, b, told.b_row, beta,
            result, told.result_row,
        )  # fmt: skip


@loops(noalias=False, explicit=True, plain=True)
def multiply_tiles(table: Pointer[i64], start: Int, stop: Int, T: Static, S: Static, W: Static, R: Static) -> None:
    """Do the same as `multiply_parts`, without BLAS. Sums are of type S."""
    told = fields(table, PRODUCT)
    plain = told.a_form == PLAIN
    down, right = where(plain, told.a_row, 1), where(plain, 1, told.a_row)
    for index in range(start, stop):
        result, a, b, begin, tall, wide = part_at(told, index, T, S)
        multiply_rectangle(
            result, told.result_row, tall, wide, a, down, right, b, told.b_row, told.b_form == TURNED, told.depth, begin,
            told.begins == OFFSET, W, R,
        )  # fmt: skip


@loops(noalias=False, explicit=True, plain=True)
def multiply_pieces(table: Pointer[i64], start: Int, stop: Int, T: Static, P: Static, PACK: Static) -> None:
    """Do the same as `multiply_parts` with pieces of bfloat16 numbers, in memory that each thread takes."""
    told, in_use, own = fields(table, PRODUCT), table + PRODUCT.size, i64(0)
    while atomic_exchange(in_use + own, 1) != 0:
        own += 1
    for index in range(start, stop):
        result, a, b, begin, tall, wide = part_at(told, index, T, f32)
        multiply_by_pieces(
            result, told.result_row, tall, wide, a, told.a_row, told.a_form == PLAIN, b, told.b_row, told.b_form == TURNED,
            told.depth, begin, told.begins == OFFSET, table + REFUSED, told.spaces + own * SPACE, PACK, P,
        )  # fmt: skip
    atomic_store(in_use + own, 0)


@loops(plain=True)
def pair_rows(
    target: Pointer[i32], source: Pointer[u16], step: Int, row: Int, columns: Int, depth: Int, start: Int,
    stop: Int, W: Static,
) -> None:  # fmt: skip
    """Store pairs of rows of matrices in words. A missing last row counts as zeros."""
    words = (depth + 1) // 2
    for index in range(start, stop):
        first = 2 * (index % words)
        upper, place = source + (index // words * step + first * row), target + index * columns
        below = where(first + 1 < depth, columns, i64(0))
        for j in range(0, columns, W):
            there = first_lanes(columns - j, W)
            high = vector(i32, W)(load(upper + (row + j), W, first_lanes(below - j, W)))
            store(place + j, vector(i32, W)(load(upper + j, W, there)) | (high << 16), there)


def paired(factor: Array) -> Array:
    """Return a bfloat16 factor (as a view if possible) in words, each of which holds two adjacent numbers of a row."""
    *stack, lines, depth = factor.shape
    *steps, down, right = factor.strides
    words = -(-depth // 2)
    if right == 2 and depth % 2 == 0 and all(step % 4 == 0 for step in (*steps, down)):
        return factor.view(numpy.int32)
    if down == 2 and all(step % 2 == 0 for step in (*steps, right)):
        turned = numpy.empty((*stack, words, lines), numpy.int32)
        launch(
            pair_rows.compiled(W=HOST.vector_bytes // 4), words * math.prod(stack), 4 * lines, address(turned), address(factor),
            steps[0] // 2 if stack else 0, right // 2, lines, depth,
        )  # fmt: skip
        return turned.swapaxes(-1, -2)
    even = numpy.zeros((*factor.shape[:-1], 2 * words), numpy.uint16)
    even[..., :depth] = factor.view(numpy.uint16)
    return even.view(numpy.int32)


@loops(noalias=False, plain=True)
def multiply_alone(
    state: Pointer[i64], function: Int, table: Int, count: Int, threads: Int, shared: Pointer[i64]
) -> None:
    """Compute all parts while OpenBLAS's own threads are idle."""
    enter_alone(state)
    if threads > 1:
        run_ranges_apart(shared, function, table, i64(0), count, i64(1), threads)
    else:
        call_address(function, table, i64(0), count)
    leave_alone(state)


_IN_RUNS = Struct("table:16 code parts piece threads by_blas state shared")
"""What `run_product` reads: a part of a `PRODUCT`, and how its parts are computed."""


@loops(noalias=False, plain=True, brief=True)
def run_product(words: Pointer[i64], result: Int, a: Int, b: Int, vector: Int) -> None:
    """Compute a product in a native run, as `product` does. `words`: see `_IN_RUNS`."""
    told = fields(words, _IN_RUNS)
    table = local(i64, PRODUCT.size)
    table[0], table[1], table[2], table[3] = result, a, b, vector
    for k in rolled(_IN_RUNS.counts["table"]):
        table[4 + k] = words[k]
    place, shared = as_integer(table), as_pointer(told.shared, i64)
    if told.by_blas != 0:
        multiply_alone(as_pointer(told.state, i64), told.code, place, told.parts, told.threads, shared)
    elif told.threads > 1:
        run_ranges_apart(shared, told.code, place, i64(0), told.parts, told.piece, told.threads)
    else:
        call_address(told.code, place, i64(0), told.parts)


def in_run(a: _Layout, b: _Layout, char: str, offset: bool, as_numpy: bool) -> Any:
    """Return the launch of a product, plus a vector (`offset`) or `as_numpy` computes it, in a native run, if any."""

    def words(threads: int, shared: int) -> list[int]:
        plan = planned(threads, False)
        return _IN_RUNS.pack(
            table=[*plan.numbers, OFFSET if offset else FRESH], code=plan.function.code.address, parts=plan.parts,
            piece=plan.piece, threads=plan.threads, by_blas=plan.by_blas, state=BLAS.state, shared=shared,
        )  # fmt: skip

    def planned(threads: int, by_pieces: bool) -> Any:
        return _plan(a, b, char, threads, by_pieces, LOOPS.every_size, as_numpy)

    plan = planned(1, not as_numpy)  # one thread computes the largest parts, for which pieces are fastest
    if plan is None or plan.by_pieces or any(plan.copied):
        return NotImplemented
    flops = math.prod(plan.shape) * a[0][-1]
    code, work = run_product.compiled().code.address, flops // FLOPS_PER_BYTE
    return Launch("product", code, _IN_RUNS.size, work, flops >= ON_ONE_THREAD, words)


_SPARE: list[Array] = []
"""Scratch memory for pieces that no product uses. The most recently used memory is in the cache."""


class _Plan(NamedTuple):
    """The plan of the multiplication of matrices with given shapes and strides."""

    function: CompiledFunction
    """The function that computes parts."""
    copied: tuple[bool, bool]
    """Return whether BLAS cannot read a factor in its layout."""
    shape: tuple[int, ...]
    numbers: tuple[int, ...]
    """The part of a `PRODUCT` after the addresses and before the initial value."""
    parts: int
    """The total number of parts."""
    piece: int
    """The number of parts that a thread takes at once."""
    threads: int
    by_blas: bool
    by_pieces: bool


@functools.lru_cache(maxsize=4096)
def _plan(
    a: _Layout, b: _Layout, char: str, threads: int, by_pieces: bool, always: bool, as_numpy: bool = False
) -> _Plan | None:
    """Return the plan for factors of these shapes and strides, or None if there is none.

    `by_pieces`: whether to use pieces if that is faster, or `always`. `as_numpy`: whether to use BLAS.
    """
    (*stack, rows, depth), columns = a[0], b[0][-1]
    count = stack[0] if stack else 1
    if char not in _TYPES or len(a[0]) != len(b[0]) or min(count, rows, depth, columns) == 0:
        return None
    kind = _TYPES[char]
    BLAS.require()
    item = kind.bits // 8
    width, height = HOST.vector_bytes // item, tile_rows(HOST.vector_bytes)
    filled = rows * columns / (_rounded(rows, height) * _rounded(columns, VECTORS * width))
    if count * rows * depth * columns < ON_ONE_THREAD:
        threads = 1
    split = 1 if count >= 4 * threads else threads
    # Each part reads rows of one factor and columns of the other, so parts that are nearly square read the least.
    down, across = min(
        ((split // across, across) for across in range(1, split + 1) if split % across == 0),
        key=lambda split: rows * split[1] + columns * split[0],
    )
    by_pieces = by_pieces and kind in PIECES_OF and TILES.usable
    if kind.storage_only and not by_pieces:
        return None
    always = always or kind.storage_only
    by_pieces = by_pieces and (
        always or _is_faster_in_pieces(-(-rows // down), depth, -(-columns // across), PIECES_OF[kind])
    )
    few = HOST.vector_bytes == 32 and not always
    # BLAS wastes less than tiles that are filled in part.
    by_blas = (few or filled < 0.8 or as_numpy) and not by_pieces and kind is not i32
    unit_down, unit_across = _UNIT, _UNIT if by_blas else VECTORS * width
    if by_pieces:
        unit_down = unit_across = SIDE
    elif not by_blas:
        down *= -(-(-(-rows // down) * min(depth, PANEL_ROWS) * item) // SECOND_CACHE)
    tall, wide = _rounded(-(-rows // down), unit_down), _rounded(-(-columns // across), unit_across)
    across = -(-columns // wide)
    parts = -(-rows // tall) * across
    lies_a, lies_b = _matrix_layout(*a, item), _matrix_layout(*b, item)
    a_step, a_row, a_form = lies_a or (rows * depth, depth, PLAIN)
    b_step, b_row, b_form = lies_b or (depth * columns, columns, PLAIN)
    numbers = PRODUCT.pack(
        result=0, a=0, b=0, vector=0, result_step=rows * columns, a_step=a_step, b_step=b_step, result_row=columns, a_row=a_row,
        b_row=b_row, a_form=a_form, b_form=b_form, rows=rows, depth=depth, columns=columns, tall=tall, wide=wide, across=across,
        parts=parts, begins=0, spaces=0, refused=0,
    )[4:-3]  # fmt: skip
    if by_pieces:
        given = {"T": kind, "P": PIECES_OF[kind]}
        function = multiply_pieces.compiled(**given, PACK=apart(pack, **given))
    elif by_blas:
        function = multiply_parts.compiled(T=kind, W=width, GEMM=gemm(kind))
    else:
        function = multiply_tiles.compiled(T=kind, S=f32 if kind is i32 else kind, W=width, R=height)
    copied = lies_a is None, lies_b is None
    piece = max(1, count * parts // (PIECES * threads))
    return _Plan(
        function, copied, (*stack, rows, columns), tuple(numbers), count * parts, piece, threads, by_blas, by_pieces
    )


def _is_faster_in_pieces(rows: int, depth: int, columns: int, pieces: int) -> bool:
    """Return whether pieces compute a product of these sizes faster."""
    multiplied = _rounded(rows, SIDE) * _rounded(columns, SIDE) * _rounded(depth, STEP) * _BY_PIECES[pieces]
    around = (rows + columns) * depth * _TAKEN_APART + rows * columns * _WRITTEN
    return multiplied + around < rows * columns * depth * _BY_VECTORS


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _matrix_layout(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> tuple[int, int, int] | None:
    """Return the distances between matrices and between rows, and the form, or None if BLAS cannot read them."""
    rows, columns = shape[-2:]
    step, down, right = strides if len(strides) == 3 else (0, *strides)
    if step % item:
        return None
    if (right == item or columns == 1) and (down >= columns * item or rows == 1) and down % item == 0:
        return step // item, max(down // item, columns), PLAIN
    if (down == item or rows == 1) and (right >= rows * item or columns == 1) and right % item == 0:
        return step // item, max(right // item, rows), TURNED
    return None


def product(a: Array, b: Array, added: Array | None = None, by_pieces: bool = True) -> Any:
    """Return `a @ b` for matrices or stacks, plus the vector `added` in each row. Half types give float32."""
    kind = a.dtype
    if b.dtype is not kind or kind.char == "i":
        return NotImplemented
    if kind.char == "E" and has_pairs() and not TILES.usable:
        a, b = paired(a), paired(b.swapaxes(-1, -2)).swapaxes(-1, -2)
        kind = a.dtype
    plan = _plan((a.shape, a.strides), (b.shape, b.strides), kind.char, get_num_threads(), by_pieces, LOOPS.every_size)
    if plan is None:
        return NotImplemented
    vector, begins = 0, FRESH
    if added is not None:
        if added.dtype is not kind or added.strides != (kind.itemsize,):
            return NotImplemented
        vector, begins = address(added), OFFSET
    if plan.copied[0]:
        a = numpy.ascontiguousarray(a)
    if plan.copied[1]:
        b = numpy.ascontiguousarray(b)
    result = numpy.empty(plan.shape, _RESULTS[kind.char])
    places = address(result), address(a), address(b), vector
    rest: tuple[int, ...] = (begins, 0, 0)
    if plan.by_pieces:
        spaces = _SPARE.pop() if _SPARE else numpy.empty(0, numpy.uint8)
        if spaces.size < plan.threads * SPACE:
            spaces = numpy.empty(plan.threads * SPACE, numpy.uint8)
        rest = begins, address(spaces), 0, *[0] * plan.threads
    table = array("q", (*places, *plan.numbers, *rest))
    shared, place, code = WORKERS.ready(plan.threads), table.buffer_info()[0], plan.function.code.address
    if plan.by_blas:
        multiply_alone.compiled().call(BLAS.state, code, place, plan.parts, plan.threads, shared)
    elif plan.threads == 1:
        plan.function.call(place, 0, plan.parts)
    else:
        run_ranges.compiled().call(shared, code, place, 0, plan.parts, plan.piece, plan.threads)
    if plan.by_pieces:
        _SPARE.append(spaces)
        if table[REFUSED]:
            return product(a, b, added, False)
    return result

"""Products of matrices with tile registers (`codegen.llvm.amx`), which multiply bfloat16 numbers and add in float32.

A float32 number is exactly the sum of three bfloat16 numbers, because 24 bits are three times 8 bits. Six of the nine
products of such pieces suffice for a product that is as accurate as float32. The other three products are smaller than
the rounding error of the result. The processor multiplies bfloat16 16 times as fast as float32, so this is more than
twice as fast. A float16 number is the sum of two bfloat16 numbers. The method is due to G. Henry, P. T. P. Tang and A.
Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations", ARITH 2019.

Tiles treat numbers below 2**-126 as zero, and pieces of large numbers may overflow. The largest and the smallest
numbers are therefore checked. If they are close to either limit or are not finite, this method is not used, and float32
vectors compute the product. Products of bfloat16 numbers always use this method, because tiles compute them directly.
"""

from __future__ import annotations

from ....codegen.llvm.amx import configure_tiles, load_tile, multiply_tiles, release_tiles, store_tile
from ....codegen.llvm.atomics import atomic_load, atomic_store
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import transposed

TILE = 16
"""The number of rows of a tile, and of words in one of its rows."""

SIDE, STEP = 2 * TILE, 2 * TILE
"""The side of a square of the result, in tiles, and the number of products that an instruction sums per element."""

SQUARE = TILE * TILE
"""The number of words in a tile."""

PIECES_OF = {bf16: 1, f16: 2, f32: 3}
"""The number of bfloat16 pieces of a number, for each type."""

TERMS = {1: ((0, 0),), 2: ((1, 1), (1, 0), (0, 0), (0, 1)), 3: ((0, 2), (0, 0), (0, 1), (1, 1), (1, 0), (2, 0))}
"""The pairs of pieces that are multiplied, in an order in which the pieces of one factor stay in their tiles."""

DEEP = 512
"""The maximum number of products in one sum."""

KEPT_A, KEPT_B = 1 << 15, 3 << 16
"""The maximum number of elements of each factor whose pieces are kept. They fit in the second-level cache."""

SPACE = 6 * (KEPT_A + KEPT_B) + 64
"""The number of bytes that a thread needs for the pieces."""

SIZES = [1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[TILE] * 8, *[0] * 8]
"""The sizes for `configure_tiles`. All tiles are full."""

LARGEST, SMALLEST, SMALLEST_FACTOR = 370, 152, 24
"""Bounds of the sum of the exponents of two factors, and of the exponent of one factor. Each exponent is biased by 127.
Within these bounds, sums are finite and losses are negligible."""


@loops
def highest(x: Any) -> Any:
    """Return the bfloat16 number that is nearest to `x`."""
    return from_bits((bits(x) + 0x8000) & -0x10000, f32)


@loops
def store_pieces(target: Pointer[i32], x: Any, y: Any, P: Static) -> None:
    """Store the pieces of two vectors side by side in words. Each kind of piece has a separate tile."""
    for PIECE in unrolled(P):
        first, second = x, y
        if PIECE < P - 1:
            first, second = highest(x), highest(y)
        store(target + PIECE * (2 * SQUARE), vector(i32, TILE)(unsigned(bits(first)) >> 16) | bits(second))
        x, y = x - first, y - second


@loops
def size_bits(x: Any) -> Any:
    """Return the bits of numbers without their signs. The order of the bits is the order of the absolute values."""
    return unsigned(bits(x) & 0x7FFFFFFF)


@loops
def begin_range(range_: Pointer[u32]) -> None:
    """Return an empty range that `pack_tile` can extend."""
    store(range_, vector(u32, TILE)(0))
    store(range_ + TILE, vector(u32, TILE)(0xFFFFFFFF))


@loops
def pack_tile(
    target: Pointer[i32], range_: Pointer[u32], source: Pointer[T], row: Int, lines: Int, depth: Int, along: boolean,
    turned: boolean, P: Static,
) -> None:  # fmt: skip
    """Pack the pieces of up to 16 lines with `STEP` numbers each.

    If `along`, a line is in a row of the source. Otherwise it is in a column.

    If `turned`, a line becomes a column of the tile. Otherwise it becomes a row. The numbers of a pair are 16 apart in
    both factors. `range_` contains the bits of the largest absolute value so far, and the bits of the smallest absolute
    value, minus 1.
    """
    zeros = table(T, [0] * TILE)
    high, low = load(range_, TILE), load(range_ + TILE, TILE)
    first_mask = first_lanes(depth if along else lines, TILE)
    second_mask = first_lanes(depth - TILE if along else lines, TILE)
    first_rows, second_rows, gap = depth, depth - TILE, TILE * row
    if along:
        first_rows, second_rows, gap = lines, lines, i64(TILE)
    ahead = STEP if along else TILE
    for r in range(TILE):
        place = source + r * row
        prefetch(place + ahead)
        prefetch(place + (gap + ahead))
        x = vector(f32, TILE)(load(where(r < first_rows, place, zeros), TILE, first_mask))
        y = vector(f32, TILE)(load(where(r < second_rows, place + gap, zeros), TILE, second_mask))
        for NUMBER in unrolled(2):
            size = size_bits(x if NUMBER == 0 else y)
            high, low = maximum(high, size), minimum(low, size - 1)
        store_pieces(target + r * TILE, x, y, P)
    store(range_, high)
    store(range_ + TILE, low)
    if turned:
        for piece in rolled(P):
            square = target + piece * (2 * SQUARE)
            columns = transposed([load(square + ROW * TILE, TILE) for ROW in unrolled(TILE)], TILE)
            for ROW in unrolled(TILE):
                store(square + ROW * TILE, columns[ROW])


@loops(noalias=False, explicit=True, plain=True)
def pack(
    target: Pointer[i32], range_: Pointer[u32], source: Pointer[T], row: Int, lines: Int, depth: Int, along: boolean,
    turned: boolean, T: Static, P: Static,
) -> None:  # fmt: skip
    """Pack the pieces of lines of a factor in strips of `SIDE` lines, in steps of `STEP` numbers."""
    begin_range(range_)
    steps = (depth + (STEP - 1)) // STEP
    halves = (lines + (SIDE - 1)) // SIDE * 2
    for index in range(halves * steps):
        half, step = index % halves, index // halves
        if along:
            half, step = index // steps, index % steps
        k, line = step * STEP, half * TILE
        start = line * row + k if along else k * row + line
        place = (half // 2 * steps + step) * (2 * P * SQUARE) + half % 2 * SQUARE
        pack_tile(target + place, range_, source + start, row, maximum(lines - line, 0), depth - k, along, turned, P)


@loops
def multiply_strips(
    result: Pointer[f32], row: Int, a: Pointer[i32], b: Pointer[i32], steps: Int, begin: Pointer[f32],
    begin_row: Int, P: Static,
) -> None:  # fmt: skip
    """Compute a square of the result: add the product of strips of two factors to the content at `begin`."""
    for SUM in unrolled(4):
        load_tile(SUM, begin + (SUM // 2 * TILE * begin_row + SUM % 2 * TILE), 4 * begin_row)
    following = result + SIDE * row
    for k in range(steps):
        strips = a + k * (2 * P * SQUARE), b + k * (2 * P * SQUARE)
        if k < 4:
            for r in unrolled(8):
                for HALF in unrolled(2):
                    prefetch(following + ((8 * k + r) * row + HALF * TILE), written=True)
        for TERM in unrolled(len(TERMS[P])):
            for FACTOR in unrolled(2):
                if TERM == 0 or TERMS[P][TERM][FACTOR] != TERMS[P][TERM - 1][FACTOR]:
                    for HALF in unrolled(2):
                        place = strips[FACTOR] + (2 * TERMS[P][TERM][FACTOR] + HALF) * SQUARE
                        load_tile(4 + 2 * FACTOR + HALF, place, 4 * TILE)
            for SUM in unrolled(4):
                multiply_tiles(SUM, 4 + SUM // 2, 6 + SUM % 2)
    for SUM in unrolled(4):
        store_tile(SUM, result + (SUM // 2 * TILE * row + SUM % 2 * TILE), 4 * row)


@loops
def multiply_rows_of_pieces(sums: Pointer[f32], a: Pointer[i32], b: Pointer[i32], steps: Int) -> None:
    """Add the products of a strip of 16 rows and two strips of columns to 16 rows of 64 sums."""
    for SUM in unrolled(4):
        load_tile(SUM, sums + SUM * TILE, 16 * TILE)
    for k in range(steps):
        for PIECE in unrolled(3):
            load_tile(4 + PIECE, a + (k * (6 * SQUARE) + 2 * PIECE * SQUARE), 4 * TILE)
        for PIECE in unrolled(3):
            for SUM in unrolled(4):
                place = (SUM // 2 * steps + k) * (6 * SQUARE) + (2 * PIECE + SUM % 2) * SQUARE
                load_tile(7, b + place, 4 * TILE)
                for OTHER in unrolled(3 - PIECE):
                    multiply_tiles(SUM, 4 + OTHER, 7)
    for SUM in unrolled(4):
        store_tile(SUM, sums + SUM * TILE, 16 * TILE)


@loops
def copy_square(target: Pointer[f32], row: Int, source: Pointer[f32], source_row: Int, rows: Int, columns: Int) -> None:
    """Copy an incomplete square."""
    for HALF in unrolled(2):
        mask = first_lanes(columns - HALF * TILE, TILE)
        for r in range(rows):
            store(target + (r * row + HALF * TILE), load(source + (r * source_row + HALF * TILE), TILE, mask), mask)


@loops
def are_far_from_ends(a: Pointer[u32], b: Pointer[u32]) -> Any:
    """Return whether products of numbers in these ranges, and of their pieces, are finite and not too small."""
    high = (reduce_max(load(a, TILE)) >> 23) + (reduce_max(load(b, TILE)) >> 23)
    low_a, low_b = reduce_min(load(a + TILE, TILE)) >> 23, reduce_min(load(b + TILE, TILE)) >> 23
    return high <= LARGEST and low_a + low_b >= SMALLEST and minimum(low_a, low_b) >= SMALLEST_FACTOR


@loops
def has_subnormal(numbers: Pointer[f32], count: Int) -> Any:
    """Return whether one of the numbers is less than 2**-126 and is not 0."""
    low = vector(u32, TILE)(0xFFFFFFFF)
    for j in range(0, count, TILE):
        there = load(numbers + j, TILE, first_lanes(count - j, TILE))
        low = minimum(low, size_bits(there) - 1)
    return reduce_min(low) < 0x7FFFFF


@loops
def multiply_blocks(
    result: Pointer[f32], row: Int, rows: Int, columns: Int, a: Pointer[i32], b: Pointer[i32], steps: Int, begin: Pointer[f32],
    begin_row: Int, begin_step: Int, P: Static,
) -> None:  # fmt: skip
    """Compute a part of the result and add it to the content at `begin`."""
    square = local(f32, SIDE * SIDE)
    for j in range(0, columns, SIDE):
        for i in range(0, rows, SIDE):
            tall, wide = minimum(rows - i, SIDE), minimum(columns - j, SIDE)
            part = tall + wide < 2 * SIDE
            target, source = result + (i * row + j), begin + (i * begin_row + j * begin_step)
            place, place_row, source_row = target, row, begin_row
            if part:
                copy_square(square, SIDE, source, begin_row, tall, wide)
                place, place_row, source, source_row = square, i64(SIDE), square, i64(SIDE)
            strip_a, strip_b = a + i * steps * (P * TILE), b + j * steps * (P * TILE)
            multiply_strips(place, place_row, strip_a, strip_b, steps, source, source_row, P)
            if part:
                copy_square(target, row, square, SIDE, tall, wide)


@loops
def multiply_by_pieces(
    result: Pointer[f32], result_row: Int, rows: Int, columns: Int, a: Pointer[T], a_row: Int, a_along: boolean,
    b: Pointer[T], b_row: Int, b_along: boolean, depth: Int, offset: Pointer[f32], has_offset: boolean, refused: Pointer[i64],
    space: Int, PACK: Static, P: Static,
) -> None:  # fmt: skip
    """Compute `a @ b` plus the vector `offset` in each row. `along`: whether the numbers of a sum are adjacent."""
    pieces_a = as_pointer((space + 63) & -64, i32)
    pieces_b = pieces_a + KEPT_A * 3 // 2
    range_a, range_b = local(u32, 2 * TILE), local(u32, 2 * TILE)
    begin, begin_row, begin_step = table(f32, [0] * SIDE), i64(0), i64(0)
    if has_offset:
        begin, begin_step = offset, i64(1)
        if has_subnormal(offset, columns):
            atomic_store(refused, 1)
    configure_tiles(table(u8, SIZES))
    slices = (depth + (DEEP - 1)) // DEEP
    thick = ((depth + (slices - 1)) // slices + (STEP - 1)) // STEP * STEP
    most_rows, most_columns = KEPT_A // thick // SIDE * SIDE, KEPT_B // thick // SIDE * SIDE
    for slice_ in range(slices):
        top = slice_ * thick
        deep = minimum(depth - top, thick)
        steps = (deep + (STEP - 1)) // STEP
        for right in range((columns + (most_columns - 1)) // most_columns):
            left = right * most_columns
            wide = minimum(columns - left, most_columns)
            start_b = b + (left * b_row + top if b_along else top * b_row + left)
            PACK(pieces_b, range_b, start_b, b_row, wide, deep, b_along, b_along)
            for down in range((rows + (most_rows - 1)) // most_rows):
                first = down * most_rows
                tall = minimum(rows - first, most_rows)
                start_a = a + (first * a_row + top if a_along else top * a_row + first)
                PACK(pieces_a, range_a, start_a, a_row, tall, deep, a_along, not a_along)
                if P > 1 and not are_far_from_ends(range_a, range_b):
                    atomic_store(refused, 1)
                if atomic_load(refused) == 0:
                    multiply_blocks(
                        result + (first * result_row + left), result_row, tall, wide, pieces_a, pieces_b, steps,
                        begin + (first * begin_row + left * begin_step), begin_row, begin_step, P,
                    )  # fmt: skip
        begin, begin_row, begin_step = result, result_row, i64(1)
    release_tiles()

"""Sort rows: short rows by the rank of each element, longer rows by the digits of their keys. Both methods are stable."""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...runtime.costs import STEPS
from .order_keys import element_type, first_row, key_type, order_key, row_plan, store_keys, width_of

_BINS = 256
"""The number of values of a digit."""


@loops
def store_ranks(ranks: Any, keys: Any, n: Int, W: Static) -> None:
    """Store, for each key, the number of keys before it, which are all smaller keys and the equal keys at earlier positions."""
    KEY = keys.type.target
    for i in range(0, n, W):
        mine = load(keys + i, W)
        rank = vector(KEY, W)(0)
        one = vector(KEY, W)(1)
        for j in range(i):
            rank += where(broadcast(keys[j], W) <= mine, one, 0)
        end = minimum(i + W, n)
        position = lanes(KEY, W)
        for j in range(i, end):
            other = broadcast(keys[j], W)
            before = broadcast(KEY(j - i), W) < position
            rank += where((other < mine) | ((other == mine) & before), one, 0)
        for j in range(end, n):
            rank += where(broadcast(keys[j], W) < mine, one, 0)
        store(ranks + i, rank)


@loops(plain=True)
def rank_rows(
    values: Pointer[T], order: Pointer[i64], x: Pointer[T], n: Int, k: Int, DESCENDING: Static, W: Static,
    memory: Pointer[u8], room: Int, rows: Int, pieces: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Store the first `k` elements of short rows in sorted order, and the position of each element."""
    for piece in range(start, stop):
        keys = cast_pointer(memory + piece * room, key_type(T))
        ranks = keys + (n + W - 1) // W * W
        places = cast_pointer(ranks + (n + W - 1) // W * W, u32)
        for row in range(first_row(piece, rows, pieces), first_row(piece + 1, rows, pieces)):
            line = x + row * n
            store_keys(keys, line, n, W, DESCENDING)
            store_ranks(ranks, keys, n, W)
            for i in range(n):
                places[i64(ranks[i])] = u32(i)
            for i in range(k):
                place = i64(places[i])
                order[row * k + i] = place
                values[row * k + i] = line[place]


@loops
def sort_digit(
    keys: Any, places: Pointer[u32], to_keys: Any, to_places: Pointer[u32], counts: Pointer[u32], n: Int, shift: Int, W: Static,
) -> None:  # fmt: skip
    """Sort keys and their positions by one digit. Equal keys keep their order."""
    KEY = keys.type.target
    for digit in range(0, _BINS, W):
        store(counts + digit, vector(u32, W)(0))
    for i in range(n):
        digit = i64(keys[i] >> KEY(shift)) & (_BINS - 1)
        counts[digit] += 1
    total = u32(0)
    for digit in range(_BINS):
        count = counts[digit]
        counts[digit] = total
        total += count
    for i in range(n):
        key = keys[i]
        digit = i64(key >> KEY(shift)) & (_BINS - 1)
        place = i64(counts[digit])
        counts[digit] += 1
        to_keys[place] = key
        to_places[place] = places[i]


@loops(plain=True)
def radix_rows(
    values: Pointer[T], order: Pointer[i64], x: Pointer[T], n: Int, DESCENDING: Static, W: Static,
    memory: Pointer[u8], room: Int, rows: Int, pieces: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Sort rows by each digit that differs between keys, least significant first. Record the former position of each element."""
    KEY = key_type(T)
    padded = (n + W - 1) // W * W
    for piece in range(start, stop):
        counts = cast_pointer(memory + piece * room, u32)
        first_keys = cast_pointer(counts + _BINS, KEY)
        second_keys = first_keys + padded
        first_places = cast_pointer(second_keys + padded, u32)
        second_places = first_places + padded
        for row in range(first_row(piece, rows, pieces), first_row(piece + 1, rows, pieces)):
            line = x + row * n
            keys = first_keys
            places = first_places
            to_keys = second_keys
            to_places = second_places
            low = order_key(line[0], DESCENDING)
            high = low
            sorted_already = KEY(1)
            before = low
            for i in range(n):
                key = order_key(line[i], DESCENDING)
                low = minimum(low, key)
                high = maximum(high, key)
                sorted_already = KEY(0) if key < before else sorted_already
                before = key
                keys[i] = key
                places[i] = u32(i)
            for i in range(0, n, W):
                store(keys + i, load(keys + i, W) - low)
            shift = 0
            difference = KEY(0) if sorted_already == KEY(1) else high - low
            while difference != KEY(0):
                sort_digit(keys, places, to_keys, to_places, counts, n, shift, W)
                keys, to_keys = to_keys, keys
                places, to_places = to_places, places
                shift += 8
                difference = difference >> 8
            for i in range(n):
                place = i64(places[i])
                order[row * n + i] = place
                values[row * n + i] = line[place]


def sort(x: ndarray, descending: bool) -> Any:
    """Return the plan that sorts arrays like `x` along their last dimension, with the position of each element."""
    kind, n = element_type(x), x.shape[-1]
    if kind is None or not x.size or n >= 1 << 31:
        return NotImplemented
    if n <= STEPS:  # each element is compared with all others
        return ranked(x, n, descending)
    width = width_of(kind, HOST.vector_bytes)
    key_bytes = key_type(kind).bits // 8
    memory = 4 * _BINS + 2 * -(-n // width) * width * (key_bytes + 4)
    return row_plan(_sorting(kind, descending, False, width), x, x.shape, n * 8 * key_bytes, memory, n)


def ranked(x: ndarray, k: int, descending: bool) -> Any:
    """Return the plan that finds the first `k` elements of short rows in sorted order, and their positions."""
    kind, n = element_type(x), x.shape[-1]
    width = width_of(kind, HOST.vector_bytes)
    padded = -(-n // width) * width
    memory = padded * (2 * key_type(kind).bits // 8 + 4)
    function = _sorting(kind, descending, True, width)
    return row_plan(function, x, (*x.shape[:-1], k), 2 * n * padded // width, memory, n, k)


@functools.lru_cache(64)
def _sorting(kind: Any, descending: bool, ranked: bool, width: int) -> Any:
    kernel = rank_rows if ranked else radix_rows
    return kernel.compiled(T=kind, DESCENDING=descending, W=width)


@loops
def runs_of_rows(
    found: Pointer[T], ends: Pointer[i64], values: Pointer[T], order: Pointer[i64], n: Int, start: Int, stop: Int
) -> None:  # fmt: skip
    """Find the longest runs of equal elements in rows of `n`."""
    for row in range(start, stop):
        line = values + row * n
        run = i64(0)
        most = i64(0)
        end = i64(0)
        for i in range(1, n):
            run = run + 1 if line[i] == line[i - 1] else 0
            if run > most:
                most = run
                end = i
        found[row] = line[end]
        ends[row] = order[row * n + end]


def longest_runs(values: ndarray, order: ndarray) -> Any:
    """Plan `kernels.reduce.sorting._longest_runs`."""
    kind, (count, n) = NUMBERS(values.dtype), values.shape
    if kind is None:
        return NotImplemented
    function, row_bytes = runs_of_rows.compiled(T=kind), 2 * values.itemsize * n

    def into(out: Sequence[ndarray], values: ndarray, order: ndarray) -> None:
        launch(function, count, row_bytes, *out, values, order, n)

    return Plan((Memory((count, 1), values.dtype), Memory((count, 1), order.dtype)), into=into)

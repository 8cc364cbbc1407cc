"""Select the first elements of rows in sorted order, or the element at one position, without sorting the other elements.

The key at a position is found by bisection of the range of keys: one vectorized pass counts the keys below the middle.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from ...runtime.costs import NARROW
from .order_keys import element_type, first_row, key_type, order_key, row_plan, store_keys, width_of
from .sorting import ranked, sort, store_ranks


@loops
def key_at(keys: Any, n: Int, place: Int, W: Static) -> Any:
    """Return the key at this position in the sorted order of `n` keys, after which the greatest key fills a vector."""
    KEY = keys.type.target
    lows = load(keys, W)
    highs = vector(KEY, W)(0)
    for i in range(0, n, W):
        found = load(keys + i, W)
        lows = minimum(lows, found)
        highs = maximum(highs, where(lanes(i64, W) < broadcast(n - i, W), found, 0))
    low = reduce_min(lows)
    high = reduce_max(highs)
    while low < high:
        middle = low + (high - low >> KEY(1))
        limit = broadcast(middle, W)
        counts = vector(KEY, W)(0)
        for i in range(0, n, W):
            counts += where(load(keys + i, W) <= limit, vector(KEY, W)(1), 0)
        count = i64(reduce_add(counts))
        if count == place + 1:  # the key is the greatest of these
            highs = vector(KEY, W)(0)
            for i in range(0, n, W):
                found = load(keys + i, W)
                highs = maximum(highs, where(found <= limit, found, 0))
            low = reduce_max(highs)
            high = low
        elif count > place:
            high = middle
        else:
            low = middle + KEY(1)
    return low


@loops
def keep_first(keys: Any, places: Pointer[u32], n: Int, k: Int, W: Static) -> Any:
    """Move the first `k` of `n` keys in sorted order, with their positions, to the front, and return the last of them."""
    last = key_at(keys, n, k - 1, W)
    less = i64(0)
    for i in range(n):
        less += 1 if keys[i] < last else 0
    equal = k - less
    kept = i64(0)
    for i in range(n):
        key = keys[i]
        place = places[i]
        keys[kept] = key
        places[kept] = place
        same = (key == last) & (equal > 0)
        equal -= 1 if same else 0
        kept += 1 if (key < last) | same else 0
    return last


@loops
def fill_end(keys: Any, n: Int, W: Static) -> None:
    """Write the greatest key from `n` to the end of a vector."""
    for i in range(n, (n + W - 1) // W * W):
        keys[i] = (1 << keys.type.target.bits) - 1


@loops(plain=True)
def first_rows(
    values: Pointer[T], order: Pointer[i64], x: Pointer[T], n: Int, k: Int, room_for: Int, DESCENDING: Static, RANKED: Static,
    W: Static, memory: Pointer[u8], room: Int, rows: Int, pieces: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Find the first `k` elements of each row and their positions, sorted if `RANKED`, else in the order of the row.

    When there are `room_for` candidates, only the first `k` are kept.
    """
    KEY = key_type(T)
    for piece in range(start, stop):
        keys = cast_pointer(memory + piece * room, KEY)
        ranks = keys + room_for
        places = cast_pointer(ranks + room_for, u32)
        for row in range(first_row(piece, rows, pieces), first_row(piece + 1, rows, pieces)):
            line = x + row * n
            count = minimum(n, room_for - W)
            store_keys(keys, line, count, W, DESCENDING)
            for i in range(count):
                places[i] = u32(i)
            i = count
            while count > k or i < n:
                fill_end(keys, count, W)
                last = keep_first(keys, places, count, k, W)
                count = k + 0
                while i < n and count + W <= room_for:
                    at = minimum(i, n - W)
                    found = mask_bits(order_key(load(line + at, W), DESCENDING) < broadcast(last, W)) >> (i - at)
                    while found != 0:
                        place = i + trailing_zeros(found)
                        keys[count] = order_key(line[place], DESCENDING)
                        places[count] = u32(place)
                        count += 1
                        found = found & (found - 1)
                    i = at + W
            if RANKED:
                fill_end(keys, k, W)
                store_ranks(ranks, keys, k, W)
            for j in range(k):
                target = row * k + (i64(ranks[j]) if RANKED else j)
                order[target] = i64(places[j])
                values[target] = line[i64(places[j])]


@loops(plain=True)
def places_in_order(
    values: Pointer[T], order: Pointer[i64], x: Pointer[T], n: Int, k: Int, NUMBERS: Static, W: Static,
    memory: Pointer[u8], room: Int, rows: Int, pieces: Int, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Find the element at position `k` in the sorted order of each row, and its position in the row.

    Equal elements have separate positions.

    `NUMBERS`: "count" treats NaN as the greatest number. "any" returns the first NaN if there is one, and "only"
    ignores NaN; both return the middle element (the lower of two) instead of the element at `k`.
    """
    KEY = key_type(T)
    for piece in range(start, stop):
        keys = cast_pointer(memory + piece * room, KEY)
        for row in range(first_row(piece, rows, pieces), first_row(piece + 1, rows, pieces)):
            store_keys(keys, x + row * n, n, W, False)
            place = k + 0
            if NUMBERS != "count":
                numbers = i64(0)
                for i in range(n):
                    numbers += 1 if keys[i] < (1 << KEY.bits) - 1 else 0
                if NUMBERS == "only":
                    place = maximum(numbers - 1, 0) >> 1
                else:
                    place = numbers if numbers < n else (n - 1) >> 1
            i = i64(0)
            if n <= NARROW:
                ranks = keys + (n + W - 1) // W * W
                store_ranks(ranks, keys, n, W)
                while i64(ranks[i]) != place:
                    i += 1
            else:
                wanted = key_at(keys, n, place, W)
                before = place + 0
                for j in range(n):
                    before -= 1 if keys[j] < wanted else 0
                while before > 0 or keys[i] != wanted:
                    before -= 1 if keys[i] == wanted else 0
                    i += 1
            order[row] = i
            values[row] = x[row * n + i]


def first(x: ndarray, k: int, descending: bool) -> Any:
    """Return the plan for the first `k` elements of the sorted order along the last dimension, and their positions."""
    kind, n = element_type(x), x.shape[-1]
    if kind is None or not x.size or n >= 1 << 31 or not 0 < k <= n:
        return NotImplemented
    if n <= NARROW:
        return ranked(x, k, descending)
    shape = (*x.shape[:-1], k)
    width = width_of(kind, HOST.vector_bytes)
    room_for = -(-min(n, max(4 * k, NARROW)) // width) * width + 2 * width
    key_bytes = key_type(kind).bits // 8
    within: Any = None if k <= NARROW else sort(numpy.empty(shape, x.dtype), descending)  # few elements are ranked

    def put_in_order(values: ndarray, order: ndarray) -> None:
        values[...], places = within.run(values)
        order[...] = numpy.take_along_axis(order, places, -1)

    return row_plan(
        first_rows.compiled(T=kind, DESCENDING=descending, RANKED=within is None, W=width), x, shape,
        2 * n * key_bytes + 16 * room_for * key_bytes, (2 * key_bytes + 4) * room_for, n, k, room_for,
        finish=None if within is None else put_in_order,
    )  # fmt: skip


def place_in_order(x: ndarray, k: int, numbers: str = "count") -> Any:
    """Return the plan for element `k` of the sorted order along the last dimension, kept with length 1, and its index."""
    kind, n = element_type(x), x.shape[-1]
    if kind is None or not x.size:
        return NotImplemented
    width = width_of(kind, HOST.vector_bytes)
    key_bytes = key_type(kind).bits // 8
    memory = (2 if n <= NARROW else 1) * -(-n // width) * width * key_bytes
    function = places_in_order.compiled(T=kind, NUMBERS=numbers, W=width)
    return row_plan(function, x, (*x.shape[:-1], 1), 20 * n * key_bytes, memory, n, k)

"""Attention in blocks, with an online softmax: the loops over blocks of queries and of keys.

A vector holds one number for each of several queries, so the maximum and the sum over keys need no exchange within a
vector. Scores, weights and their gradients exist for one block of queries and one block of keys at a time, transposed:
keys by queries.

Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness", 2022.
"""

from __future__ import annotations

from ....codegen.llvm.elementary_exponential import exp_to_normal
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import VECTORS, transposed

KEYS = 64
"""The number of keys in a block."""

FEATURES = 256
"""The maximum number of features of a query, a key or a value."""

NO_MASK, MASK_OF_KEYS, MASK_OF_QUERIES = range(3)
"""The term that is added to scores: none, a number for each key, or a number for each key and query."""

SIZES = Struct(
    "heads group queries keys width value_width causal splits q:3 k:3 v:3 out:3 grad:3 grad_q:3 grad_k:3 grad_v:3 mask:4 keep:3 "
    "parts:2 two items shares"
)
"""The sizes of a call; whether it is causal; the number of parts of each head of keys in the backward pass; the steps between
batches, heads and rows of each array (for the mask between batches, heads, keys and queries); the steps between the parts of
keys' and of values' gradients; the number 2; and the number of parts of all heads of keys, and of shares of them. LLVM does not
know that `two` is 2, so the body of a loop with two iterations is compiled only once."""


@loops
def offset_of(steps: list[Any], batch: Int, head: Int, row: Int) -> Int:
    """Return the offset of a row of an array."""
    return batch * steps[0] + head * steps[1] + row * steps[2]


@loops
def pack_columns(target: Pointer[T], source: Pointer[T], row: Int, rows: Int, width: Int, factor: T, W: Static) -> None:
    """Write the transpose of some rows, times a factor, into rows of `VECTORS` vectors. Missing rows repeat the last row."""
    SIDE = minimum(W, 8)  # the side of transposed squares; larger ones take long to compile
    for column in range(0, VECTORS * W, SIDE):
        starts = [source + minimum(column + ROW, rows - 1) * row for ROW in unrolled(SIDE)]
        for start in range(0, width, SIDE):
            mask = first_lanes(width - start, SIDE)
            columns = transposed([load(starts[ROW] + start, SIDE, mask) for ROW in unrolled(SIDE)], SIDE)
            place = target + (start * (VECTORS * W) + column)
            for ROW in unrolled(SIDE):
                store(place + ROW * (VECTORS * W), columns[ROW] * factor)


@loops
def pack_rows(target: Pointer[T], source: Pointer[T], row: Int, rows: Int, width: Int, factor: T, W: Static) -> None:
    """Copy rows, times a factor, into rows of whole tiles."""
    padded = padded_width(width, W)
    for i in range(VECTORS * W):
        start_of = source + minimum(i, rows - 1) * row
        for start in range(0, padded, W):
            mask = first_lanes(width - start, W)
            store(target + (i * padded + start), load(start_of + start, W, mask) * factor)


@loops
def copy_rows(target: Pointer[T], row: Int, source: Pointer[T], rows: Int, width: Int, W: Static) -> None:
    """Copy rows of whole tiles to their destinations."""
    padded = padded_width(width, W)
    for i in range(rows):
        for start in range(0, width, W):
            value = load(source + (i * padded + start), W)
            store(target + (i * row + start), value, first_lanes(width - start, W))


@loops
def scale_rows(rows: Pointer[T], padded: Int, factors: Pointer[T], W: Static) -> None:
    """Multiply each row of a block of queries by its factor."""
    for i in range(VECTORS * W):
        for start in range(0, padded, W):
            store(rows + (i * padded + start), load(rows + (i * padded + start), W) * factors[i])


@loops
def clear(target: Pointer[T], count: Int, W: Static) -> None:
    """Write zeros."""
    for i in range(0, count, W):
        store(target + i, vector(T, W)(0))


@loops
def padded_width(width: Int, W: Static) -> Int:
    """Return a number of features, rounded up to whole rows of tiles."""
    return (width + (VECTORS * W - 1)) // (VECTORS * W) * (VECTORS * W)


@loops
def add_product(
    target: Pointer[T], target_row: Int, rows: Int, width: Int, a: Pointer[T], a_row: Int, a_column: Int, last: Int,
    b: Pointer[T], b_row: Int, depth: Int, fresh: boolean, W: Static, R: Static, WHOLE: Static,
) -> None:  # fmt: skip
    """Add a product of matrices to the rows of `target`, which has space for whole tiles of `R` rows and `VECTORS` vectors.

    `fresh`: whether these rows count as zeros.

    Element (r, d) of `a` is at `r * a_row + d * a_column`. Rows after the last repeat the last row. Row d of `b` begins
    at `d * b_row` and has `width` elements. `WHOLE`: whether these are whole tiles.
    """
    for i in range(0, rows, R):
        starts = [a + minimum(i + ROW, last) * a_row for ROW in unrolled(R)]
        for j in range(0, width, VECTORS * W):
            masks = [first_lanes(width - (j + COLUMN * W), W) for COLUMN in unrolled(VECTORS)]
            sums = local(vector(T, W), R * VECTORS)
            places = [target + ((i + ROW) * target_row + j) for ROW in unrolled(R)]
            for ROW in unrolled(R):
                for COLUMN in unrolled(VECTORS):
                    before = load(places[ROW] + COLUMN * W, W)
                    sums[ROW * VECTORS + COLUMN] = where(fresh, vector(T, W)(0), before)
            line, at = b + j, 0
            for _d in range(depth):
                if WHOLE:
                    vectors = [load(line + COLUMN * W, W) for COLUMN in unrolled(VECTORS)]
                else:
                    vectors = [load(line + COLUMN * W, W, masks[COLUMN]) for COLUMN in unrolled(VECTORS)]
                for ROW in unrolled(R):
                    factor = broadcast(starts[ROW][at], W)
                    for COLUMN in unrolled(VECTORS):
                        sums[ROW * VECTORS + COLUMN] = fma(factor, vectors[COLUMN], sums[ROW * VECTORS + COLUMN])
                line = line + b_row
                at += a_column
            for ROW in unrolled(R):
                for COLUMN in unrolled(VECTORS):
                    store(places[ROW] + COLUMN * W, sums[ROW * VECTORS + COLUMN])


@loops
def kept(keep: Pointer[u16], key: Int, keep_key: Int, place: Int, W: Static) -> Any:
    """Return one bit for each query: whether dropout keeps the weight of a key."""
    word = u32(keep[key * keep_key + place // 16]) >> u32(place % 16)
    return ((broadcast(word, W) >> lanes(u32, W)) & 1) != 0


@loops
def last_keys(first: Int, rows: Int, told: Any, W: Static) -> Any:
    """Return, for each query of a vector, the last key that it may attend to, or -1 for missing queries."""
    last = broadcast(i32(told.keys - 1), W)
    own = lanes(i32, W) + broadcast(i32(first), W)
    there = where(told.causal != 0, minimum(own, last), last)
    return where(first_lanes(rows, W), there, i32(-1))


@loops
def masked(score: T, key: Int, last: I, mask: Pointer[S], W: Static, MASKED: Static) -> Any:
    """Return the scores of a key plus its mask, or -inf for queries that must not attend to the key."""
    if MASKED != NO_MASK:
        added = load(mask, W) if MASKED == MASK_OF_QUERIES else broadcast(mask[0], W)
        score = where(added == -math.inf, -math.inf, score + added)
    return where(broadcast(i32(key), W) <= last, score, -math.inf)


SMALLEST = -87.0
"""Exponentials of smaller numbers count as 0, because subnormal numbers are slow."""


@loops
def weight_of(score: T) -> T:
    """Return the exponential of a score minus the maximum of its row."""
    return where(score < SMALLEST, 0.0, exp_to_normal(where(score < SMALLEST, SMALLEST, score)))


@loops(explicit=True, plain=True)
def attend(
    out: Pointer[T], statistics: Pointer[T], q: Pointer[T], k: Pointer[T], v: Pointer[T], mask: Pointer[T], keep: Pointer[u16],
    sizes: Pointer[i64], scale: T, keep_scale: T, start: Int, stop: Int,
    W: Static, R: Static, WHOLE: Static, MASKED: Static, DROPPED: Static,
) -> None:  # fmt: skip
    """Compute blocks of queries: the result, and each row's maximum and the reciprocal of its sum of exponentials."""
    told = fields(sizes, SIZES)
    queries, heads, width, value_width = told.queries, told.heads, told.width, told.value_width
    blocks = (queries + (VECTORS * W - 1)) // (VECTORS * W)
    padded = padded_width(value_width, W)
    columns, sums = local(T, FEATURES * VECTORS * W), local(T, FEATURES * VECTORS * W)
    scores = local(T, KEYS * VECTORS * W)
    top, total, factors = local(T, VECTORS * W), local(T, VECTORS * W), local(T, VECTORS * W)
    for item in range(start, stop):
        first = item % blocks * (VECTORS * W)
        head, batch = item // blocks % heads, item // blocks // heads
        shared = head // told.group
        rows = minimum(queries - first, VECTORS * W)
        pack_columns(columns, q + offset_of(told.q, batch, head, first), told.q[2], rows, width, scale, W)
        keys = where(told.causal != 0, minimum(told.keys, first + rows), told.keys)
        for column in range(0, VECTORS * W, W):
            store(top + column, vector(T, W)(-math.inf))
            store(total + column, vector(T, W)(0))
        clear(sums, VECTORS * W * padded, W)
        of_mask = mask + (batch * told.mask[0] + head * told.mask[1] + first * told.mask[3])
        of_keep = keep + (batch * told.keep[0] + head * told.keep[1])
        for block in range(0, keys, KEYS):
            count = minimum(keys - block, KEYS)
            k_block, v_block = (
                k + offset_of(told.k, batch, shared, block),
                v + offset_of(told.v, batch, shared, block),
            )
            for job in range(told.two):
                # Compute the scores, and from their weights the result.
                own = job == 0
                if job == 1:
                    for column in range(0, VECTORS * W, W):
                        last = last_keys(first + column, rows - column, told, W)
                        before = load(top + column, W)
                        found = before
                        for j in range(count):
                            place = scores + (j * (VECTORS * W) + column)
                            score = masked(
                                load(place, W),
                                block + j,
                                last,
                                of_mask + ((block + j) * told.mask[2] + column * told.mask[3]),
                                W,
                                MASKED,
                            )
                            store(place, score)
                            found = where(score > found, score, found)  # a NaN reaches the result through its weight
                        safe = where(found == -math.inf, 0.0, found)
                        shrink = weight_of(before - safe)
                        store(top + column, found)
                        store(factors + column, shrink)
                        added = vector(T, W)(0)
                        for j in range(count):
                            place = scores + (j * (VECTORS * W) + column)
                            weight = weight_of(load(place, W) - safe)
                            added += weight
                            if DROPPED:
                                chosen = kept(of_keep, block + j, told.keep[2], first + column, W)
                                weight = where(chosen, weight * keep_scale, 0.0)
                            store(place, weight)
                        store(total + column, load(total + column, W) * shrink + added)
                    if block > 0:
                        scale_rows(sums, padded, factors, W)
                add_product(
                    where(own, scores, sums), where(own, i64(VECTORS * W), padded), where(own, count, VECTORS * W),
                    where(own, i64(VECTORS * W), value_width), where(own, k_block, scores), where(own, told.k[2], 1),
                    where(own, i64(1), i64(VECTORS * W)), where(own, count - 1, VECTORS * W), where(own, columns, v_block),
                    where(own, i64(VECTORS * W), told.v[2]), where(own, width, count), own, W, R, WHOLE,
                )  # fmt: skip
        of_head = statistics + 2 * (batch * heads + head) * queries + first
        for column in range(0, VECTORS * W, W):
            found, sum_of = load(top + column, W), load(total + column, W)
            inverse = where(sum_of == 0.0, 0.0, 1.0 / sum_of)
            there = first_lanes(rows - column, W)
            store(of_head + column, where(found == -math.inf, 0.0, found), there)
            store(of_head + (queries + column), inverse, there)
            store(factors + column, inverse)
        scale_rows(sums, padded, factors, W)
        copy_rows(out + offset_of(told.out, batch, head, first), told.out[2], sums, rows, value_width, W)


@loops(explicit=True, plain=True)
def attend_backward(
    grad_q: Pointer[T], grad_k: Pointer[T], grad_v: Pointer[T], grad: Pointer[T], out: Pointer[T], statistics: Pointer[T],
    q: Pointer[T], k: Pointer[T], v: Pointer[T], mask: Pointer[T], keep: Pointer[u16], sizes: Pointer[i64], space: Pointer[T],
    scale: T, keep_scale: T, start: Int, stop: Int, W: Static, R: Static, WHOLE: Static, MASKED: Static, DROPPED: Static,
) -> None:  # fmt: skip
    """Compute the gradients of some shares of the heads of keys, each in `SPLITS` parts, which share its queries.

    For each share, `space` has space for the sums of the gradients of all keys and values of a head.
    """
    told = fields(sizes, SIZES)
    queries, heads, width, value_width = told.queries, told.heads, told.width, told.value_width
    key_count, group, splits = told.keys, told.group, told.splits
    blocks = (queries + (VECTORS * W - 1)) // (VECTORS * W)
    q_columns, q_rows = local(T, FEATURES * VECTORS * W), local(T, FEATURES * VECTORS * W)
    g_columns, g_rows = local(T, FEATURES * VECTORS * W), local(T, FEATURES * VECTORS * W)
    sums = local(T, FEATURES * VECTORS * W)
    weights, changes = local(T, KEYS * VECTORS * W), local(T, KEYS * VECTORS * W)
    slopes = local(T, VECTORS * W)
    padded, value_padded = padded_width(width, W), padded_width(value_width, W)
    room = (key_count + (KEYS - 1)) // KEYS * KEYS
    k_sums = space + start * room * (padded + value_padded)
    v_sums = k_sums + room * padded
    for item in range(start * told.items // told.shares, stop * told.items // told.shares):
        split, shared = item % splits, item // splits % (heads // group)
        batch = item // splits // (heads // group)
        k_head = k + offset_of(told.k, batch, shared, 0)
        v_head = v + offset_of(told.v, batch, shared, 0)
        clear(k_sums, room * (padded + value_padded), W)
        for part in range((group * blocks - split + splits - 1) // splits):
            turn = split + part * splits
            head, first = shared * group + turn // blocks, turn % blocks * (VECTORS * W)
            rows = minimum(queries - first, VECTORS * W)
            for job in range(told.two):
                own = job == 0
                source = where(
                    own, q + offset_of(told.q, batch, head, first), grad + offset_of(told.grad, batch, head, first)
                )
                row, size = where(own, told.q[2], told.grad[2]), where(own, width, value_width)
                factor = where(own, scale, T(1))
                pack_columns(where(own, q_columns, g_columns), source, row, rows, size, factor, W)
                pack_rows(where(own, q_rows, g_rows), source, row, rows, size, factor, W)
            for i in range(VECTORS * W):
                product = vector(T, W)(0)
                result = out + offset_of(told.out, batch, head, first + minimum(i, rows - 1))
                for place in range(0, value_width, W):
                    there = first_lanes(value_width - place, W)
                    product += load(result + place, W, there) * load(g_rows + (i * value_padded + place), W)
                slopes[i] = reduce_add(product)
            clear(sums, VECTORS * W * padded, W)
            of_head = statistics + 2 * (batch * heads + head) * queries + first
            of_mask = mask + (batch * told.mask[0] + head * told.mask[1] + first * told.mask[3])
            of_keep = keep + (batch * told.keep[0] + head * told.keep[1])
            keys = where(told.causal != 0, minimum(key_count, first + rows), key_count)
            for block in range(0, keys, KEYS):
                count = minimum(keys - block, KEYS)
                k_block, v_block = k_head + block * told.k[2], v_head + block * told.v[2]
                for job in range(told.two + 3):
                    # Compute the scores, the gradients of weights, and from these the gradients of values, keys and queries.
                    if job == 2:
                        for column in range(0, VECTORS * W, W):
                            last = last_keys(first + column, rows - column, told, W)
                            there = first_lanes(rows - column, W)
                            top, inverse = (
                                load(of_head + column, W, there),
                                load(of_head + (queries + column), W, there),
                            )
                            slope = load(slopes + column, W)
                            for j in range(count):
                                place = j * (VECTORS * W) + column
                                score = masked(
                                    load(weights + place, W), block + j, last,
                                    of_mask + ((block + j) * told.mask[2] + column * told.mask[3]),
                                    W, MASKED,
                                )  # fmt: skip
                                weight = weight_of(score - top) * inverse
                                change = load(changes + place, W)
                                store(weights + place, weight)
                                if DROPPED:
                                    chosen = kept(of_keep, block + j, told.keep[2], first + column, W)
                                    change = where(chosen, change * keep_scale, 0.0)
                                    store(weights + place, where(chosen, weight * keep_scale, 0.0))
                                store(changes + place, weight * (change - slope))
                            for j in range(count, (count + (R - 1)) // R * R):
                                store(weights + (j * (VECTORS * W) + column), vector(T, W)(0))
                                store(changes + (j * (VECTORS * W) + column), vector(T, W)(0))
                    of_values = (job == 1) | (job == 2)
                    own = job == 4
                    add_product(
                        where(
                            job < 2,
                            where(of_values, changes, weights),
                            where(own, sums, where(of_values, v_sums + block * value_padded, k_sums + block * padded)),
                        ),
                        where(job < 2, i64(VECTORS * W), where(of_values, value_padded, padded)),
                        where(own, VECTORS * W, count),
                        where(job < 2, i64(VECTORS * W), where(of_values, value_width, width)),
                        where(job < 2, where(of_values, v_block, k_block), where(of_values, weights, changes)),
                        where(job < 2, where(of_values, told.v[2], told.k[2]), where(own, i64(1), i64(VECTORS * W))),
                        where(own, i64(VECTORS * W), i64(1)),
                        where(job < 2, count - 1, KEYS * VECTORS * W),
                        where(
                            job < 2,
                            where(of_values, g_columns, q_columns),
                            where(own, k_block, where(of_values, g_rows, q_rows)),
                        ),
                        where(
                            job < 2, i64(VECTORS * W), where(own, told.k[2], where(of_values, value_padded, padded))
                        ),
                        where(
                            job < 2, where(of_values, value_width, width), where(own, count, i64(VECTORS * W))
                        ),
                        job < 2, W, R, WHOLE,
                    )  # fmt: skip
            for i in range(VECTORS * W):
                slopes[i] = scale
            scale_rows(sums, padded, slopes, W)
            copy_rows(grad_q + offset_of(told.grad_q, batch, head, first), told.grad_q[2], sums, rows, width, W)
        to_key = grad_k + (split * told.parts[0] + offset_of(told.grad_k, batch, shared, 0))
        to_value = grad_v + (split * told.parts[1] + offset_of(told.grad_v, batch, shared, 0))
        for job in range(told.two):
            own = job == 0
            copy_rows(
                where(own, to_key, to_value), where(own, told.grad_k[2], told.grad_v[2]), where(own, k_sums, v_sums), key_count,
                where(own, width, value_width), W,
            )  # fmt: skip

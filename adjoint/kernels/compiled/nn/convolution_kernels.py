"""The loops of convolutions: rows packed with padding, products of register tiles, results unpacked.

`Geometry` of `convolution_geometry` says how packed memory is laid out.
"""

from __future__ import annotations

from typing import Any

from ....codegen.llvm.language import (
    Int,
    Pointer,
    S,
    Static,
    T,
    broadcast,
    fma,
    gather,
    i32,
    i64,
    lanes,
    load,
    local,
    loops,
    minimum,
    shuffle,
    store,
    unrolled,
    vector,
)


@loops(explicit=True)
def pack(
    out: Pointer[T],
    x: Pointer[T],
    phases: Pointer[i64],
    spot: Pointer[i64],
    sizes: Pointer[i64],
    W: Static,
    STEP: Static,
) -> None:
    """Rows of `x` from its place `start` on, those of the samples side by side, with zeros for what is outside 0 to `stop`.

    There are `places` for samples. Rows are written in their order as whole vectors: what one writes beyond its end the next
    one overwrites. Behind them are `slack` zeros. `STEP`: that of the last dimension if it is 1 or 2, else 0.
    """
    samples, start_d, start_h, start_w, stop_d, stop_h, stop_w = [spot[K] for K in unrolled(7)]
    phase_count, places, channels, grid_d, grid_h, pitch, channel_pitch, slack = [sizes[K] for K in unrolled(8)]
    step_d, step_h, step_w = [sizes[8 + K] for K in unrolled(3)]
    sample_stride, channel_stride, plane_stride, row_stride = [sizes[11 + K] for K in unrolled(4)]
    zeros = vector(T, W)(0)
    for c in range(channels):
        at = c * channel_pitch
        for q in range(phase_count):
            first = start_w + phases[3 * q + 2]
            for i in range(grid_d):
                z = start_d + phases[3 * q] + i * step_d
                for j in range(grid_h):
                    y = start_h + phases[3 * q + 1] + j * step_h
                    inside = 0
                    if z >= 0 and z < stop_d and y >= 0 and y < stop_h:
                        inside = samples
                    row = x + (c * channel_stride + z * plane_stride + y * row_stride)
                    for _n in range(inside):
                        for k in range(0, pitch, W):
                            store(out + (at + k), dealt(row, first + k * step_w, step_w, stop_w, W, STEP))
                        at += pitch
                        row = row + sample_stride
                    rest = at + (places - inside) * pitch
                    while at < rest:
                        store(out + at, zeros)
                        at += W
                    at = rest
        last = (c + 1) * channel_pitch
        if c == channels - 1:
            last += slack
        while at < last:
            store(out + at, zeros)
            at += W


@loops(explicit=True)
def dealt(row: Pointer[T], first: Int, step: Int, stop: Int, W: Static, STEP: Static) -> S:
    """Every `step`th element of a row from `first` on, and zeros outside 0 to `stop`. `STEP`: `step` if it is 1 or 2, else 0."""
    if STEP == 0:
        numbers = lanes(i32, W) * i32(step)
        places = numbers + i32(first)
        return gather(row + first, numbers, (places >= 0) & (places < i32(stop)))
    places = lanes(i32, W) + i32(first)
    values = load(row + first, W, (places >= 0) & (places < i32(stop)))
    if STEP == 1:
        return values
    places = places + W
    others = load(row + (first + W), W, (places >= 0) & (places < i32(stop)))
    return shuffle(values, others, [2 * J for J in unrolled(W)])


@loops(explicit=True)
def pack_weights(
    out: Pointer[T],
    weight: Pointer[T],
    taps: Pointer[i64],
    tap_count: Int,
    groups: Int,
    outs: Int,
    ins: Int,
    group_stride: Int,
    out_stride: Int,
    in_stride: Int,
    ROWS: Static,
) -> None:
    """Blocks of `ROWS` output channels, which come last; the last channel again where there are fewer."""
    to = out
    for g in range(groups):
        for b in range(0, outs, ROWS):
            rows = [weight + (g * group_stride + minimum(b + M, outs - 1) * out_stride) for M in unrolled(ROWS)]
            for i in range(ins):
                for t in range(tap_count):
                    at = i * in_stride + taps[t]
                    for M in unrolled(ROWS):
                        to[M] = rows[M][at]
                    to = to + ROWS


@loops(explicit=True)
def multiply(
    out: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    bias: Pointer[T],
    offsets: Pointer[i64],
    pieces: Pointer[i64],
    sizes: Pointer[i64],
    W: Static,
    ROWS: Static,
    COLUMNS: Static,
) -> None:
    """For each place and each output channel the sum over taps of inputs times weights.

    A tile of `ROWS` channels and `COLUMNS` vectors is in registers. `pieces` says for each tile which of its places lie in one
    piece in `out`, and where: first the number of the first piece of each tile, then lane, length and offset of each piece.
    `weights_first`: one block of weights meets all places before the next; else all weights meet the places of one tile.
    """
    tiles, depth, groups, outs, group_pitch, channel_stride, weights_first = [sizes[K] for K in unrolled(7)]
    tile = local(T, ROWS * COLUMNS * W)
    found = pieces + (tiles + 1)
    each = (outs + ROWS - 1) // ROWS
    blocks = groups * each
    for turn in range(tiles * blocks):
        v = turn % tiles if weights_first != 0 else turn // blocks
        number = turn // tiles if weights_first != 0 else turn % blocks
        g = number // each
        b = (number % each) * ROWS
        channel = g * outs + b
        block = weight + number * depth * ROWS
        places = x + (g * group_pitch + v * (COLUMNS * W))
        sums = local(vector(T, W), ROWS * COLUMNS)
        for R in unrolled(ROWS * COLUMNS):
            sums[R] = vector(T, W)(0)
        for k in range(depth):
            tap = places + offsets[k]
            met = [load(tap + J * W, W) for J in unrolled(COLUMNS)]
            for M in unrolled(ROWS):
                factor = broadcast(block[M], W)
                for J in unrolled(COLUMNS):
                    sums[M * COLUMNS + J] = fma(factor, met[J], sums[M * COLUMNS + J])
            block = block + ROWS
        for M in unrolled(ROWS):
            added = broadcast(bias[channel + M], W)
            for J in unrolled(COLUMNS):
                store(tile + (M * COLUMNS + J) * W, sums[M * COLUMNS + J] + added)
        for i in range(pieces[v], pieces[v + 1]):
            lane, length, offset = [found[3 * i + K] for K in unrolled(3)]
            row = tile + lane
            to = out + (channel * channel_stride + offset)
            for _m in range(minimum(ROWS, outs - b)):
                for k in range(0, length, W):
                    store_first(to + k, load(row + k, W), length - k, W)
                row = row + COLUMNS * W
                to = to + channel_stride


@loops(explicit=True)
def interleave(target: Pointer[T], x: Pointer[T], sizes: Pointer[i64], W: Static, SPREAD: Static) -> None:
    """Rows of a result, of which each phase has been computed for itself. `SPREAD`: `spread_w` if that is 1 or 2, else 0."""
    samples, channels, planes, rows, columns, spread_d, spread_h, spread_w = [sizes[K] for K in unrolled(8)]
    sample_stride, channel_stride, plane_stride, row_stride = [sizes[8 + K] for K in unrolled(4)]
    grid_h, pitch, channel_pitch, phase_pitch = [sizes[12 + K] for K in unrolled(4)]
    for n in range(samples):
        for c in range(channels):
            for z in range(planes):
                for y in range(rows):
                    phase = ((z % spread_d) * spread_h + y % spread_h) * spread_w
                    place = ((z // spread_d) * grid_h + y // spread_h) * samples + n
                    row = x + (phase * phase_pitch + c * channel_pitch + place * pitch)
                    to = target + (n * sample_stride + c * channel_stride + z * plane_stride + y * row_stride)
                    if SPREAD == 1:
                        for k in range(0, columns, W):
                            store_first(to + k, load(row + k, W), columns - k, W)
                    elif SPREAD == 2:
                        for k in range(0, columns, 2 * W):
                            even = load(row + (k >> 1), W)
                            odd = load(row + (phase_pitch + (k >> 1)), W)
                            low = shuffle(even, odd, [J // 2 + W * (J % 2) for J in unrolled(W)])
                            high = shuffle(even, odd, [(W + J) // 2 + W * (J % 2) for J in unrolled(W)])
                            store_first(to + k, low, columns - k, W)
                            store_first(to + (k + W), high, columns - k - W, W)
                    else:
                        for k in range(columns):
                            to[k] = row[(k % spread_w) * phase_pitch + k // spread_w]


@loops(explicit=True)
def store_first(to: Pointer[T], values: S, count: Int, W: Static) -> None:
    """The first `count` numbers of a vector."""
    if count >= W:
        store(to, values)
    else:
        store(to, values, lanes(i32, W) < i32(count))


@loops(explicit=True)
def correlate(
    total: Pointer[T],
    x: Pointer[T],
    grad: Pointer[T],
    offsets: Pointer[i64],
    sizes: Pointer[i64],
    W: Static,
    ROWS: Static,
    COLUMNS: Static,
    STRETCH: Static,
) -> None:
    """Add to `total` for each output channel and tap the sum over places of gradients times inputs.

    A tile of `ROWS` channels and `COLUMNS` taps is in registers, a vector for each sum. It runs over `STRETCH` vectors of places,
    whose gradients stay in the first-level cache for all taps.
    """
    vectors, depth, groups, outs, group_pitch, grad_pitch = [sizes[K] for K in unrolled(6)]
    for start in range(0, vectors, STRETCH):
        count = minimum(vectors - start, STRETCH)
        for g in range(groups):
            for b in range(0, outs, ROWS):
                channel = g * outs + b
                for k in range(0, depth, COLUMNS):
                    taps = [x + (g * group_pitch + offsets[k + J] + start * W) for J in unrolled(COLUMNS)]
                    given = grad + (channel * grad_pitch + start * W)
                    sums = local(vector(T, W), ROWS * COLUMNS)
                    for R in unrolled(ROWS * COLUMNS):
                        sums[R] = vector(T, W)(0)
                    for v in range(count):
                        met = [load(taps[J] + v * W, W) for J in unrolled(COLUMNS)]
                        for M in unrolled(ROWS):
                            gradients = load(given + (M * grad_pitch + v * W), W)
                            for J in unrolled(COLUMNS):
                                sums[M * COLUMNS + J] = fma(gradients, met[J], sums[M * COLUMNS + J])
                    for M in unrolled(ROWS):
                        if outs - b > M:
                            row = total + ((channel + M) * depth + k)
                            for J in unrolled(0, COLUMNS, W):
                                N = power_of_two(min(COLUMNS - J, W))
                                found = [sums[M * COLUMNS + J + C] for C in unrolled(min(COLUMNS - J, N))]
                                add_first(row + J, lane_sums(found, W, N), minimum(depth - k, COLUMNS) - J, N)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not less."""
    return 1 << (number - 1).bit_length()


def halves(width: int, segment: int, second: bool) -> list[int]:
    """The lanes of the first or second halves of all segments of a vector."""
    return [start + lane + second * segment // 2 for start in range(0, width, segment) for lane in range(segment // 2)]


@loops(explicit=True)
def lane_sums(vectors: Any, W: Static, N: Static) -> S:
    """A vector of `N` lanes, a power of two, with the sums of so many vectors: pairs of them are folded into one."""
    parts = vectors
    SEGMENT = W
    for _ in unrolled(N.bit_length() - 1):
        parts = [
            folded(parts[2 * J], parts[2 * J + 1] if len(parts) > 2 * J + 1 else parts[2 * J], W, SEGMENT)
            for J in unrolled((len(parts) + 1) // 2)
        ]
        SEGMENT = SEGMENT // 2
    WIDTH = W
    for _ in unrolled((W // N).bit_length() - 1):
        first, second = halves(WIDTH, SEGMENT, False), halves(WIDTH, SEGMENT, True)
        parts = [shuffle(parts[0], parts[0], first) + shuffle(parts[0], parts[0], second)]
        WIDTH = WIDTH // 2
        SEGMENT = SEGMENT // 2
    return parts[0]


@loops(explicit=True)
def folded(a: S, b: S, W: Static, SEGMENT: Static) -> S:
    """Two vectors whose segments are to be added up as one: segments of half the length, those of `a` first."""
    first, second = halves(W, SEGMENT, False), halves(W, SEGMENT, True)
    return shuffle(a, b, first + [W + lane for lane in first]) + shuffle(a, b, second + [W + lane for lane in second])


@loops(explicit=True)
def add_first(to: Pointer[T], values: S, count: Int, N: Static) -> None:
    """Add the first `count` numbers of a vector of `N` to what is there."""
    if N == 1:
        if count > 0:
            to[0] += values[0]
    else:
        inside = lanes(i32, N) < i32(count)
        store(to, load(to, N, inside) + values, inside)

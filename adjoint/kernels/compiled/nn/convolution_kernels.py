"""The loops of convolutions: rows packed with padding, products of register tiles, results unpacked.

`Geometry` of `convolution_geometry` describes packed memory, and `convolution_plan` describes the tables.
"""

from __future__ import annotations

from ....codegen.llvm.language import *

RECORD = 15
"""How many numbers describe a block: its first sample, how many samples, its first group, how many groups, the places of the
source where it begins and where the source ends, its place in the result, how many planes, rows and columns that has of it, and
the address of the table of its part."""


@loops(explicit=True, plain=True)
def convolve(
    out: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    bias: Pointer[T],
    scratch: Pointer[T],
    plan: Pointer[i64],
    blocks: Pointer[i64],
    products: Pointer[i64],
    strides: Pointer[i64],
    start: Int,
    stop: Int,
    PACK: Static,
    MULTIPLY: Static,
    INTERLEAVE: Static,
) -> None:
    """The blocks of ranges `start` to `stop`, each of which has its own part of `scratch`.

    `PACK`, `MULTIPLY`, `INTERLEAVE`: these kernels, compiled apart. The first is None if `x` is read where it is, the last if no
    dimension of the result is spread.
    """
    count, ranges, pitch, packed_size, ins, outs, group_pitch, phases, weights_first = [plan[K] for K in unrolled(9)]
    for r in range(start, stop):
        packed = scratch + r * pitch
        for number in range(r * count // ranges, (r + 1) * count // ranges):
            block = blocks + number * RECORD
            sample, group, groups, place = block[0], block[2], block[3], block[10]
            part = as_pointer(block[14], i64)
            source = x + (sample * strides[0] + group * ins * strides[1])
            if PACK is None:
                packed = source + block[6]
            else:
                PACK(packed, source, groups * ins, block, plan + 9, strides)
            to = out + place
            if INTERLEAVE is not None:
                to = scratch + (r * pitch + packed_size)
            for phase in range(phases):
                depth, offset = products[3 * phase], products[3 * phase + 1]
                offsets = as_pointer(products[3 * phase + 2], i64)
                MULTIPLY(
                    to + phase * part[4], packed, weight + offset, bias, offsets, part, depth, group, groups, outs,
                    group_pitch, weights_first,
                )  # fmt: skip
            if INTERLEAVE is not None:
                INTERLEAVE(out + place, to, block, groups * outs, part, plan + 20)


@loops(explicit=True, plain=True)
def pack(
    out: Pointer[T],
    x: Pointer[T],
    channels: Int,
    spot: Pointer[i64],
    sizes: Pointer[i64],
    strides: Pointer[i64],
    W: Static,
    STEP: Static,
) -> None:
    """Rows of `x` from the place that `spot` names on, those of the samples side by side, with zeros for what is outside.

    There are `places` for samples. Rows are written in their order as whole vectors: what one writes beyond its end the next
    one overwrites. Behind them are `slack` zeros. `STEP`: that of the last dimension if it is 1 or 2, else 0.
    """
    samples = spot[1]
    start_d, start_h, start_w, stop_d, stop_h, stop_w = [spot[4 + K] for K in unrolled(6)]
    phase_count, places, grid_d, grid_h, pitch, channel_pitch, slack = [sizes[K] for K in unrolled(7)]
    step_d, step_h, step_w, table = [sizes[7 + K] for K in unrolled(4)]
    sample_stride, channel_stride, plane_stride, row_stride = [strides[K] for K in unrolled(4)]
    phases = as_pointer(table, i64)
    zeros = vector(T, W)(0)
    for c in range(channels):
        at = c * channel_pitch
        for q in range(phase_count):
            first = start_w + phases[3 * q + 2]
            for i in range(grid_d):
                z = start_d + phases[3 * q] + i * step_d
                for j in range(grid_h):
                    y = start_h + phases[3 * q + 1] + j * step_h
                    inside = i64(0)
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


@loops(explicit=True, plain=True)
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


@loops(explicit=True, plain=True)
def pack_weights(
    out: Pointer[T],
    weight: Pointer[T],
    products: Pointer[i64],
    taps: Pointer[i64],
    phases: Int,
    outs: Int,
    ins: Int,
    group_stride: Int,
    out_stride: Int,
    in_stride: Int,
    start: Int,
    stop: Int,
    ROWS: Static,
) -> None:
    """Blocks of `ROWS` output channels, which come last; the last channel again where there are fewer."""
    each = (outs + ROWS - 1) // ROWS
    for number in range(start, stop):
        b = (number % each) * ROWS
        group = weight + (number // each) * group_stride
        rows = [group + minimum(b + M, outs - 1) * out_stride for M in unrolled(ROWS)]
        for phase in range(phases):
            depth = products[3 * phase]
            tap_count = depth // ins
            tap = as_pointer(taps[phase], i64)
            to = out + (products[3 * phase + 1] + number * depth * ROWS)
            for i in range(ins):
                for t in range(tap_count):
                    at = i * in_stride + tap[t]
                    for M in unrolled(ROWS):
                        to[M] = rows[M][at]
                    to = to + ROWS


@loops(explicit=True, plain=True)
def multiply(
    out: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    bias: Pointer[T],
    offsets: Pointer[i64],
    part: Pointer[i64],
    depth: Int,
    group: Int,
    groups: Int,
    outs: Int,
    group_pitch: Int,
    weights_first: Int,
    W: Static,
    ROWS: Static,
    COLUMNS: Static,
) -> None:
    """For each place and each output channel the sum over taps of inputs times weights.

    `part` says where each vector of places begins in `x`, and how many tiles of `COLUMNS` vectors there are; those that are left
    over are tiles of their own. `weights_first`: one block of weights meets all places before the next; else all weights meet the
    places of one tile.
    """
    tiles, begin = part[0], as_pointer(part[1], i64)
    each = (outs + ROWS - 1) // ROWS
    blocks = groups * each
    turns = tiles + part[7]
    for turn in range(turns * blocks):
        v = turn % turns if weights_first != 0 else turn // blocks
        number = turn // turns if weights_first != 0 else turn % blocks
        g = number // each
        b = (number % each) * ROWS
        source = x + g * group_pitch
        block = weight + (group * each + number) * depth * ROWS
        added = bias + ((group + g) * outs + b)
        to = out + (g * outs + b) * part[3]
        if v < tiles:
            multiply_tile(
                to, source, block, added, offsets, part, begin, v * COLUMNS, depth, outs - b, W, ROWS, COLUMNS
            )
        else:
            v += tiles * (COLUMNS - 1)
            multiply_tile(to, source, block, added, offsets, part, begin, v, depth, outs - b, W, ROWS, 1)


@loops(explicit=True, plain=True)
def multiply_tile(
    out: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    bias: Pointer[T],
    offsets: Pointer[i64],
    part: Pointer[i64],
    begin: Pointer[i64],
    first: Int,
    depth: Int,
    outs: Int,
    W: Static,
    ROWS: Static,
    COLUMNS: Static,
) -> None:
    """The sums for a tile of `ROWS` channels, of which there are `outs`, and `COLUMNS` vectors, which is in registers.

    `part` says which lanes of a vector belong where in `out`: the pieces, each with its first lane, the one behind its last, and
    its place.
    """
    channel_stride, index, found = part[3], as_pointer(part[2], i64), as_pointer(part[8], i64)
    places = [x + begin[first + J] for J in unrolled(COLUMNS)]
    sums = local(vector(T, W), ROWS * COLUMNS)
    for M in unrolled(ROWS):
        added = broadcast(bias[minimum(M, outs - 1)], W)
        for J in unrolled(COLUMNS):
            sums[M * COLUMNS + J] = added
    block = weight
    for k in range(depth):
        tap = offsets[k]
        met = [load(places[J] + tap, W) for J in unrolled(COLUMNS)]
        for M in unrolled(ROWS):
            factor = broadcast(block[M], W)
            for J in unrolled(COLUMNS):
                sums[M * COLUMNS + J] = fma(factor, met[J], sums[M * COLUMNS + J])
        block = block + ROWS
    steps = [minimum(M, outs - 1) * channel_stride for M in unrolled(ROWS)]  # missing channels repeat the last one
    for J in unrolled(COLUMNS):
        for i in range(index[first + J], index[first + J + 1]):
            lane, after, offset = [found[3 * i + K] for K in unrolled(3)]
            row = out + offset
            if HOST.vector_bytes != 64 and after - lane == W:  # with AVX-512 parts of vectors are written as fast
                for M in unrolled(ROWS):
                    store(row + steps[M], sums[M * COLUMNS + J])
            else:
                numbers = lanes(i32, W)
                inside = (numbers >= i32(lane)) & (numbers < i32(after))
                for M in unrolled(ROWS):
                    store(row + steps[M], sums[M * COLUMNS + J], inside)


@loops(explicit=True, plain=True)
def interleave(
    target: Pointer[T],
    x: Pointer[T],
    block: Pointer[i64],
    channels: Int,
    part: Pointer[i64],
    sizes: Pointer[i64],
    W: Static,
    SPREAD: Static,
) -> None:
    """Rows of a result, of which each phase has been computed for itself. `SPREAD`: `spread_w` if that is 1 or 2, else 0."""
    samples, planes, rows, columns = block[1], block[11], block[12], block[13]
    sample_stride, channel_stride, plane_stride, row_stride = [sizes[K] for K in unrolled(4)]
    spread_d, spread_h, spread_w = [sizes[4 + K] for K in unrolled(3)]
    channel_pitch, phase_pitch, grid_h, pitch = [part[3 + K] for K in unrolled(4)]
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


@loops(explicit=True, plain=True)
def store_first(to: Pointer[T], values: S, count: Int, W: Static) -> None:
    """The first `count` numbers of a vector."""
    if count >= W:
        store(to, values)
    else:
        store(to, values, lanes(i32, W) < i32(count))

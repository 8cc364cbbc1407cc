"""The loops of convolutions: rows packed with padding, products of register tiles, results unpacked.

`Geometry` of `convolution_geometry` says how packed memory is laid out.
"""

from __future__ import annotations

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
    reduce_add,
    shuffle,
    store,
    unrolled,
    vector,
)


@loops(explicit=True)
def pack(
    out: Pointer[T],
    x: Pointer[T],
    samples: Int,
    start_d: Int,
    start_h: Int,
    start_w: Int,
    stop_d: Int,
    stop_h: Int,
    stop_w: Int,
    phases: Pointer[i64],
    phase_count: Int,
    places: Int,
    channels: Int,
    sample_stride: Int,
    channel_stride: Int,
    plane_stride: Int,
    row_stride: Int,
    step_d: Int,
    step_h: Int,
    step_w: Int,
    grid_d: Int,
    grid_h: Int,
    pitch: Int,
    channel_pitch: Int,
    W: Static,
    STEP: Static,
) -> None:
    """Rows of `x` from its place `start` on, those of the samples side by side, with zeros for what is outside 0 to `stop`.

    There are `places` for samples. Rows are written in their order as whole vectors: what one writes beyond its end the next
    one overwrites. `STEP`: that of the last dimension if it is 1 or 2, else 0.
    """
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
            last += 4 * W
        while at < last:
            store(out + at, zeros)
            at += W


@loops(explicit=True)
def dealt(row: Pointer[T], first: Int, step: Int, stop: Int, W: Static, STEP: Static) -> S:
    """Every `step`th element from `first` on, and zeros outside 0 to `stop`."""
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
    at = 0
    for g in range(groups):
        for b in range(0, outs, ROWS):
            for i in range(ins):
                source = weight + (g * group_stride + i * in_stride)
                for t in range(tap_count):
                    for m in range(ROWS):
                        out[at + m] = source[minimum(b + m, outs - 1) * out_stride + taps[t]]
                    at += ROWS


@loops(explicit=True)
def multiply(
    out: Pointer[T],
    x: Pointer[T],
    weight: Pointer[T],
    bias: Pointer[T],
    offsets: Pointer[i64],
    depth: Int,
    vectors: Int,
    groups: Int,
    outs: Int,
    group_pitch: Int,
    out_pitch: Int,
    W: Static,
    ROWS: Static,
    COLUMNS: Static,
) -> None:
    """For each vector of places and each output channel the sum over taps of inputs times weights.

    A tile of `ROWS` channels and `COLUMNS` vectors is in registers. Channels beyond the last are written before those that
    stand there, or behind all.
    """
    for v in range(0, vectors, COLUMNS):
        block = weight
        for g in range(groups):
            places = x + (g * group_pitch + v * W)
            for b in range(0, outs, ROWS):
                channel = g * outs + b
                sums = local(vector(T, W), ROWS * COLUMNS)
                for M in unrolled(ROWS):
                    added = broadcast(bias[channel + M], W)
                    for J in unrolled(COLUMNS):
                        sums[M * COLUMNS + J] = added
                for k in range(depth):
                    tap = places + offsets[k]
                    met = [load(tap + J * W, W) for J in unrolled(COLUMNS)]
                    for M in unrolled(ROWS):
                        factor = broadcast(block[M], W)
                        for J in unrolled(COLUMNS):
                            sums[M * COLUMNS + J] = fma(factor, met[J], sums[M * COLUMNS + J])
                    block = block + ROWS
                for M in unrolled(ROWS):
                    for J in unrolled(COLUMNS):
                        store(out + ((channel + M) * out_pitch + (v + J) * W), sums[M * COLUMNS + J])


@loops(explicit=True)
def unpack(
    target: Pointer[T],
    x: Pointer[T],
    samples: Int,
    channels: Int,
    sample_stride: Int,
    channel_stride: Int,
    plane_stride: Int,
    row_stride: Int,
    planes: Int,
    rows: Int,
    columns: Int,
    spread_d: Int,
    spread_h: Int,
    spread_w: Int,
    grid_h: Int,
    pitch: Int,
    row_pitch: Int,
    channel_pitch: Int,
    phase_pitch: Int,
    W: Static,
    SPREAD: Static,
) -> None:
    """The places of a result without what lies between its rows; its phases dealt in. `SPREAD`: `spread_w` if 1 or 2, else 0."""
    for n in range(samples):
        for c in range(channels):
            for z in range(planes):
                for y in range(rows):
                    phase = ((z % spread_d) * spread_h + y % spread_h) * spread_w
                    row = x + (
                        phase * phase_pitch
                        + c * channel_pitch
                        + n * pitch
                        + ((z // spread_d) * grid_h + y // spread_h) * row_pitch
                    )
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
    depth: Int,
    vectors: Int,
    groups: Int,
    outs: Int,
    group_pitch: Int,
    grad_pitch: Int,
    W: Static,
    ROWS: Static,
    COLUMNS: Static,
    STRETCH: Static,
) -> None:
    """Add to `total` for each output channel and tap the sum over places of gradients times inputs.

    A tile of `ROWS` channels and `COLUMNS` taps is in registers, a vector for each sum. It runs over `STRETCH` vectors of places,
    whose gradients stay in the first-level cache for all taps.
    """
    tile = local(vector(T, W), ROWS * COLUMNS)
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
                    for R in unrolled(ROWS * COLUMNS):
                        tile[R] = sums[R]
                    for m in range(minimum(ROWS, outs - b)):
                        for j in range(minimum(COLUMNS, depth - k)):
                            total[(channel + m) * depth + (k + j)] += reduce_add(tile[m * COLUMNS + j])

"""The loops of convolutions: they pack rows with padding, compute products with register tiles, and unpack results.

`Geometry` of `convolution_geometry` describes packed memory, and `convolution_plan` describes the tables.
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *

PACKING = Struct("phases samples grid:2 pitch channel_pitch slack step:3 table")
"""How rows are packed. `table`: the address of the offsets of the source of each phase in three dimensions."""

PRODUCTS = Struct(
    f"blocks ranges pitch packed_size ins outs group_pitch phases weights_first packing:{PACKING.size} result:7"
)
"""A convolution. `result`: the strides of samples, channels, planes and rows, and the distances of phases."""

BLOCK = Struct("sample samples group groups start:3 stop:3 place planes rows columns part")
"""A block of the work: its first sample and group, and the numbers of samples and groups; the positions where it begins in the
source and where the source ends; its position in the result, and the numbers of its planes, rows and columns there; and the
address of its `PART`."""

PART = Struct("tiles starts index channel_stride phase_pitch rows columns left pieces")
"""The data that blocks of one size share. `starts`, `index` and `pieces` are addresses."""

STRIDES = Struct("sample channel plane row")


@loops(explicit=True, plain=True)
def convolve(
    out: Pointer[T], x: Pointer[T], weight: Pointer[T], bias: Pointer[T], scratch: Pointer[T],
    plan: Pointer[i64], blocks: Pointer[i64], products: Pointer[i64], strides: Pointer[i64], start: Int,
    stop: Int, PACK: Static, MULTIPLY: Static, INTERLEAVE: Static,
) -> None:  # fmt: skip
    """Compute some ranges of blocks, each in a separate part of `scratch`.

    `PACK`, `MULTIPLY`, `INTERLEAVE`: the kernels for these steps, or None for steps that are not needed.
    """
    told, steps = fields(plan, PRODUCTS), fields(strides, STRIDES)
    count, ranges, pitch, outs = told.blocks, told.ranges, told.pitch, told.outs
    for r in range(start, stop):
        packed = scratch + r * pitch
        for number in range(r * count // ranges, (r + 1) * count // ranges):
            at = blocks + number * BLOCK.size
            block = fields(at, BLOCK)
            group, groups, place = block.group, block.groups, block.place
            part = as_pointer(block.part, i64)
            source = x + (block.sample * steps.sample + group * told.ins * steps.channel)
            if PACK is None:
                packed = source + block.start[2]
            else:
                PACK(packed, source, groups * told.ins, at, plan + PRODUCTS.places["packing"], strides)
            to = out + place
            if INTERLEAVE is not None:
                to = scratch + (r * pitch + told.packed_size)
            for phase in range(told.phases):
                depth, offset = products[3 * phase], products[3 * phase + 1]
                offsets = as_pointer(products[3 * phase + 2], i64)
                MULTIPLY(
                    to + phase * fields(part, PART).phase_pitch, packed, weight + offset, bias, offsets, part, depth, group,
                    groups, outs, told.group_pitch, told.weights_first,
                )  # fmt: skip
            if INTERLEAVE is not None:
                INTERLEAVE(out + place, to, at, groups * outs, part, plan + PRODUCTS.places["result"])


@loops(explicit=True, plain=True)
def pack(
    out: Pointer[T], x: Pointer[T], channels: Int, spot: Pointer[i64], sizes: Pointer[i64],
    strides: Pointer[i64], W: Static, STEP: Static,
) -> None:  # fmt: skip
    """Pack rows of `x` from `spot` on, those of the samples side by side, with zeros outside of the image.

    A row overwrites the elements that the previous row has written beyond its end. `slack` zeros follow the last row.
    """
    block, packing, along = fields(spot, BLOCK), fields(sizes, PACKING), fields(strides, STRIDES)
    samples = block.samples
    start_d, start_h, start_w = block.start
    stop_d, stop_h, stop_w = block.stop
    phase_count, places, pitch = packing.phases, packing.samples, packing.pitch
    grid_d, grid_h = packing.grid
    step_d, step_h, step_w = packing.step
    phases = as_pointer(packing.table, i64)
    zeros = vector(T, W)(0)
    for c in range(channels):
        at = c * packing.channel_pitch
        for q in range(phase_count):
            first = start_w + phases[3 * q + 2]
            for i in range(grid_d):
                z = start_d + phases[3 * q] + i * step_d
                for j in range(grid_h):
                    y = start_h + phases[3 * q + 1] + j * step_h
                    inside = i64(0)
                    if z >= 0 and z < stop_d and y >= 0 and y < stop_h:
                        inside = samples
                    row = x + (c * along.channel + z * along.plane + y * along.row)
                    for _n in range(inside):
                        for k in range(0, pitch, W):
                            store(out + (at + k), dealt(row, first + k * step_w, step_w, stop_w, W, STEP))
                        at += pitch
                        row = row + along.sample
                    rest = at + (places - inside) * pitch
                    while at < rest:
                        store(out + at, zeros)
                        at += W
                    at = rest
        last = (c + 1) * packing.channel_pitch
        if c == channels - 1:
            last += packing.slack
        while at < last:
            store(out + at, zeros)
            at += W


@loops(explicit=True, plain=True)
def dealt(row: Pointer[T], first: Int, step: Int, stop: Int, W: Static, STEP: Static) -> S:
    """Return every `step`th element of a row from `first` on, with zeros outside 0 to `stop`. `STEP`: 1, 2 or 0 (any)."""
    if STEP == 0:
        numbers = lanes(i32, W) * i32(step)
        places = numbers + i32(first)
        return gather(row + first, numbers, (places >= 0) & (places < i32(stop)))
    count = STEP * W
    if first >= 0 and first + count <= stop:  # without masks
        values, others = load(row + first, W), load(row + (first + (STEP - 1) * W), W)
    else:
        places = lanes(i32, W) + i32(first)
        values = load(row + first, W, (places >= 0) & (places < i32(stop)))
        places = places + i32((STEP - 1) * W)
        others = load(row + (first + (STEP - 1) * W), W, (places >= 0) & (places < i32(stop)))
    if STEP == 1:
        return values
    return shuffle(values, others, [2 * J for J in unrolled(W)])


@loops(explicit=True, plain=True)
def pack_weights(
    out: Pointer[T], weight: Pointer[T], products: Pointer[i64], taps: Pointer[i64], phases: Int, outs: Int,
    ins: Int, group_stride: Int, out_stride: Int, in_stride: Int, start: Int, stop: Int, ROWS: Static,
) -> None:  # fmt: skip
    """Pack blocks of `ROWS` output channels, which are the last dimension. Missing channels repeat the last one."""
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
    out: Pointer[T], x: Pointer[T], weight: Pointer[T], bias: Pointer[T], offsets: Pointer[i64],
    part: Pointer[i64], depth: Int, group: Int, groups: Int, outs: Int, group_pitch: Int, weights_first: Int,
    W: Static, ROWS: Static, COLUMNS: Static,
) -> None:  # fmt: skip
    """Compute the sum over taps of inputs times weights for each position and each output channel.

    `weights_first`: whether a block of weights is applied to all positions before the next, or all to one tile.
    """
    told = fields(part, PART)
    tiles, begin = told.tiles, as_pointer(told.starts, i64)
    each = (outs + ROWS - 1) // ROWS
    blocks = groups * each
    turns = tiles + told.left
    for turn in range(turns * blocks):
        v = turn % turns if weights_first != 0 else turn // blocks
        number = turn // turns if weights_first != 0 else turn % blocks
        g = number // each
        b = (number % each) * ROWS
        source = x + g * group_pitch
        block = weight + (group * each + number) * depth * ROWS
        added = bias + ((group + g) * outs + b)
        to = out + (g * outs + b) * told.channel_stride
        if v < tiles:
            multiply_tile(
                to, source, block, added, offsets, part, begin, v * COLUMNS, depth, outs - b, W, ROWS, COLUMNS
            )
        else:
            v += tiles * (COLUMNS - 1)
            multiply_tile(to, source, block, added, offsets, part, begin, v, depth, outs - b, W, ROWS, 1)


@loops(explicit=True, plain=True)
def multiply_tile(
    out: Pointer[T], x: Pointer[T], weight: Pointer[T], bias: Pointer[T], offsets: Pointer[i64],
    part: Pointer[i64], begin: Pointer[i64], first: Int, depth: Int, outs: Int, W: Static, ROWS: Static,
    COLUMNS: Static,
) -> None:  # fmt: skip
    """Compute the sums for a tile in registers, with `ROWS` of the `outs` channels and `COLUMNS` vectors."""
    told = fields(part, PART)
    index, found = as_pointer(told.index, i64), as_pointer(told.pieces, i64)
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
    steps = [minimum(M, outs - 1) * told.channel_stride for M in unrolled(ROWS)]  # missing channels repeat the last one
    for J in unrolled(COLUMNS):
        for i in range(index[first + J], index[first + J + 1]):
            lane, after, offset = [found[3 * i + K] for K in unrolled(3)]
            row = out + offset
            if HOST.vector_bytes != 64 and after - lane == W:  # with AVX-512, parts of vectors are written equally fast
                for M in unrolled(ROWS):
                    store(row + steps[M], sums[M * COLUMNS + J])
            else:
                numbers = lanes(i32, W)
                inside = (numbers >= i32(lane)) & (numbers < i32(after))
                for M in unrolled(ROWS):
                    store(row + steps[M], sums[M * COLUMNS + J], inside)


@loops(explicit=True, plain=True)
def interleave(
    target: Pointer[T], x: Pointer[T], block: Pointer[i64], channels: Int, part: Pointer[i64],
    sizes: Pointer[i64], W: Static, SPREAD: Static,
) -> None:  # fmt: skip
    """Interleave rows of a result whose phases were computed separately. `SPREAD`: `spread_w` if that is 1 or 2, else 0."""
    told, of_part, strides = fields(block, BLOCK), fields(part, PART), fields(sizes, STRIDES)
    samples, planes, rows, columns = told.samples, told.planes, told.rows, told.columns
    spread_d, spread_h, spread_w = [sizes[STRIDES.size + K] for K in unrolled(3)]
    phase_pitch = of_part.phase_pitch
    for n in range(samples):
        for c in range(channels):
            for z in range(planes):
                for y in range(rows):
                    phase = ((z % spread_d) * spread_h + y % spread_h) * spread_w
                    place = ((z // spread_d) * of_part.rows + y // spread_h) * samples + n
                    row = x + (phase * phase_pitch + c * of_part.channel_stride + place * of_part.columns)
                    to = target + (n * strides.sample + c * strides.channel + z * strides.plane + y * strides.row)
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
    """Store the first `count` numbers of a vector."""
    if count >= W:
        store(to, values)
    else:
        store(to, values, lanes(i32, W) < i32(count))

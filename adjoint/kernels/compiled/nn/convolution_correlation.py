"""The loops of the gradient of a convolution's weight, which is a sum over positions of gradients times inputs."""

from __future__ import annotations

from ....codegen.llvm.kernels import *
from .convolution_kernels import BLOCK, PACKING, STRIDES, store_first

SUMS = Struct(
    f"blocks ranges pitch packed_size ins outs group_pitch size vectors tail grad_pitch depth packing:{PACKING.size}"
)


@loops(explicit=True, plain=True)
def accumulate(
    totals: Pointer[T], grad: Pointer[T], x: Pointer[T], scratch: Pointer[T], plan: Pointer[i64],
    blocks: Pointer[i64], offsets: Pointer[i64], dealing: Pointer[i64], strides: Pointer[i64],
    grad_strides: Pointer[i64], start: Int, stop: Int, W: Static, PACK: Static, DEAL: Static, CORRELATE: Static,
) -> None:  # fmt: skip
    """Sum over the positions of each range of blocks, in a separate part of `totals` and of `scratch`.

    `PACK`, `DEAL`, `CORRELATE`: the kernels for these steps. `PACK` is None if `x` and `grad` are read in place.
    """
    told, steps, grad_steps = fields(plan, SUMS), fields(strides, STRIDES), fields(grad_strides, STRIDES)
    count, ranges, size, ins, outs, depth = told.blocks, told.ranges, told.size, told.ins, told.outs, told.depth
    for r in range(start, stop):
        total = totals + r * size
        for i in range(0, size, W):
            store_first(total + i, vector(T, W)(0), size - i, W)
        inputs = scratch + r * told.pitch
        gradients = inputs + told.packed_size
        for number in range(r * count // ranges, (r + 1) * count // ranges):
            at = blocks + number * BLOCK.size
            block = fields(at, BLOCK)
            group, groups = block.group, block.groups
            source = x + (block.sample * steps.sample + group * ins * steps.channel)
            given = grad + (block.sample * grad_steps.sample + group * outs * grad_steps.channel)
            if PACK is None:
                inputs = source
                gradients = given
            else:
                PACK(inputs, source, groups * ins, at, plan + SUMS.places["packing"], strides)
                DEAL(gradients, given, groups * outs, blocks + (count + number) * BLOCK.size, dealing, grad_strides)
            to = total + group * outs * depth
            CORRELATE(
                to, inputs, gradients, offsets, groups, depth, outs, told.group_pitch, told.grad_pitch, told.vectors, told.tail
            )  # fmt: skip


@loops(explicit=True, plain=True)
def correlate(
    total: Pointer[T], x: Pointer[T], grad: Pointer[T], offsets: Pointer[i64], groups: Int, depth: Int,
    outs: Int, group_pitch: Int, grad_pitch: Int, vectors: Int, tail: Int, W: Static, ROWS: Static,
    COLUMNS: Static, STRETCH: Static,
) -> None:  # fmt: skip
    """Add the sum over positions of gradients times inputs to `total`, for each output channel and tap.

    A tile of `ROWS` channels and `COLUMNS` taps stays in registers for `STRETCH` vectors of positions.
    """
    inside = lanes(i32, W) < i32(tail)
    for start in range(0, vectors + minimum(tail, 1), STRETCH):
        count = minimum(vectors - start, STRETCH)
        for g in range(groups):
            for b in range(0, outs, ROWS):
                channel = g * outs + b
                given = [
                    grad + ((g * outs + minimum(b + M, outs - 1)) * grad_pitch + start * W) for M in unrolled(ROWS)
                ]
                for k in range(0, depth, COLUMNS):
                    taps = [x + (g * group_pitch + offsets[k + J] + start * W) for J in unrolled(COLUMNS)]
                    sums = local(vector(T, W), ROWS * COLUMNS)
                    for R in unrolled(ROWS * COLUMNS):
                        sums[R] = vector(T, W)(0)
                    for at in range(0, count * W, W):
                        met = [load(taps[J] + at, W) for J in unrolled(COLUMNS)]
                        for M in unrolled(ROWS):
                            gradients = load(given[M] + at, W)
                            for J in unrolled(COLUMNS):
                                sums[M * COLUMNS + J] = fma(gradients, met[J], sums[M * COLUMNS + J])
                    if tail > 0 and start + STRETCH > vectors:
                        met = [load(taps[J] + count * W, W, inside) for J in unrolled(COLUMNS)]
                        for M in unrolled(ROWS):
                            gradients = load(given[M] + count * W, W, inside)
                            for J in unrolled(COLUMNS):
                                sums[M * COLUMNS + J] = fma(gradients, met[J], sums[M * COLUMNS + J])
                    for M in unrolled(ROWS):
                        if outs - b > M:
                            row = total + ((channel + M) * depth + k)
                            for J in unrolled(0, COLUMNS, W):
                                N = power_of_two(min(COLUMNS - J, W))
                                found = [sums[M * COLUMNS + J + C] for C in unrolled(min(COLUMNS - J, N))]
                                add_first(row + J, lane_sums(found, W, N), minimum(depth - k, COLUMNS) - J, N)


@loops(explicit=True, plain=True)
def add_up(
    out: Pointer[T], totals: Pointer[T], found: Pointer[i64], size: Int, count: Int, start: Int, stop: Int, W: Static
) -> None:
    """Compute some vectors of the sum of `count` rows of `size` numbers, and record non-finite numbers in `found`."""
    for v in range(start, stop):
        inside = lanes(i32, W) < i32(minimum(size - v * W, W))
        sums = load(totals + v * W, W, inside)
        for r in range(1, count):
            sums = sums + load(totals + (r * size + v * W), W, inside)
        store(out + v * W, sums, inside)
        if reduce_or(sums - sums != vector(T, W)(0)):
            found[0] = 1


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not less than this number."""
    return 1 << (number - 1).bit_length()


def halves(width: int, segment: int, second: bool) -> list[int]:
    """Return the lanes of the first or second halves of all segments of a vector."""
    return [start + lane + second * segment // 2 for start in range(0, width, segment) for lane in range(segment // 2)]


@loops(explicit=True, plain=True)
def lane_sums(vectors: Any, W: Static, N: Static) -> S:
    """Fold `N` vectors (a power of two) in pairs into one vector of their sums."""
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


@loops(explicit=True, plain=True)
def folded(a: S, b: S, W: Static, SEGMENT: Static) -> S:
    """Add the halves of the segments of two vectors, and return the sums in one, those of `a` first."""
    first, second = halves(W, SEGMENT, False), halves(W, SEGMENT, True)
    return shuffle(a, b, first + [W + lane for lane in first]) + shuffle(a, b, second + [W + lane for lane in second])


@loops(explicit=True, plain=True)
def add_first(to: Pointer[T], values: S, count: Int, N: Static) -> None:
    """Add the first `count` numbers of a vector of `N` to the numbers in memory."""
    if N == 1:
        if count > 0:
            to[0] += values[0]
    else:
        inside = lanes(i32, N) < i32(count)
        store(to, load(to, N, inside) + values, inside)

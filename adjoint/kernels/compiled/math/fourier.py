"""Discrete Fourier transforms along one dimension of large arrays, of lengths with no prime factors but 2, 3 and 5.

As many lines as a register holds are transformed side by side, so that every operation is one on whole registers. Each stage
(Stockham's) splits the lines by one factor and leaves its results in order. Lines that lie one behind another are transposed
on their way in and out. A real line is taken for a complex one of half as many elements, and what comes of it told apart.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy
from numpy import ndarray

from ....codegen.llvm.atomics import atomic_exchange, atomic_store
from ....codegen.llvm.host import HOST
from ....codegen.llvm.language import (
    Int,
    Pointer,
    Static,
    T,
    address,
    broadcast,
    fma,
    i64,
    lanes,
    load,
    local,
    loops,
    minimum,
    shuffle,
    store,
    type_of,
    unrolled,
    vector,
)  # fmt: skip
from ....codegen.llvm.launch import launch
from ...runtime.parallel import get_num_threads, scratch

_LONGEST = 1 << 13
"""Longer lines do not stay in the second-level cache while they are transformed."""

_APART = 5
"""Registers between two buffers, whose addresses would otherwise differ by a power of two, which caches confuse."""


@loops(flags="contract")
def times(x: Any, real: T, imaginary: T, signs: Any, W: Static) -> Any:
    """Complex numbers times one: `signs` is -1, 1, -1, 1, ..."""
    return fma(exchanged(x, W), signs * imaginary, x * real)


@loops
def exchanged(x: Any, W: Static) -> Any:
    """Imaginary parts in the places of real ones, and real ones in theirs."""
    return shuffle(x, x, [LANE ^ 1 for LANE in unrolled(W)])


@loops
def of_four(a: Any, b: Any, c: Any, d: Any, turn: Any, W: Static) -> Any:
    """The transform of four numbers. `turn` times exchanged parts is `i` times a number, or `-i` times it."""
    turned = exchanged(b - d, W) * turn
    return (a + c) + (b + d), (a - c) - turned, (a + c) - (b + d), (a - c) + turned


@loops
def of_eight(x: Any, turn: Any, W: Static) -> Any:
    """The transform of eight numbers, from those of the numbers of even and of odd index."""
    even = of_four(x[0], x[2], x[4], x[6], turn, W)
    odd = of_four(x[1], x[3], x[5], x[7], turn, W)
    first = (odd[1] - exchanged(odd[1], W) * turn) * _SQRT_HALF
    second = exchanged(odd[2], W) * turn
    third = (odd[3] + exchanged(odd[3], W) * turn) * _SQRT_HALF
    return (
        even[0] + odd[0], even[1] + first, even[2] - second, even[3] - third,
        even[0] - odd[0], even[1] - first, even[2] + second, even[3] + third,
    )  # fmt: skip


_SQRT_HALF = math.sqrt(0.5)


@loops(flags="contract")
def stage_of_powers(
    y: Pointer[T],
    x: Pointer[T],
    table: Pointer[T],
    n: Int,
    s: Int,
    step: Int,
    turn: Any,
    signs: Any,
    R: Static,
    W: Static,
) -> None:
    """Lines of `s * n` elements, of which `s` sequences of length `n` are left to transform, become `R * s` sequences.

    `R` is 4 or 8.
    """
    part = n // R
    row = s * W
    apart = part * row
    for p in range(part):
        source = x + p * row
        target = y + p * (R * row)
        roots = [table + (2 * K) * p * step for K in unrolled(R)]
        reals = [broadcast(roots[K][0], W) for K in unrolled(R)]
        imaginaries = [signs * roots[K][1] for K in unrolled(R)]
        for q in range(0, row, W):
            place = source + q
            values = [load(place + M * apart, W) for M in unrolled(R)]
            results = of_four(*values, turn, W) if R == 4 else of_eight(values, turn, W)
            to = target + q
            store(to, results[0])
            for K in unrolled(1, R):
                store(to + K * row, fma(exchanged(results[K], W), imaginaries[K], results[K] * reals[K]))


@loops(flags="contract")
def stage_of(
    y: Pointer[T], x: Pointer[T], table: Pointer[T], n: Int, s: Int, step: Int, signs: Any, R: Static, W: Static
) -> None:
    """As `stage_of_powers`, for any factor `R`."""
    part = n // R
    parts = local(vector(T, W), R)
    for p in range(part):
        for q in range(s):
            for M in unrolled(R):
                parts[M] = load(x + (q + s * (p + M * part)) * W, W)
            for K in unrolled(R):
                total = parts[0] + parts[1] if K == 0 else parts[0]
                for M in unrolled(2 if K == 0 else 1, R):
                    root = table + 2 * ((M * K) % R) * (part * step)
                    total = total + (parts[M] if K == 0 else times(parts[M], root[0], root[1], signs, W))
                twiddle = table + 2 * K * p * step
                store(y + (q + s * (R * p + K)) * W, times(total, twiddle[0], twiddle[1], signs, W))


@loops
def transpose_pairs(target: Pointer[T], source: Pointer[T], target_step: Int, source_step: Int, W: Static) -> None:
    """`W // 2` rows of `W // 2` complex numbers become columns."""
    rows = local(vector(T, W), W // 2)
    for ROW in unrolled(W // 2):
        rows[ROW] = load(source + ROW * source_step, W)
    STEP = 1
    for _ in unrolled(W.bit_length() - 2):
        for ROW in unrolled(W // 2):
            if ROW & STEP == 0:
                first = rows[ROW]
                second = rows[ROW + STEP]
                S = 2 * STEP
                rows[ROW] = shuffle(first, second, [W + LANE - S if LANE & S else LANE for LANE in unrolled(W)])
                rows[ROW + STEP] = shuffle(first, second, [W + LANE if LANE & S else LANE + S for LANE in unrolled(W)])
        STEP = STEP * 2
    for ROW in unrolled(W // 2):
        store(target + ROW * target_step, rows[ROW])


@loops
def read_lines(buffer: Pointer[T], x: Pointer[T], n: Int, step: Int, ROWS: Static, REAL: Static, W: Static) -> None:
    """`W // 2` lines of `n` complex numbers: their elements `j` side by side at `buffer + j * W`."""
    if ROWS:
        j = 0
        while j < n:
            at = minimum(j, n - W // 2)
            transpose_pairs(buffer + at * W, x + 2 * at, W, 2 * step, W)
            j += W // 2
    else:
        for j in range(n):
            if REAL:
                even = load(x + 2 * j * step, W // 2)
                odd = load(x + (2 * j + 1) * step, W // 2)
                store(buffer + j * W, shuffle(even, odd, [LANE // 2 + W // 2 * (LANE % 2) for LANE in unrolled(W)]))
            else:
                store(buffer + j * W, load(x + 2 * j * step, W))


@loops
def write_rows(out: Pointer[T], buffer: Pointer[T], n: Int, step: Int, W: Static) -> None:
    """Elements side by side become rows of `n`, which begin `step` complex numbers apart."""
    j = 0
    while j < n:
        at = minimum(j, n - W // 2)
        transpose_pairs(out + 2 * at, buffer + at * W, 2 * step, W, W)
        j += W // 2


@loops(flags="contract")
def write_complex(out: Pointer[T], z: Pointer[T], n: Int, step: Int, scale: T, ROWS: Static, W: Static) -> None:
    """The transforms of complex lines, times `scale`."""
    for k in range(n):
        value = load(z + k * W, W) * broadcast(scale, W)
        store(z + k * W if ROWS else out + 2 * k * step, value)
    if ROWS:
        write_rows(out, z, n, step, W)


@loops(flags="contract")
def write_real(
    out: Pointer[T], z: Pointer[T], spread: Pointer[T], table: Pointer[T], n: Int, kept: Int, step: Int, scale: T, signs: Any,
    ROWS: Static, W: Static,
) -> None:  # fmt: skip
    """The first `kept` numbers of the transforms of real lines, times `scale`.

    `z` is the transform of half as many complex numbers, made of the elements of even and of odd index. The transforms of both
    are told apart by their symmetry, which gives numbers `k` and `n / 2 - k` by the same products.
    """
    half, conjugate = broadcast(scale * T(0.5), W), T(0) - signs
    middle = n // 2
    for k in range(middle // 2 + 1):
        here = load(z + k * W, W)
        mirrored = load(z + (middle - k if k > 0 else 0) * W, W) * conjugate
        even = (here + mirrored) * half
        difference = (here - mirrored) * half
        turned = times(difference, table[2 * k + 1], T(0) - table[2 * k], signs, W)  # divided by i, turned by the root
        for value, at in [(even + turned, k), ((even - turned) * conjugate, middle - k)]:
            store(spread + at * W if ROWS else out + 2 * at * step, value)
            if at > 0 and at < middle and n - at < kept:
                store(spread + (n - at) * W if ROWS else out + 2 * (n - at) * step, value * conjugate)
    if ROWS:
        write_rows(out, spread, kept, step, W)


@loops(flags="contract", plain=True)
def transform_lines(
    out: Pointer[T], x: Pointer[T], buffers: Pointer[T], taken: Pointer[i64], n_buffers: Int, buffer_size: Int,
    table: Pointer[T], factors: Pointer[i64], n_factors: Int, n: Int, kept: Int, lines: Int, inner: Int, scale: T,
    direction: T, RADICES: Static, ROWS: Static, REAL: Static, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Blocks of lines. In rows, `lines` of them lie one behind another; in columns, `inner` side by side.

    There is a buffer for each thread: one takes any that is free, which `taken` says.
    """
    place = i64(0)
    while atomic_exchange(taken + place, 1) != 0:
        place = (place + 1) % n_buffers
    buffer = buffers + place * buffer_size
    signs = vector(T, W)(lanes(i64, W) % 2 * 2 - 1)
    blocks = (lines + W // 2 - 1) // (W // 2)
    size = n // 2 if REAL else n
    for block in range(start, stop):
        outer = block // blocks
        line = minimum((block - outer * blocks) * (W // 2), lines - W // 2)
        source = x + (line * n if ROWS else outer * n * inner + line) * (1 if REAL else 2)
        target = out + 2 * (line * kept if ROWS else outer * kept * inner + line)
        read_lines(buffer, source, size, size if ROWS else inner, ROWS, REAL, W)
        z = buffer
        other = buffer + (size + _APART) * W
        left = size
        s = 1
        step = 2 if REAL else 1
        for i in range(n_factors):
            factor = factors[i]
            for R in RADICES:
                if factor == R:
                    if R == 4 or R == 8:
                        stage_of_powers(other, z, table, left, s, step, signs * direction, signs, R, W)
                    else:
                        stage_of(other, z, table, left, s, step, signs, R, W)
            before = z
            z = other
            other = before
            left = left // factor
            s = s * factor
            step = step * factor
        if REAL:
            spread = buffer + 2 * (size + _APART) * W
            write_real(target, z, spread, table, n, kept, kept if ROWS else inner, scale, signs, ROWS, W)
        else:
            write_complex(target, z, n, n if ROWS else inner, scale, ROWS, W)
    atomic_store(taken + place, 0)


@functools.lru_cache(64)
def _factors(n: int) -> tuple[int, ...] | None:
    """8, 4, 2, 3 and 5 as often as their product gives `n`; None if it does not."""
    twos = (n & -n).bit_length() - 1
    eights, rest = divmod(twos, 3)
    # Each stage reads and writes everything, so there are to be few; two of 4 are faster than one of 8 and one of 2.
    found = [8] * (eights - 1) + [4, 4] if eights and rest == 1 else [8] * eights + [1 << rest] * (rest > 0)
    n >>= twos
    for factor in (3, 5):
        while n % factor == 0:
            n //= factor
            found.append(factor)
    return tuple(found) if n == 1 else None


@functools.lru_cache(64)
def _tables(n: int, size: int, forward: bool, dtype: Any) -> tuple[ndarray, ndarray]:
    """The powers of the root of unity of order `n`, and the factors of `size`."""
    angles = numpy.arange(n) * ((-2 if forward else 2) * math.pi / n)
    roots = numpy.stack((numpy.cos(angles), numpy.sin(angles)), 1).astype(dtype)
    return roots, numpy.array(_factors(size), numpy.int64)


def transform(x: ndarray, axis: int, forward: bool, scale: float, onesided: bool = False) -> Any:
    """The transform of `x`, real or complex, along `axis`, times `scale`; for real `x` and `onesided`, half of it.

    NotImplemented if there is no loop for it.
    """
    if x.dtype.char not in "fdFD" or not x.flags.c_contiguous or not x.size:
        return NotImplemented
    real = x.dtype.kind == "f"
    n = x.shape[axis]
    if real and n % 2:
        whole = transform(x.astype("F" if x.dtype.char == "f" else "D"), axis, forward, scale)
        if whole is NotImplemented or not onesided:
            return whole
        return numpy.ascontiguousarray(whole[(slice(None),) * axis + (slice(n // 2 + 1),)])
    plan = _plan(x.dtype, x.shape, axis, forward, onesided, HOST.vector_bytes)
    if plan is None:
        return NotImplemented
    out = numpy.empty(plan.shape, plan.result)
    threads = get_num_threads()
    buffers, taken = scratch("fourier", (threads * plan.memory,), plan.dtype), numpy.zeros(threads, numpy.int64)
    launch(
        plan.function, plan.blocks, plan.block_bytes, address(out), address(x), address(buffers), address(taken), threads,
        plan.memory, address(plan.table), address(plan.order), *plan.arguments, scale, plan.direction,
    )  # fmt: skip
    return out


class _Plan(NamedTuple):
    """How arrays of one shape are transformed."""

    function: Any
    shape: tuple[int, ...]
    result: str
    dtype: numpy.dtype[Any]
    table: ndarray
    order: ndarray
    arguments: tuple[int, ...]
    direction: float
    memory: int
    blocks: int
    block_bytes: int


@functools.lru_cache(256)
def _plan(
    dtype: Any, shape: tuple[int, ...], axis: int, forward: bool, onesided: bool, vector_bytes: int
) -> _Plan | None:
    real = dtype.kind == "f"
    dtype = numpy.dtype(dtype.char.lower())
    n = shape[axis]
    width = vector_bytes // dtype.itemsize
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    rows = inner == 1
    lines = outer if rows else inner
    size = n // 2 if real else n
    factors = _factors(size) if width >= 4 and lines >= width // 2 and width // 2 <= size <= _LONGEST else None
    if factors is None:
        return None
    kept = n // 2 + 1 if onesided else n
    table, order = _tables(n, size, forward, dtype)
    return _Plan(
        transform_lines.compiled(T=type_of(dtype), RADICES=tuple(sorted(set(factors))), ROWS=rows, REAL=real, W=width),
        (*shape[:axis], kept, *shape[axis + 1 :]),
        "F" if dtype.char == "f" else "D",
        dtype,
        table,
        order,
        (len(order), n, kept, lines, inner),
        1.0 if forward else -1.0,
        (2 * (size + _APART) + (n if real else 0) + 1) * width,
        (1 if rows else outer) * -(-lines // (width // 2)),
        4 * n * width * dtype.itemsize,
    )

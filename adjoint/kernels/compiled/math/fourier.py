"""Discrete Fourier transforms along one dimension of large arrays whose lengths have no prime factors except 2, 3 and 5.

A register holds one number of each of several lines, so these lines are transformed side by side. Real parts are in one
register and imaginary parts in the next, so no data move within a register. Each stage (Stockham's algorithm) splits
the lines by one factor and leaves its results in order. Contiguous lines are transposed when they are read and written.
A real line is treated as a complex line with half as many elements, and the results are separated. The inverse
transform exchanges real and imaginary parts, which costs nothing here.
"""

from __future__ import annotations

from ....codegen.llvm.atomics import atomic_exchange, atomic_store
from ....codegen.llvm.kernels import *
from ....codegen.llvm.vectors import transposed
from ...runtime.costs import LARGE, SECOND_CACHE
from ...runtime.parallel import get_num_threads, scratch

AHEAD = 32
"""The prefetch distance of loops in elements."""

_APART = 5
"""The number of registers between two buffers, whose addresses would else conflict in the cache."""


@loops(flags="contract")
def times(x: Any, real: Any, imaginary: Any) -> Any:
    """Multiply two complex numbers."""
    return x[0] * real - x[1] * imaginary, x[0] * imaginary + x[1] * real


@loops
def plus(x: Any, y: Any) -> Any:
    """Return the sum of complex numbers."""
    return x[0] + y[0], x[1] + y[1]


@loops
def minus(x: Any, y: Any) -> Any:
    """Return the difference of complex numbers."""
    return x[0] - y[0], x[1] - y[1]


@loops
def of_four(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return the transform of four numbers."""
    even, odd, first, second = plus(a, c), plus(b, d), minus(a, c), minus(b, d)
    turned = second[1], -second[0]  # times -i
    return plus(even, odd), plus(first, turned), minus(even, odd), minus(first, turned)


@loops
def of_eight(x: Any) -> Any:
    """Return the transform of eight numbers from the transforms of the numbers with even and with odd index."""
    even, odd = of_four(x[0], x[2], x[4], x[6]), of_four(x[1], x[3], x[5], x[7])
    turned = [
        odd[0],
        ((odd[1][0] + odd[1][1]) * _SQRT_HALF, (odd[1][1] - odd[1][0]) * _SQRT_HALF),
        (odd[2][1], -odd[2][0]),
        ((odd[3][1] - odd[3][0]) * _SQRT_HALF, (odd[3][0] + odd[3][1]) * -_SQRT_HALF),
    ]
    return [plus(even[K], turned[K]) for K in unrolled(4)] + [minus(even[K], turned[K]) for K in unrolled(4)]


_SQRT_HALF = math.sqrt(0.5)


@loops
def load_number(place: Pointer[T], W: Static) -> Any:
    """Load the real part and the imaginary part, which are adjacent."""
    return load(place, W), load(place + W, W)


@loops
def store_number(place: Pointer[T], x: Any, W: Static) -> None:
    """Store a number in the form that `load_number` reads."""
    store(place, x[0])
    store(place + W, x[1])


@loops(flags="contract")
def stage_of_powers(
    y: Pointer[T], x: Pointer[T], table: Pointer[T], n: Int, s: Int, step: Int, R: Static, W: Static
) -> None:
    """Compute one step. The `s` sequences of length `n` in each line become `R * s` sequences. `R` is 4 or 8."""
    part = n // R
    row = s * (2 * W)
    apart = part * row
    for p in range(part):
        source, target = x + p * row, y + p * (R * row)
        roots = [table + (2 * K) * p * step for K in unrolled(R)]
        reals = [broadcast(roots[K][0], W) for K in unrolled(R)]
        imaginaries = [broadcast(roots[K][1], W) for K in unrolled(R)]
        for q in range(0, row, 2 * W):
            values = [load_number(source + q + M * apart, W) for M in unrolled(R)]
            results = of_four(*values) if R == 4 else of_eight(values)
            store_number(target + q, results[0], W)
            for K in unrolled(1, R):
                store_number(target + q + K * row, times(results[K], reals[K], imaginaries[K]), W)


@loops(flags="contract")
def stage_of(y: Pointer[T], x: Pointer[T], table: Pointer[T], n: Int, s: Int, step: Int, R: Static, W: Static) -> None:
    """Do the same as `stage_of_powers` for any factor `R`."""
    part = n // R
    row = s * (2 * W)
    for p in range(part):
        for q in range(0, row, 2 * W):
            parts = [load_number(x + q + (p + M * part) * row, W) for M in unrolled(R)]
            for K in unrolled(R):
                total = parts[0]
                for M in unrolled(1, R):
                    root = table + 2 * ((M * K) % R) * (part * step)
                    turned = parts[M] if K == 0 else times(parts[M], broadcast(root[0], W), broadcast(root[1], W))
                    total = plus(total, turned)
                twiddle = table + 2 * K * p * step
                place = y + q + (R * p + K) * row
                store_number(place, times(total, broadcast(twiddle[0], W), broadcast(twiddle[1], W)), W)


@loops
def read_lines(
    buffer: Pointer[T], x: Pointer[T], n: Int, step: Int, first: Int, ROWS: Static, REAL: Static, W: Static
) -> None:
    """Read `W` lines of `n` complex numbers, whose real parts go `first` elements after the start of a number.

    Lines in rows are `step` numbers apart. In columns, lines are adjacent, and their next numbers `step` later.
    """
    if ROWS:
        j = 0
        while j < n:
            at = minimum(j, n - W // 2)
            for ROW in unrolled(W):
                prefetch(x + 2 * (at + ROW * step) + AHEAD)
            columns = transposed([load(x + 2 * (at + ROW * step), W) for ROW in unrolled(W)], W)
            for COLUMN in unrolled(W):
                store(
                    buffer + at * (2 * W) + (COLUMN // 2 * (2 * W) + COLUMN % 2 * (W - 2 * first) + first),
                    columns[COLUMN],
                )
            j += W // 2
    else:
        for j in range(n):
            if REAL:
                real, imaginary = load(x + 2 * j * step, W), load(x + (2 * j + 1) * step, W)
            else:
                low, high = load(x + 2 * j * step, W), load(x + 2 * j * step + W, W)
                real = shuffle(low, high, [2 * LANE for LANE in unrolled(W)])
                imaginary = shuffle(low, high, [2 * LANE + 1 for LANE in unrolled(W)])
            store(buffer + j * (2 * W) + first, real)
            store(buffer + j * (2 * W) + (W - first), imaginary)


@loops
def write_rows(out: Pointer[T], buffer: Pointer[T], n: Int, step: Int, first: Int, W: Static) -> None:
    """Convert numbers that are side by side to rows of `n` numbers that begin `step` complex numbers apart."""
    j = 0
    while j < n:
        at = minimum(j, n - W // 2)
        columns = [
            load(buffer + at * (2 * W) + (COLUMN // 2 * (2 * W) + COLUMN % 2 * (W - 2 * first) + first), W)
            for COLUMN in unrolled(W)
        ]
        rows = transposed(columns, W)
        for ROW in unrolled(W):
            prefetch(out + 2 * (at + ROW * step) + AHEAD, written=True)
            store(out + 2 * (at + ROW * step), rows[ROW])
        j += W // 2


@loops
def write_number(out: Pointer[T], x: Any, W: Static) -> None:
    """Write a number of each line, side by side."""
    for HALF in unrolled(2):
        places = [LANE // 2 + HALF * W // 2 + LANE % 2 * W for LANE in unrolled(W)]
        store(out + HALF * W, shuffle(x[0], x[1], places))


@loops(flags="contract")
def write_complex(
    out: Pointer[T], z: Pointer[T], n: Int, step: Int, first: Int, scale: T, ROWS: Static, W: Static
) -> None:
    """Write the transforms of complex lines, times `scale`."""
    for k in range(n):
        place = z + k * (2 * W)
        real, imaginary = (
            load(place + first, W) * broadcast(scale, W),
            load(place + (W - first), W) * broadcast(scale, W),
        )
        if ROWS:
            store(place + first, real)
            store(place + (W - first), imaginary)
        else:
            write_number(out + 2 * k * step, (real, imaginary), W)
    if ROWS:
        write_rows(out, z, n, step, first, W)


@loops(flags="contract")
def write_real(
    out: Pointer[T], z: Pointer[T], spread: Pointer[T], table: Pointer[T], n: Int, kept: Int, step: Int, scale: T, direction: T,
    ROWS: Static, W: Static,
) -> None:  # fmt: skip
    """Write the first `kept` numbers of the transforms of real lines, times `scale`, or their conjugates if `direction` is -1.

    `z` is the transform of half as many complex numbers, whose parts are the elements with even and with odd index.
    Their symmetry separates the two transforms. The numbers `k` and `n / 2 - k` are computed from the same products.
    """
    half, conjugate = broadcast(scale * T(0.5), W), broadcast(direction, W)
    middle = n // 2
    for k in range(middle // 2 + 1):
        here, mirrored = load_number(z + k * (2 * W), W), load_number(z + (middle - k if k > 0 else 0) * (2 * W), W)
        even = (here[0] + mirrored[0]) * half, (here[1] - mirrored[1]) * half
        difference = (here[0] - mirrored[0]) * half, (here[1] + mirrored[1]) * half
        # Divide by i, and multiply by the root of unity.
        turned = times(difference, broadcast(table[2 * k + 1], W), broadcast(-table[2 * k], W))
        sums, differences = plus(even, turned), minus(even, turned)
        for value, at in [(sums, k), ((differences[0], -differences[1]), middle - k)]:
            real, imaginary = value[0], value[1] * conjugate
            if ROWS:
                store_number(spread + at * (2 * W), (real, imaginary), W)
            else:
                write_number(out + 2 * at * step, (real, imaginary), W)
            if at > 0 and at < middle and n - at < kept:
                if ROWS:
                    store_number(spread + (n - at) * (2 * W), (real, -imaginary), W)
                else:
                    write_number(out + 2 * (n - at) * step, (real, -imaginary), W)
    if ROWS:
        write_rows(out, spread, kept, step, i64(0), W)


@loops(flags="contract", plain=True)
def transform_lines(
    out: Pointer[T], x: Pointer[T], buffers: Pointer[T], taken: Pointer[i64], n_buffers: Int, buffer_size: Int,
    table: Pointer[T], factors: Pointer[i64], n_factors: Int, n: Int, kept: Int, lines: Int, inner: Int, scale: T,
    direction: T, RADICES: Static, FROM_ROWS: Static, TO_ROWS: Static, REAL: Static, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Transform blocks of lines. In rows, `lines` lines follow one another. In columns, `inner` lines are side by side.

    A thread takes any free buffer, which `taken` records.
    """
    place = i64(0)
    while atomic_exchange(taken + place, 1) != 0:
        place = (place + 1) % n_buffers
    buffer = buffers + place * buffer_size
    blocks = (lines + W - 1) // W
    size = n // 2 if REAL else n
    first = i64(0)
    if not REAL:
        first = i64(W) if direction < 0 else i64(0)
    for block in range(start, stop):
        outer = block // blocks
        line = minimum((block - outer * blocks) * W, lines - W)
        source = x + (line * n if FROM_ROWS else outer * n * inner + line) * (1 if REAL else 2)
        target = out + 2 * ((outer * lines + line) * kept if TO_ROWS else outer * kept * inner + line)
        read_lines(buffer, source, size, size if FROM_ROWS else inner, first, FROM_ROWS, REAL, W)
        z = buffer
        other = buffer + (size + _APART) * (2 * W)
        left = size
        s = 1
        step = 2 if REAL else 1
        for i in range(n_factors):
            factor = factors[i]
            for R in RADICES:
                if factor == R:
                    if R == 4 or R == 8:
                        stage_of_powers(other, z, table, left, s, step, R, W)
                    else:
                        stage_of(other, z, table, left, s, step, R, W)
            before = z
            z = other
            other = before
            left = left // factor
            s = s * factor
            step = step * factor
        if REAL:
            spread = buffer + 2 * (size + _APART) * (2 * W)
            write_real(target, z, spread, table, n, kept, kept if TO_ROWS else inner, scale, direction, TO_ROWS, W)
        else:
            write_complex(target, z, n, n if TO_ROWS else inner, first, scale, TO_ROWS, W)
    atomic_store(taken + place, 0)


@functools.lru_cache(64)
def _factors(n: int) -> tuple[int, ...] | None:
    """Return factors 8, 4, 2, 3 and 5, some of them repeatedly, whose product is `n`, or None if that is impossible."""
    twos = (n & -n).bit_length() - 1
    eights, rest = divmod(twos, 3)
    # Each stage reads and writes everything, so there should be few. Two stages of 4 are faster than one of 8 and one of 2.
    found = [8] * (eights - 1) + [4, 4] if eights and rest == 1 else [8] * eights + [1 << rest] * (rest > 0)
    n >>= twos
    for factor in (3, 5):
        while n % factor == 0:
            n //= factor
            found.append(factor)
    return tuple(found) if n == 1 else None


@functools.lru_cache(64)
def _tables(n: int, size: int, dtype: Any) -> tuple[ndarray, ndarray]:
    """Return the powers of the root of unity of order `n`, and the factors of `size`."""
    angles = numpy.arange(n) * (-2 * math.pi / n)
    roots = numpy.stack((numpy.cos(angles), numpy.sin(angles)), 1).astype(dtype)
    return roots, numpy.array(_factors(size), numpy.int64)


def transform(
    x: ndarray, axis: int, forward: bool, scale: float, onesided: bool = False, innermost: bool = False
) -> Any:
    """Return the transform of an array along `axis`, times `scale`, or (`onesided`) half of it for real arrays.

    `innermost`: whether the axis becomes the last axis.
    """
    if x.dtype.char not in "fdFD" or not x.flags.c_contiguous or not x.size:
        return NotImplemented
    if x.dtype.kind == "f" and x.shape[axis] % 2:
        return NotImplemented
    run = _plan(x.dtype, x.shape, axis, forward, onesided, innermost, HOST.vector_bytes)
    return NotImplemented if run is None else run(x, scale)


@functools.lru_cache(256)
def _plan(
    dtype: Any, shape: tuple[int, ...], axis: int, forward: bool, onesided: bool, innermost: bool, vector_bytes: int
) -> Callable[[ndarray, float], ndarray] | None:
    """Return the function that transforms arrays of one shape, and multiplies them by a number."""
    real = dtype.kind == "f"
    dtype = numpy.dtype(dtype.char.lower())
    n = shape[axis]
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    rows = inner == 1
    lines = outer if rows else inner
    size = n // 2 if real else n
    width = vector_bytes // dtype.itemsize
    while width > 4 and (width > lines or 8 * size * width * dtype.itemsize > SECOND_CACHE):
        width //= 2
    # Longer lines leave the second-level cache.
    factors = _factors(size) if 4 <= width <= lines and width // 2 <= size <= LARGE else None
    if factors is None:
        return None
    kept = n // 2 + 1 if onesided else n
    table, order = _tables(n, size, dtype)
    given = {"FROM_ROWS": rows, "TO_ROWS": rows or innermost, "REAL": real, "W": width}
    function = transform_lines.compiled(T=type_of(dtype), RADICES=tuple(sorted(set(factors))), **given)
    result = (*shape[:axis], *shape[axis + 1 :], kept) if innermost else (*shape[:axis], kept, *shape[axis + 1 :])
    memory = (2 * (size + _APART) + (n if real else 0) + 1) * (2 * width)
    blocks, block_bytes = (1 if rows else outer) * -(-lines // width), 8 * n * width * dtype.itemsize
    arguments = memory, table, order, len(order), n, kept, lines, inner

    def run(x: ndarray, scale: float) -> ndarray:
        out, threads = numpy.empty(result, dtype.char.upper()), get_num_threads()
        buffers, taken = scratch("fourier", (threads * memory,), dtype), numpy.zeros(threads, numpy.int64)
        launch(
            function, blocks, block_bytes, out, x, buffers, taken, threads, *arguments, scale, 1.0 if forward else -1.0
        )
        return out

    return run

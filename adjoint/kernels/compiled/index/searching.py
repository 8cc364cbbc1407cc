"""Find positions in sorted sequences by bisection, for many values at once."""

from __future__ import annotations

from ....codegen.llvm.kernels import *

_TOGETHER = 4
"""The number of vectors of values that are searched together, because each vector waits for memory after each step."""


@loops
def goes_before(element: T, value: T, RIGHT: Static) -> boolean:
    """Return whether an element of a sequence precedes a value. All elements precede NaN."""
    return not (element > value) if RIGHT else not (element >= value)


@loops(explicit=True, plain=True, copied="sequences values")
def search(
    places: Pointer[i64], sequences: Pointer[T], values: Pointer[T], length: Int, count: Int, shared: Int, RIGHT: Static,
    W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Find the positions of values in sequences of `length`, one for each row of `count` values or one `shared` by all.

    The steps that halve the range are the same for all values. The last vector overlaps the one before.
    """
    low = local(vector(i64, W), _TOGETHER)
    value = local(vector(T, W), _TOGETHER)
    per_row = (count + _TOGETHER * W - 1) // (_TOGETHER * W)
    for piece in range(start, stop):
        row = piece // per_row
        first = minimum((piece - row * per_row) * (_TOGETHER * W), count - _TOGETHER * W)
        begin = row * count + first
        sequence = sequences + (0 if shared != 0 else row * length)
        for K in unrolled(_TOGETHER):
            low[K] = vector(i64, W)(0)
            value[K] = load(values + (begin + K * W), W)
        left = length
        while left > 1:
            half = left // 2
            for K in unrolled(_TOGETHER):
                probe = gather(sequence + (half - 1), low[K])
                low[K] = where(goes_before(probe, value[K], RIGHT), low[K] + broadcast(half, W), low[K])
            left = left - half
        for K in unrolled(_TOGETHER):
            last = gather(sequence, low[K])
            one = vector(i64, W)(1)
            store(places + (begin + K * W), where(goes_before(last, value[K], RIGHT), low[K] + one, low[K]))


def places(sequences: ndarray, values: ndarray, right: bool) -> Any:
    """Compute `kernels.reduce.counting.searchsorted` for sequences without NaN."""
    width = HOST.vector_bytes // 8
    shared = sequences.ndim == 1
    count = values.size if shared else values.shape[-1]
    if count < _TOGETHER * width or not sequences.size or not values.size:
        return NotImplemented
    result = numpy.empty(values.shape, numpy.int64)
    length, group = sequences.shape[-1], _TOGETHER * width
    return search.run(
        values.size // count * -(-count // group), 64 * group * length.bit_length(),
        result, sequences, values, length, count, int(shared), RIGHT=right, W=width,
    )  # fmt: skip


@loops(plain=True)
def count_in_bins(
    counts: Pointer[i64], values: Pointer[T], edges: Pointer[T], bins: Int, n: Int, start: Int, stop: Int
) -> None:  # fmt: skip
    """Count the values between ascending edges. Each bin includes its lower edge, and the last bin both of its edges."""
    for _ in range(start, stop):
        for i in range(bins):
            counts[i] = 0
        for i in range(n):
            value = values[i]
            if (value >= edges[0]) & (value <= edges[bins]):
                bin = i64(0)
                left = bins
                while left > 1:
                    half = left // 2
                    bin = bin + half if edges[bin + half] <= value else bin
                    left = left - half
                counts[bin] += 1


def histogram(values: ndarray, edges: ndarray) -> Any:
    """Plan the numbers of values in bins."""
    kind, bins, n = FLOATS(values.dtype), len(edges) - 1, values.size
    if kind is None or not values.flags.c_contiguous or edges.dtype != values.dtype:
        return NotImplemented
    function = count_in_bins.compiled(T=kind)

    def into(out: Sequence[ndarray], values: ndarray, edges: ndarray) -> None:
        launch(function, 1, 64 * n, *out, values, edges, bins, n)

    return Plan([Memory((bins,), numpy.dtype(numpy.int64))], into=into)

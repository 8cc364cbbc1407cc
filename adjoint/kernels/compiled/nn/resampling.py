"""Weighted sums of neighbouring elements along one dimension, with separate weights for each new element."""

from __future__ import annotations

from ....codegen.llvm.kernels import *


@loops(explicit=True, plain=True, T=FLOATS, copied="x")
def sum_rows(
    out: Pointer[T], x: Pointer[T], places: Pointer[i64], shares: Pointer[T], old: Int, new: Int, K: Static, W: Static,
    start: Int, stop: Int,
) -> None:  # fmt: skip
    """Convert rows of `old` elements to rows of `new` elements. `places` and `shares` have the shape (K, new)."""
    for row in range(start, stop):
        source = x + row * old
        target = out + row * new
        i = 0
        while i + W <= new:
            total = vector(T, W)(0)
            for TAP in unrolled(K):
                total = fma(load(shares + (TAP * new + i), W), gather(source, load(places + (TAP * new + i), W)), total)
            store(target + i, total)
            i += W
        while i < new:
            rest = T(0)
            for TAP in unrolled(K):
                rest = fma(shares[TAP * new + i], source[places[TAP * new + i]], rest)
            target[i] = rest
            i += 1


@loops(explicit=True, plain=True, T=FLOATS, copied="x")
def sum_columns(
    out: Pointer[T], x: Pointer[T], places: Pointer[i64], shares: Pointer[T], old: Int, new: Int, inner: Int,
    K: Static, W: Static, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Convert (outer, old, inner) to (outer, new, inner), row by row. `places` and `shares` have the shape (K, new)."""
    for row in range(start, stop):
        matrix = row // new
        i = row - matrix * new
        source = x + matrix * old * inner
        target = out + row * inner
        j = 0
        while j + W <= inner:
            total = vector(T, W)(0)
            for TAP in unrolled(K):
                total = fma(
                    broadcast(shares[TAP * new + i], W), load(source + (places[TAP * new + i] * inner + j), W), total
                )
            store(target + j, total)
            j += W
        while j < inner:
            rest = T(0)
            for TAP in unrolled(K):
                rest = fma(shares[TAP * new + i], source[places[TAP * new + i] * inner + j], rest)
            target[j] = rest
            j += 1


def sums(x: ndarray, axis: int, places: ndarray, shares: ndarray) -> Any:
    """Compute new element `i` along `axis` as the sum over `k` of `shares[k, i]` times element `places[k, i]`."""
    taps, new = shares.shape
    if taps > 16 or not x.size:  # the weights are unrolled
        return NotImplemented
    old = x.shape[axis]
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    out = numpy.empty((*x.shape[:axis], new, *x.shape[axis + 1 :]), x.dtype)
    arrays = out, x, places, shares
    if inner == 1:
        return sum_rows.run(outer, (old + (taps + 1) * new) * x.itemsize, *arrays, old, new, K=taps)
    return sum_columns.run(outer * new, (taps + 1) * inner * x.itemsize, *arrays, old, new, inner, K=taps)

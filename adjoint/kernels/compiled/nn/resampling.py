"""Weighted sums of neighbouring elements along one dimension, with separate weights for each new element."""

from __future__ import annotations

from ....codegen.acceleration import LOOPS
from ....codegen.llvm.calls import not_row_major
from ....codegen.llvm.kernels import *
from ...runtime.costs import PIECEWISE, SHORT
from ...runtime.floating import compute_dtype


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


def _along(x: ndarray, axis: int, places: ndarray, shares: ndarray, copied: Sequence[str]) -> Plan:
    """Return the plan that sums neighbours along one dimension.

    New element `i` along `axis` is the sum over `k` of `shares[k, i]` times element `places[k, i]`.
    """
    taps, new = shares.shape
    old, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    outer = math.prod(x.shape[:axis])
    result = Memory((*x.shape[:axis], new, *x.shape[axis + 1 :]), x.dtype)
    static = {"T": type_of(x.dtype), "K": taps, "W": HOST.vector_bytes // x.itemsize}
    if inner == 1:
        rows, row_bytes, numbers = outer, (old + (taps + 1) * new) * x.itemsize, [old, new]
    else:
        rows, row_bytes, numbers = outer * new, (taps + 1) * inner * x.itemsize, [old, new, inner]
    function = (sum_rows if inner == 1 else sum_columns).compiled(**static)
    call = NativeCall(function, rows, row_bytes, [places, shares, *numbers], ["x"], [result], copied=copied)
    return call.plan(["x"])


def passes(array: ndarray, passes: Sequence[tuple[int, Any]], otherwise: Callable[..., ndarray]) -> Any:
    """Return the plan of weighted sums along one dimension after another. `otherwise` computes what loops do not compute."""
    dtype, kind = array.dtype, compute_dtype(array.dtype)
    if kind.char not in "fd" or not dtype.isnative:
        return NotImplemented
    array = array if dtype == kind else array.astype(kind)
    plans: list[Plan] = []
    copied = not_row_major(x=array)
    for axis, weights in passes:
        shape = (*array.shape[:axis], len(weights.shares), *array.shape[axis + 1 :])
        if weights.shares.shape[1] > SHORT or not LOOPS.takes(array.size, PIECEWISE):  # the weights are unrolled
            plans.append(Plan((), run=functools.partial(otherwise, axis=axis, weights=weights)))
            copied = ["x"]
        else:
            places, shares = weights.by_tap(kind)
            plans.append(_along(array, axis, places, shares, copied))
            copied = []
        array = numpy.empty(shape, kind)
    if not any(plan.call for plan in plans):
        return NotImplemented

    @recordable
    def run(array: Any, *_: Any) -> Any:
        result = array if dtype is kind else array.astype(kind)
        for plan in plans:
            result = plan.compute(result)
        result = result if dtype is kind else result.astype(dtype)
        return numpy.ascontiguousarray(result) if copied else result

    return Plan([Memory(array.shape, dtype)], run=run)

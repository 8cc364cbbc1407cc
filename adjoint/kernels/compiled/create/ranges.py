"""Numbers at equal distances, rounded as in PyTorch."""

from __future__ import annotations

from ....codegen.llvm.external import c_function
from ....codegen.llvm.kernels import *


@loops(explicit=True, plain=True, T=FLOATS)
def fill_blocks(
    out: Pointer[T], first: f64, step: f64, size: Int, whole: Int, W: Static, start: Int, stop: Int
) -> None:
    """Compute `first + i * step`: blocks of `W` numbers from a rounded first number, and single numbers from index `whole` on."""
    lane = vector(f64, W)(lanes(i64, W))
    offsets = lane * broadcast(step, W)
    for block in range(start, stop):
        begin = block * W
        if begin < whole:
            base = broadcast(f64(T(fma(f64(begin), step, first))), W)
            numbers = fma(lane, broadcast(step, W), base) if T is f64 else base + offsets
            store(out + begin, vector(T, W)(numbers))
        else:
            for i in range(begin, minimum(begin + W, size)):
                out[i] = T(fma(f64(i), step, first))


@loops(explicit=True, plain=True, T=FLOATS)
def fill_from_ends(out: Pointer[T], first: T, last: T, size: Int, W: Static, start: Int, stop: Int) -> None:
    """Compute numbers at equal distances: the first half from the first number, and the second from the last."""
    step = (last - first) / T(size - 1)
    half = size // 2
    i = start
    while i + W <= stop:
        place = lanes(i64, W) + broadcast(i, W)
        up = fma(vector(T, W)(place), broadcast(step, W), broadcast(first, W))
        down = fma(vector(T, W)(broadcast(size - 1, W) - place), broadcast(T(0) - step, W), broadcast(last, W))
        store(out + i, where(place < broadcast(half, W), up, down))
        i += W
    while i < stop:
        out[i] = fma(T(i), step, first) if i < half else fma(T(size - 1 - i), T(0) - step, last)
        i += 1


def blocks(out: ndarray, first: float, step: float, width: int) -> Any:
    """Write `first + i * step`, computed in blocks of `width`."""
    whole = out.size - out.size % (2 * width)
    return fill_blocks.run(-(-out.size // width), 2 * width * 8, out, first, step, out.size, whole, W=width)


def from_both_ends(out: ndarray, first: float, last: float) -> Any:
    """Write numbers at equal distances from `first` to `last`."""
    if out.itemsize == 4 and out.size > 1 << 24:  # float32 does not represent all larger integers
        return NotImplemented
    return fill_from_ends.run(out.size, 16, out, first, last, out.size, W=HOST.vector_bytes // 8)


c_pow = c_function("pow", f64, f64, f64)


@loops(explicit=True, plain=True, T=FLOATS)
def fill_powers(out: Pointer[T], base: f64, first: T, last: T, size: Int, start: Int, stop: Int) -> None:
    """Compute powers of `base`: the first half from the first exponent, and the second half from the last."""
    step = f64((last - first) / T(size - 1)) if size > 1 else 0.0
    for i in range(start, stop):
        power = f64(first) + step * f64(i) if i < size // 2 else f64(last) - step * f64(size - 1 - i)
        out[i] = T(c_pow(base, power))


def powers(out: ndarray, base: float, first: float, last: float) -> Any:
    """Write powers of `base` with exponents at equal distances from `first` to `last`."""
    return fill_powers.run(out.size, 256, out, base, first, last, out.size)

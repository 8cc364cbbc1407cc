"""The next floating-point number in the direction of another number. Numbers of one sign have the same order as their bits."""

from __future__ import annotations

from ....codegen.llvm.kernels import *


@loops(T=FLOATS)
def next_after(out: Pointer[T], x: Pointer[T], y: Pointer[T], start: Int, stop: Int) -> None:
    """Return, for each element of `x`, the next number in the direction of the element of `y`."""
    for k in vectorized(start, stop):
        a, b = x[k], y[k]
        place = bits(a)
        grows = (b > a) == (a > 0)
        moved = from_bits(where(grows, place + 1, place - 1), T)
        moved = where(a == 0, copysign(from_bits(place - place + 1, T), b), moved)
        moved = where(a == b, b, moved)
        out[k] = where((a == a) & (b == b), moved, a + b)


def nextafter(self: ndarray, other: ndarray) -> Any:
    """Compute `numpy.nextafter`."""
    if self.shape != other.shape:
        return NotImplemented
    return next_after.run(self.size, 3 * self.itemsize, numpy.empty(self.shape, self.dtype), self, other)

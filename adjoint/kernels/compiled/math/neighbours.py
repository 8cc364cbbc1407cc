"""The next floating-point number in the direction of another number. Numbers of one sign have the same order as their bits."""

from __future__ import annotations

from ....codegen.llvm.kernels import *


@loops
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
    """Compute `numpy.nextafter`. Return NotImplemented if there is no loop for the dtype."""
    if self.dtype.char not in "fd" or self.dtype != other.dtype or self.shape != other.shape or not self.size:
        return NotImplemented
    if not self.flags.c_contiguous or not other.flags.c_contiguous:
        return NotImplemented
    out = numpy.empty(self.shape, self.dtype)
    launch(next_after.compiled(T=type_of(self.dtype)), self.size, 3 * self.itemsize, out, self, other)
    return out

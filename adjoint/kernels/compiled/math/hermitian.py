"""Inverse onesided transforms of real numbers: a complex transform of half the length computes pairs of numbers.

With X the transform of n = 2 m numbers, 0 <= k < m and Y[k] = conj(X[m - k]), the transform of the pairs is
X[k] + Y[k] + i (X[k] - Y[k]) exp(2 pi i k / n) (W. Press et al., "Numerical Recipes", section 12.3).
"""

from __future__ import annotations

from ....codegen.llvm.kernels import *


@loops
def fold(
    out: Pointer[T], x: Pointer[T], turns: Pointer[T], m: Int, length: Int, scale: T, start: Int, stop: Int
) -> None:
    """Fold rows of `length` complex numbers to rows of `m`.

    The imaginary parts of the first number and of number `m` are ignored.
    """
    for row in range(start, stop):
        given = x + row * length * 2
        target = out + row * m * 2
        for k in vectorized(m):
            real, imag = given[2 * k], where(k == 0, T(0), given[2 * k + 1])
            other_real, other_imag = given[2 * (m - k)], where(k == 0, T(0), -given[2 * (m - k) + 1])
            below_real, below_imag = real - other_real, imag - other_imag
            cosine, sine = turns[2 * k], turns[2 * k + 1]
            target[2 * k] = (real + other_real - (below_real * sine + below_imag * cosine)) * scale
            target[2 * k + 1] = (imag + other_imag + (below_real * cosine - below_imag * sine)) * scale


@functools.lru_cache(8)
def _turns(m: int, dtype: Any) -> ndarray:
    return numpy.exp(1j * math.pi / m * numpy.arange(m)).astype(dtype)


def pairs(x: ndarray, m: int, scale: float) -> Any:
    """Return the transform of the pairs of 2 `m` numbers, times `scale`, from the last dimension of `x`."""
    length = x.shape[-1]
    out = numpy.empty((*x.shape[:-1], m), x.dtype)
    turns = _turns(m, x.dtype)
    function = fold.compiled(T=type_of(x.real.dtype))
    places = [address(item) for item in (out, x, turns)]
    launch(function, x.size // length, 4 * m * x.itemsize, *places, m, length, scale)
    return out

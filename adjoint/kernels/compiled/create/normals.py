"""Normal numbers, from the Box-Muller transform of pairs and of blocks of 16 fractions, and exponential numbers.

In float32, the polynomials come from Moshier's Cephes library, 1989 (`logf.c`, `sinf.c`). They cover the arguments that
occur here, and use fused multiply-adds. NumPy computes arrays with the same source. For float64, the functions of the C
library are called, so that other programs get identical results.
"""

from __future__ import annotations

from ....codegen.llvm.external import c_function
from ....codegen.llvm.kernels import *
from .twister import fraction, next_fractions

BLOCK, HALF = 16, 8
SQRT_HALF_BITS, MANTISSA_BITS = 0x3F3504F3, 0x7FFFFF

LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
"""log(1 + x) = x - x**2 / 2 + x**3 * (this polynomial in x)."""

COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
"""cos(x) = 1 - x**2 / 2 + x**4 * (this polynomial in x**2)."""

SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
"""sin(x) = x + x**3 * (this polynomial in x**2)."""

QUARTER_PI = (0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)
"""π / 4 in three parts, so that a multiple of it can be subtracted without losing bits."""

c_log, c_log1p, c_sin, c_cos = (c_function(name, f64, f64) for name in ("log", "log1p", "sin", "cos"))


@loops
def polynomial(x: Any, coefficients: Any) -> Any:
    """Return the polynomial with these coefficients (highest power first) by Horner's rule."""
    result = fma(x, f32(coefficients[0]), f32(coefficients[1]))
    for C in coefficients[2:]:
        result = fma(result, x, f32(C))
    return result


@loops
def log32(x: Any) -> Any:
    """Return the natural logarithm of positive normal numbers."""
    raw = bits(x) - SQRT_HALF_BITS
    exponent = f32(raw >> 23)
    x = from_bits((raw & MANTISSA_BITS) + SQRT_HALF_BITS, f32) - 1
    square = x * x
    result = polynomial(x, LOG) * x
    result = fma(result, square, exponent * f32(-2.12194440e-4))
    result = result - square * 0.5
    result = result + x
    return result + exponent * f32(0.693359375)


@loops
def normal_pairs(radius: Any, turns: Any) -> Any:
    """Return the cosines and the sines of angles, times radii. Fractions determine both angles and radii."""
    radius = sqrt(log32(1 - radius) * -2)
    turns = turns * f32(2 * math.pi)
    octant = (i32(turns * f32(1.27323954473516)) + 1) & ~1
    multiple = f32(octant)
    x = turns
    for PART in QUARTER_PI:
        x = fma(multiple, f32(-PART), x)
    square = x * x
    sine = fma(polynomial(square, SIN) * square, x, x)
    cosine = fma(polynomial(square, COS) * square, square, square * -0.5) + 1
    swap = (octant & 2) != 0
    sine_bits = bits(where(swap, cosine, sine)) ^ ((octant & 4) << 29)
    cosine_bits = bits(where(swap, sine, cosine)) ^ (((octant + 2) & 4) << 29)
    return from_bits(cosine_bits, f32) * radius, from_bits(sine_bits, f32) * radius


@loops(explicit=True, plain=True)
def normals32(values: Pointer[f32], mean: f32, std: f32, start: Int, stop: Int) -> None:
    """Convert blocks of eight radii and eight angles, both fractions, to eight cosines and eight sines."""
    for block in range(start, stop):
        at = values + block * BLOCK
        cosines, sines = normal_pairs(load(at, HALF), load(at + HALF, HALF))
        store(at, fma(cosines, std, mean))
        store(at + HALF, fma(sines, std, mean))


@loops(explicit=True, plain=True)
def normals64(values: Pointer[f64], mean: f64, std: f64, start: Int, stop: Int) -> None:
    """Do the same as `normals32` in float64."""
    for block in range(start, stop):
        at = values + block * BLOCK
        for i in range(HALF):
            radius = sqrt(c_log(1 - at[i]) * -2)
            angle = at[i + HALF] * (2 * math.pi)
            at[i] = fma(radius * c_cos(angle), std, mean)
            at[i + HALF] = fma(radius * c_sin(angle), std, mean)


def transform(values: ndarray, mean: float, std: float) -> Any:
    """Convert fractions to normal numbers in place, block by block."""
    kernel = normals32 if values.itemsize == 4 else normals64
    cost = BLOCK * values.itemsize * (1 if values.itemsize == 4 else 8)
    return kernel.run(values.size // BLOCK, cost, values, mean, std)


@loops(explicit=True, plain=True)
def draw_normals(out: Pointer[T], state: Pointer[u32], mean: T, std: T, start: Int, stop: Int) -> None:
    """Draw at least 16 normal numbers. If their number is not a multiple of 16, the last 16 numbers are drawn again."""
    NORMALS = normals32 if T is f32 else normals64
    at = out
    count = stop - start
    while count > 0:
        next_fractions(at, state, 0, count)
        NORMALS(at, mean, std, 0, count // BLOCK)
        at = out + (stop - BLOCK)
        count = BLOCK if count % BLOCK != 0 else 0


@loops(explicit=True, plain=True)
def draw_pairs(
    out: Pointer[T], state: Pointer[u32], mean: f64, std: f64, waiting: f64, start: Int, stop: Int
) -> f64:  # fmt: skip
    """Draw normal numbers in pairs, after `waiting` if `start` is 1, and return the second number of the last pair."""
    out[0] = T(fma(waiting, std, mean))
    spare = waiting
    for i in range(start, stop, 2):
        angle = fraction(state) * (2 * math.pi)
        radius = sqrt(c_log1p(fraction(state) * -1) * -2)
        spare = radius * c_sin(angle)
        out[i] = T(fma(radius * c_cos(angle), std, mean))
        if i + 1 < stop:
            out[i + 1] = T(fma(spare, std, mean))
    return spare


@loops(explicit=True, plain=True)
def draw_exponentials(out: Pointer[T], state: Pointer[u32], scale: f64, start: Int, stop: Int) -> None:
    """Draw numbers `scale * log(1 - u)`."""
    for i in range(start, stop):
        out[i] = T(c_log1p(fraction(state) * -1) * scale)


many, pairs, exponentials = draw_normals.of_dtype, draw_pairs.of_dtype, draw_exponentials.of_dtype

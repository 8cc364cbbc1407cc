"""Normal numbers, and functions of normal or uniform numbers: `exponential_`, `cauchy_`, `log_normal_`.

Box and Muller, "A note on the generation of random normal deviates", Annals of Mathematical Statistics, 1958.

PyTorch draws in two ways. If there are fewer than 16 numbers or the array is not contiguous, numbers are drawn in pairs
in float64. A remaining second number of a pair is stored in the stream for the next such draw. A contiguous array of 16
or more numbers is filled in blocks of 16, each from eight radii and eight angles. If the size is not a multiple of 16,
the last 16 numbers are drawn again.
"""

import functools
import math
from cmath import rect
from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ...._runtime.first_use import import_late
from ....codegen.elementary import on_arrays
from ....codegen.plans import compiled
from ...math.fma import each, fma32, fma64, rounded
from ...runtime.costs import PASSES, TILE
from ...runtime.floating import FLOAT32, FLOAT64, c_name, compute_dtype, is_floating, type_name, unwarned
from ...runtime.parallel import parallel_rows
from ...runtime.shapes import broadcast_shapes
from ..mt19937 import Drawing, Stream
from .targets import as_real, require_floating, round_to, store
from .uniform import fractions, fractions53, in_parts, is_filled_at_once

BLOCK = 16
HALF_BLOCK = 8

BLOCK_BYTES = 256
"""The number of bytes that one block uses in a core's cache, including scratch memory."""

_REAL = (float, int, numpy.floating, numpy.integer, numpy.bool_)


def _require_numbers(*parameters: object) -> None:
    """Raise TypeError if a parameter is not a real number, before any number is drawn."""
    for value in parameters:
        if not isinstance(value, _REAL):
            raise TypeError(f"must be real number, not {type(value).__name__}")


def normal_(stream: Stream, out: ndarray, mean: float = 0.0, std: float = 1.0) -> ndarray:
    """Fill `out`, which has a floating-point or complex type, with normally distributed numbers, and return `out`."""
    if {type(mean), type(std)} <= _NUMBERS and std >= 0.0 and out.size and is_filled_at_once(out):
        with stream.lock:
            if out.size >= BLOCK:
                if _MANY.fill(out, stream, float(mean), float(std)) is not NotImplemented:
                    return out
            else:
                waiting = stream.normal
                first = 0 if waiting is None else 1
                spare = _PAIRS.fill(out, stream, float(mean), float(std), waiting or 0.0, first=first)
                if spare is not NotImplemented:
                    stream.normal = spare if (out.size - first) % 2 else None
                    return out
    _require_numbers(mean, std)
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if out.dtype.kind in "cW":
        normal_(stream, as_real(out), mean, std / math.sqrt(2.0))
        return out
    if not out.size:
        return out
    require_floating("normal_kernel_cpu", out.dtype)
    with stream.lock:
        if out.size < BLOCK or not out.flags.c_contiguous:
            return store(out, pairwise_normals(stream, out.size, mean, std, out.dtype))
        _fill(stream, out.reshape(-1), mean, std)
    return out


_MANY = Drawing("create.normals.many", least=PASSES, cost=20)
_PAIRS = Drawing("create.normals.pairs", least=PASSES, cost=20)
_NUMBERS = {int, float}


def check_deviations(std: ndarray) -> None:
    """Raise an error unless all elements can be standard deviations."""
    if std.dtype.kind in "cW":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.size and not (std >= 0).all():
        raise RuntimeError("normal expects all elements of std >= 0.0")


def normal(stream: Stream, mean: ndarray | float, std: ndarray | float) -> ndarray:
    """Return normally distributed numbers with the given means and standard deviations.

    At least one of `mean` and `std` is an array. The result is a new array of the common shape. It has the type of
    `mean` if `mean` is an array, and otherwise the type of `std`.
    """
    if isinstance(std, ndarray):
        check_deviations(std)
    means = mean if isinstance(mean, ndarray) else None
    stds = std if isinstance(std, ndarray) else None
    template: Any = means if means is not None else stds
    shape = broadcast_shapes(*(given.shape for given in (means, stds) if given is not None))
    out = numpy.empty(shape, template.dtype)
    normal_(stream, out, 0.0, 1.0 if stds is not None else float(std))
    work = compute_dtype(out.dtype)
    if stds is not None:
        scaled = out.astype(work, copy=False)
        out = numpy.multiply(scaled, stds.astype(work, copy=False), scaled).astype(out.dtype, copy=False)
    addend = means.astype(work, copy=False) if means is not None else work.type(out.dtype.type(mean))
    sums = out.astype(work, copy=False)
    return numpy.add(sums, addend, sums).astype(out.dtype, copy=False)


def pairwise_normals(stream: Stream, n: int, mean: float, std: float, dtype: "numpy.dtype[Any]") -> ndarray:
    """Return `n` normal numbers, drawn pair by pair, in float64, or rounded to float32 if `dtype` is shorter."""
    values = numpy.empty(n)
    start = 0
    if n and stream.normal is not None:
        values[0] = stream.normal
        stream.normal = None
        start = 1
    if n > start:
        missing = n - start
        pairs = _pairs(stream, (missing + 1) // 2)
        values[start:] = pairs[:missing]
        if missing % 2:
            stream.normal = float(pairs[-1])
    if mean != 0.0 or std != 1.0:
        values = fma64(values, std, mean)
    return values if dtype == numpy.float64 else values.astype(numpy.float32)


def _pairs(stream: Stream, n: int) -> ndarray:
    """Return `n` pairs of standard normal numbers in a float64 array of 2 * n numbers."""
    drawn = iter(stream.doubles(2 * n) if n < BLOCK else fractions53(stream, 2 * n).tolist())
    points = [rect(math.sqrt(-2.0 * math.log1p(-next(drawn))), 2.0 * math.pi * turns) for turns in drawn]
    return numpy.array(points).view(numpy.float64)


def _fill(stream: Stream, out: ndarray, mean: float, std: float) -> None:
    """Fill a contiguous one-dimensional array of 16 or more numbers."""
    half = out.dtype.itemsize == 2
    whole = out.size // BLOCK * BLOCK
    values = numpy.empty(whole, compute_dtype(out.dtype)) if half else out
    drawn = whole if half else out.size  # PyTorch also draws the numbers that the tail replaces
    for start in range(0, drawn, TILE):
        part = fractions(stream, min(TILE, drawn - start), values.dtype)
        values[start : start + part.size] = part
    _transform(values[:whole], mean, std)
    if half:
        out[:whole] = round_to(values, out.dtype)
    if whole < out.size:
        last = fractions(stream, BLOCK, values.dtype)
        _transform(last, mean, std)
        out[-BLOCK:] = round_to(last, out.dtype)


@compiled("create.normals.transform", least=PASSES)
def _transform(values: ndarray, mean: float, std: float) -> None:
    """Convert fractions to normally distributed numbers, in place, block by block."""
    transform = _transform32 if values.dtype == numpy.float32 else _transform64
    blocks = values.reshape(-1, BLOCK)
    parallel_rows(lambda start, stop: transform(blocks[start:stop], mean, std), len(blocks), BLOCK_BYTES)


def _transform32(blocks: ndarray, mean: float, std: float) -> None:
    found = _pairs_of_arrays()(blocks[:, :HALF_BLOCK].copy(), blocks[:, HALF_BLOCK:].copy())
    for half, numbers in zip((blocks[:, :HALF_BLOCK], blocks[:, HALF_BLOCK:]), found, strict=True):
        half[...] = fma32(numbers.astype(numpy.float64), float(numpy.float32(std)), float(numpy.float32(mean)))


def _fused(a: ndarray, b: Any, c: Any) -> ndarray:
    """Return `a * b + c`, computed in float64, where the product is exact, and rounded to float32."""
    total = a.astype(FLOAT64)
    total *= b
    total += c
    return total.astype(FLOAT32)


def _polynomial(x: ndarray, coefficients: tuple[float, ...]) -> ndarray:
    """Return the polynomial with these coefficients, by Horner's rule with fused multiply-adds."""
    wide = x.astype(FLOAT64)
    first, second, *others = _rounded(coefficients)
    result = _fused(wide, first, second)
    for coefficient in others:
        result = _fused(result, wide, coefficient)
    return result


@functools.cache
def _rounded(numbers: tuple[float, ...]) -> list[ndarray]:
    """Return float32 numbers as arrays, which NumPy processes faster than Python numbers."""
    return [numpy.array(number, FLOAT32).astype(FLOAT64) for number in numbers]


@functools.cache
def _pairs_of_arrays() -> Any:
    """Compute `normal_pairs` of the compiled form for arrays."""
    meanings = {
        "f32": lambda x: x.astype(FLOAT32) if isinstance(x, ndarray) else FLOAT32.type(x),
        "i32": lambda x: x.astype(numpy.int32), "bits": lambda x: x.view(numpy.int32), "sqrt": numpy.sqrt,
        "from_bits": lambda x, _: x.view(FLOAT32), "where": numpy.where, "fma": _fused, "polynomial": _polynomial,
    }  # fmt: skip
    return on_arrays(import_late("adjoint.kernels.compiled.create.normals").normal_pairs, meanings)


def _transform64(blocks: ndarray, mean: float, std: float) -> None:
    radius = each(math.log, 1.0 - blocks[:, :HALF_BLOCK])
    radius *= -2.0
    numpy.sqrt(radius, radius)
    angle = 2.0 * math.pi * blocks[:, HALF_BLOCK:]
    blocks[:, :HALF_BLOCK] = fma64(radius * numpy.cos(angle), std, mean)
    blocks[:, HALF_BLOCK:] = fma64(radius * numpy.sin(angle), std, mean)


Number = Callable[[float], float]
Function = Callable[[ndarray], ndarray]


def exponential_(stream: Stream, out: ndarray, lambd: float = 1.0) -> ndarray:
    """Fill the floating-point array `out` from the exponential distribution by inversion, -log(1 - u) / lambd; return it."""
    _require_numbers(lambd)
    if not lambd > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if not out.size:
        return out
    if not is_floating(out.dtype):
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {type_name(out.dtype)}"
        )
    scale = -1.0 / lambd
    if is_filled_at_once(out):
        with stream.lock:
            if _EXPONENTIALS.fill(out, stream, float(scale)) is not NotImplemented:
                return out
    return _fill_by_function(
        stream, out, lambda n: -fractions53(stream, n), math.log1p, numpy.log1p, lambda y: scale * y
    )


_EXPONENTIALS = Drawing("create.normals.exponentials", least=PASSES, cost=1)


def cauchy_(stream: Stream, out: ndarray, median: float = 0.0, sigma: float = 1.0) -> ndarray:
    """Fill the floating-point array `out` by inversion (median + sigma * tan(π * (u - 1/2))), and return it."""
    _require_numbers(median, sigma)
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not is_floating(out.dtype):
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {c_name(out.dtype)}"
        )
    return _fill_by_function(
        stream,
        out,
        lambda n: (fractions53(stream, n) - 0.5) * math.pi,
        math.tan,
        numpy.tan,
        # Rounded once: a product that underflows keeps its sign if nothing is added to it.
        lambda y: fma64(y, sigma, median) if median else y * sigma,
    )


def log_normal_(stream: Stream, out: ndarray, mean: float = 1.0, std: float = 2.0) -> ndarray:
    """Fill `out`, which has a floating-point type, with numbers whose logarithms are normally distributed, and return `out`."""
    _require_numbers(mean, std)
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not out.size:
        return out
    require_floating("log_normal_cpu", out.dtype)
    with unwarned():
        return _fill_by_function(
            stream, out, lambda n: pairwise_normals(stream, n, mean, std, FLOAT64), _exp, numpy.exp, lambda y: y
        )


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _fill_by_function(
    stream: Stream, out: ndarray, draw: Callable[[int], ndarray], number: Number, function: Function, finish: Function
) -> ndarray:
    """Fill `out`, and return it. A function and then `finish` are applied to the float64 numbers that `draw` returns."""

    def make(n: int) -> ndarray:
        drawn = draw(n)
        return finish(each(number, drawn)) if out.dtype == numpy.float64 else rounded(number, function, drawn, finish)

    with stream.lock:
        return in_parts(out, make)

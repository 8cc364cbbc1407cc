"""Variance, standard deviation and vector norms."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy
from numpy import asarray, ndarray

from ..._runtime.tracebacks import warn
from ...codegen.acceleration import LOOPS
from ...codegen.plans import compiled
from ...codegen.rows import row_program
from ...codegen.tracing import row, xp
from ..memory.copying import widen
from ..runtime.costs import LARGE, MOVED, PASSES, THREADED
from ..runtime.floating import Array, compute_dtype, is_floating, is_inexact, type_name
from ..runtime.layout import row_major
from ..runtime.scalar import typed
from ..runtime.shapes import Dims, names_all, normalize_dims
from . import reduction
from .reduction import of_parts

Dtype = numpy.dtype[Any]
Pair = tuple[ndarray, ndarray]

_LEAST = 1e-30  # smaller sums of squares have lost digits in float32
_LEAST_ROOT = math.sqrt(_LEAST)
_RUN = 1024  # the number of powers that are summed before the sums are added


def _moments(
    name: str, alone: bool, x: ndarray, dim: Dims = None, correction: float | None = 1, keepdim: bool = False
) -> Pair:
    """Return the variance over `dim`, or its root if `name` is "std", and the mean. If it is `alone`, the mean is incomplete.

    The variance is the sum of squared distances from the mean divided by count - `correction`. It is real. It is NaN if
    there are no elements, and inf or NaN if the divisor is not positive.
    """
    root = name == "std"
    if not is_inexact(x.dtype):
        raise RuntimeError(
            f"{'std and var' if alone else f'{name}_mean'} only support floating point and complex dtypes"
        )
    dims = normalize_dims(dim, x.ndim)
    count = reduction.count(x.shape, dims)
    degrees = count - (1 if correction is None else correction)
    if degrees <= 0:
        warn(
            f"{name if alone else f'{name}_mean'}(): degrees of freedom is <= 0. Correction should "
            "be strictly less than the reduction factor (input numel divided by output numel)."
        )
    if 0 < x.size < PASSES and x.dtype.char in "fd" and degrees > 0 and dims and not LOOPS.every_size:
        # The conversion takes less time than more calls of NumPy, and no square of a float32 number overflows or vanishes.
        distance = x.astype(numpy.float64)
        mean: Any
        if len(dims) == x.ndim and not keepdim and x.flags.c_contiguous:
            distance = distance.reshape(-1)
            # NumPy divides numbers in a fraction of the time of arrays.
            mean = numpy.add.reduce(distance) / count
            distance -= mean
            variance = numpy.add.reduce(numpy.multiply(distance, distance, out=distance)) / degrees
            return asarray(math.sqrt(variance) if root else variance, x.dtype), asarray(mean, x.dtype)
        mean = _sum_kept(distance, dims)
        mean /= count
        distance -= mean
        spread = _sum_kept(numpy.multiply(distance, distance, out=distance), dims)
        spread /= degrees
        found = _finished(numpy.sqrt(spread, out=spread) if root else spread, dims, keepdim, x.dtype)
        return found, mean if alone else _finished(mean, dims, keepdim, x.dtype)
    mean, spread = _mean_and_spread(x, dims)
    if x.dtype.char not in "dD" and not _is_in_range(spread):
        mean, spread = _mean_and_spread(x.astype(numpy.result_type(widen(x), numpy.float64)), dims)
    spread /= typed(max(degrees, 0) if count else 0, spread.dtype)
    if root:
        numpy.sqrt(spread, out=spread)
    if not alone:
        mean = _finished(mean, dims, keepdim, x.dtype)
    return _finished(spread, dims, keepdim, _real(x.dtype)), mean


def _moment(name: str, x: ndarray, dim: Dims = None, correction: float | None = 1, keepdim: bool = False) -> ndarray:
    return _moments(name, True, x, dim, correction, keepdim)[0]


var, std = partial(_moment, "var"), partial(_moment, "std")
var_mean, std_mean = partial(_moments, "var", False), partial(_moments, "std", False)


def _sum_kept(x: ndarray, dims: tuple[int, ...]) -> ndarray:
    """Return the sum of an array over `dims`, which are kept."""
    return reduction.sum_kept(x, dims[0]) if len(dims) == 1 else reduction.reduced(numpy.add, x, dims, True)


def _finished(result: ndarray, dims: tuple[int, ...], keepdim: bool, dtype: Dtype) -> ndarray:
    if not keepdim:
        result = result.squeeze(dims)
    return row_major(result if result.dtype is dtype else result.astype(dtype))


def _mean_and_spread(x: ndarray, dims: tuple[int, ...]) -> Pair:
    wide = compute_dtype(x.dtype)
    mean = reduction.mean(x, dims[0] if len(dims) == 1 else dims or None, True, None if wide is x.dtype else wide)
    return mean, sum_of_squares(x, dims, mean)


def _is_in_range(spread: ndarray, least: float = _LEAST) -> bool:
    """Return whether no sum of squares in float32 has overflowed, or underflowed to zero."""
    if spread.size == 1:
        return bool(least < spread.item() < math.inf)
    # The positions of extrema are found faster than their values.
    return spread.size == 0 or least < spread.item(spread.argmin()) <= spread.item(spread.argmax()) < math.inf


_REDUCE = compiled("reduce.reduction.reduce", least=MOVED)


def sum_of_squares(x: ndarray, dims: tuple[int, ...], center: ndarray | None = None) -> ndarray:
    """Return the sum of abs(x - center) ** 2 over `dims`, which are kept. `center` is broadcast; None means zero."""
    name = "sum_of_squares" if center is None else "sum_of_distances"
    found = _REDUCE.run(x.size, name, x, dims, True, center)
    if found is not NotImplemented:
        return asarray(found)

    def summed(x: ndarray, *center: ndarray) -> ndarray:
        distance = asarray(widen(x) - center[0]) if center else widen(x)
        if distance.dtype.kind == "c":
            squares = numpy.square(distance.real) + numpy.square(distance.imag)
        else:
            squares = numpy.multiply(distance, distance, out=distance if center else None)
        return _sum_kept(squares, dims)

    return of_parts(summed, x, dims, *(() if center is None else (center,)))


def _real(dtype: Dtype) -> Dtype:
    return numpy.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


# --- norms ----------------------------------------------------------------------------------------------------


def norm(x: ndarray, p: float = 2, dim: Dims = None, keepdim: bool = False, dtype: Dtype | None = None) -> ndarray:
    """Return the vector norm (sum of abs(x) ** p) ** (1 / p) over `dim`. It is real, and computed in `dtype` if that is given.

    `p` may also be inf (the largest magnitude), -inf (the smallest) or 0 (the number of nonzero elements).
    """
    dims: tuple[int, ...] = ()
    if p == 2 and dtype is None and x.dtype.char in "fd" and 1 < x.size < THREADED:
        dims = () if dim is None else normalize_dims(dim, x.ndim)
        if (dim is None or len(dims) == x.ndim) and x.size < LARGE and not LOOPS.every_size:
            flat = x.reshape(-1)
            total = flat.dot(flat)
            if _LEAST < total < math.inf:
                root = asarray(numpy.sqrt(total))
                return root.reshape((1,) * x.ndim) if keepdim else root
        if len(dims) == 1 and x.shape[dims[0]] != 1:
            roots: ndarray = root_rows.run((x,), dims[0])
            if _is_in_range(roots, _LEAST_ROOT):
                return roots if keepdim else roots.squeeze(dims)
    _check_norm_types(x, dtype)
    if dtype is not None:
        x = x.astype(dtype, copy=False)
    dims = dims or normalize_dims(dim, x.ndim)
    target = _real(x.dtype)
    if p < 0 or p == math.inf:
        _require_norm_elements(x, p, dims, dim)
    result = _norm(x, p, dims)
    return row_major((result if keepdim else result.squeeze(dims)).astype(target, copy=False))


def distance(x: ndarray, other: ndarray, p: float = 2) -> ndarray:
    """Return the `p`-norm of `x - other`, broadcast together."""
    return norm(x - other, p)


_MAGNITUDES = {1: "sum_of_magnitudes", math.inf: "largest_magnitude", -math.inf: "smallest_magnitude"}


@row_program()
def root_rows(x: Array) -> Any:
    """Return the square root of the sum of the squares of the row."""
    return xp.sqrt(row.sum(x * x))


@row_program()
def unit_rows(x: Array, eps: float) -> Any:
    """Return the row divided by its norm, or by `eps` if that is larger, and the norm."""
    root = xp.sqrt(row.sum(x * x))
    return x / xp.maximum(root, eps), root


def unit(x: ndarray, dim: int, eps: float) -> ndarray | None:
    """Return `x` divided by its norm along `dim` or by `eps` if that is larger, or None if squares are out of range."""
    if x.dtype.char not in "fd" or not x.size:
        return None
    result, roots = unit_rows.run((x,), dim, (eps,))
    return result if _is_in_range(roots, _LEAST_ROOT) else None


def _are_single(x: ndarray, dims: tuple[int, ...]) -> bool:
    """Return whether each of the dimensions has one element."""
    for dim in dims:  # noqa: SIM110  (a generator takes as long as the norm of a small tensor)
        if x.shape[dim] != 1:
            return False
    return True


def _norm(x: ndarray, p: float, dims: tuple[int, ...]) -> ndarray:
    """Return the norm over `dims`, which are kept, in the dtype of the computation."""
    if p != 0 and _are_single(x, dims):  # its square may overflow
        return asarray(numpy.abs(widen(x)))
    if p == 2:
        squares = sum_of_squares(x, dims)
        if x.dtype.kind == "c" and numpy.isnan(squares).any():  # a part is NaN, but the magnitude may be infinite
            squares = sum_of_squares(numpy.abs(x), dims)
        result = asarray(numpy.sqrt(squares))
        return _scaled_norm(widen(x), p, dims, result) if x.size and not _is_in_range(squares) else result
    if p == 0:
        found = of_parts(lambda part: reduction.sum(part != 0, dims, True), x, dims)
        return found.astype(compute_dtype(_real(x.dtype)))
    if (name := _MAGNITUDES.get(p)) is not None:
        found = _REDUCE.run(x.size, name, x, dims, True)
        if found is not NotImplemented:
            return asarray(found)
    if math.isinf(p):
        extremum = reduction.amax if p > 0 else reduction.amin
        return of_parts(lambda part: extremum(numpy.abs(widen(part)), dims, True), x, dims)
    powers = _sum_of_powers(x, p, dims)
    result = asarray(powers ** (1.0 / p))
    return _scaled_norm(widen(x), p, dims, result) if x.size and not _is_in_range(powers) else result


def _sum_of_powers(x: ndarray, p: float, dims: tuple[int, ...]) -> ndarray:
    """Return the sum over `dims`, which are kept, of abs(x) ** p."""
    if len(dims) == x.ndim and x.size > THREADED and x.flags.c_contiguous:
        flat, whole = x.reshape(-1), x.size // _RUN * _RUN
        runs = _sum_of_powers(flat[:whole].reshape(-1, _RUN), p, (1,))
        return asarray(numpy.add.reduce(runs) + _sum_of_powers(flat[whole:], p, (0,))).reshape((1,) * x.ndim)

    def summed(part: ndarray) -> ndarray:
        magnitude = numpy.abs(widen(part))
        if p != 1:
            magnitude **= p
        return reduction.sum(magnitude, dims, True)

    return of_parts(summed, x, dims)


def _scaled_norm(x: ndarray, p: float, dims: tuple[int, ...], found: ndarray) -> ndarray:
    """Return the norms `found`, computed again with numbers divided by the largest where powers are out of range."""
    magnitude = numpy.abs(x)
    size = reduction.amax(magnitude, dims, True) if p > 0 else reduction.amin(magnitude, dims, True)
    scaled = (size > 0) & (size < math.inf)
    size = numpy.where(scaled, size, 1)
    powers = reduction.sum((magnitude / size) ** typed(p, magnitude.dtype), dims, True)
    return numpy.where(scaled, powers ** typed(1.0 / p, powers.dtype) * size, found).astype(found.dtype)


def _check_norm_types(x: ndarray, dtype: Dtype | None) -> None:
    name = "linalg.vector_norm"
    if not is_inexact(x.dtype):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(x.dtype)}")
    if dtype is None:
        return
    if not is_inexact(dtype):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {type_name(dtype)}")
    if is_floating(x.dtype) != is_floating(dtype):
        kind = "real" if is_floating(x.dtype) else "complex"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {type_name(dtype)}")
    if dtype.itemsize < x.dtype.itemsize or (dtype.itemsize == x.dtype.itemsize and dtype != x.dtype):
        raise RuntimeError(
            f"{name}: the dtype of the input ({type_name(x.dtype)}) should be convertible without narrowing to the "
            f"specified dtype ({type_name(dtype)})"
        )


def _require_norm_elements(x: ndarray, p: float, dims: tuple[int, ...], dim: Dims) -> None:
    no_identity = "because the operation does not have an identity"
    if x.size:
        return
    if names_all(dim):
        raise RuntimeError(f"linalg.vector_norm cannot compute the {p:g} norm on an empty tensor {no_identity}")
    for each in dims:
        if x.shape[each] == 0:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {p:g} norm on the dimension {each}because this dimension is "
                "empty and the operation does not have an identity"
            )

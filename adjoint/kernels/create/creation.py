"""Regular arrays: ranges, the identity matrix, indices of triangles, and arrays with the properties of another array."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy

from ... import dtypes
from ...codegen.acceleration import LOOPS
from ...codegen.plans import compiled
from ...dtypes import dtype
from ..math.fma import each, fma32, fma64, is_exact
from ..memory.copying import convert
from ..runtime.costs import LARGE, MOVED, PASSES
from ..runtime.floating import Array, quietly, refuse, type_name
from ..runtime.layout import laid_out
from ..runtime.narrow_array import kept
from ..runtime.scalar import is_within, scalar_array
from ..runtime.shapes import broadcast_shapes

# --- regular --------------------------------------------------------------------------------------------------


def arange(start: Any, step: Any, kind: dtype, shape: tuple[int], _: Any) -> Array:
    """Return the numbers `start + i * step`. Integers are exact. Other numbers are computed in float64 and rounded to `kind`."""
    (size,) = shape
    if kind.is_floating_point:
        return _float_range(float(start), float(step), size, kind)
    first, distance = int(start), int(step)
    if max(abs(first), abs(first + distance * size)) < 1 << 62:
        return numpy.arange(first, first + distance * size, distance).astype(kind.numpy, copy=False)
    return (first + distance * numpy.arange(size, dtype=numpy.int64)).astype(kind.numpy, copy=False)


def range_length(start: Any, end: Any, step: Any, kind: dtype) -> int:
    """Return the number of elements of `arange`."""
    if kind is dtypes.bool or kind.is_complex or kind.roles is not None:
        raise refuse("arange_cpu", kind)
    if isinstance(start, complex) or isinstance(end, complex) or isinstance(step, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if kind.is_floating_point:
        return math.ceil((end - start) / step)
    if kind is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
    if int(step) == 0:
        raise ValueError("step must be nonzero")
    return -((start - end) // step) if kind is dtypes.int64 else math.ceil((end - start) / step)


_BLOCKS = compiled("create.ranges.blocks", least=MOVED, cost=1)
_POWERS = compiled("create.ranges.powers", least=PASSES, cost=1)
_FROM_BOTH_ENDS = compiled("create.ranges.from_both_ends", least=MOVED, cost=1)


def _float_range(start: float, step: float, size: int, kind: dtype) -> Array:
    """Return `start + i * step` with PyTorch's rounding.

    Blocks of two 32-byte vectors are computed from their first elements, which are rounded to `kind`. Remaining
    elements are computed one by one.
    """
    lanes = 32 // kind.itemsize
    if size:
        found = numpy.empty(size, kind.numpy)
        if _BLOCKS.run(size, found, start, step, lanes) is not NotImplemented:
            return found
    values = fma64(numpy.arange(size, dtype=numpy.float64), step, start)
    whole = size - size % (2 * lanes)
    if not whole:
        return convert(values, kind.numpy)
    first = convert(values[:whole:lanes], kind.numpy).astype(numpy.float64)[:, None]
    lane = numpy.arange(lanes, dtype=numpy.float64)
    offset = lane * step
    sums = first + offset
    if kind is dtypes.float64:  # one rounding for product and sum: the product's error is that of 3 * step alone
        product_error = step - (offset - numpy.minimum(lane, 2) * step) * (lane == 3)
        back = sums - first
        sums += (first - (sums - back)) + (offset - back) + numpy.where(lane == 3, product_error, 0.0)
    values[:whole] = sums.reshape(-1)
    return convert(values, kind.numpy)


def inclusive_length(start: float, end: float, step: float, kind: dtype) -> int:
    """Return the number of elements of `torch.range`. It raises the errors of `range_length`."""
    if kind.is_complex or kind.numpy.kind == "b":
        raise refuse("range_cpu", kind)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return int((end - start) / step) + 1


def inclusive_range(start: float, step: float, shape: tuple[int], dtype: Any) -> Array:
    """Return the numbers `start + i * step`, computed in float64."""
    return convert(start + numpy.arange(*shape, dtype=numpy.float64) * step, dtype)


def linspace(start: Any, end: Any, kind: dtype, shape: tuple[int], _: Any) -> Array:
    """Return numbers from `start` to `end`, both included, computed from the nearer end as in PyTorch."""
    (steps,) = shape
    if steps > 1 and is_within(start, kind) and is_within(end, kind) and kind.is_floating_point:
        found = numpy.empty(steps, kind.numpy)
        if _FROM_BOTH_ENDS.run(steps, found, start, end) is not NotImplemented:
            return found
    if steps > 1 and (kind is dtypes.bool or kind.roles is not None):
        raise refuse("linspace_cpu", kind)
    return _spaced(start, end, steps, kind).astype(kind.numpy, copy=False)


def _spaced(start: Any, end: Any, steps: int, kind: dtype) -> Array:
    """Return the numbers of `linspace` before they are rounded to `kind`. Integers are in float64."""
    work = kind.numpy if kind.is_floating_point or kind.is_complex else numpy.dtype(numpy.float64)
    first: Any
    last: Any
    first, last = (scalar_array(value, kind).astype(work)[()] for value in (start, end))
    if steps < 2:
        return numpy.full(steps, first, work)
    result = numpy.empty(steps, work)
    half = steps // 2
    up, down = numpy.arange(half, dtype=numpy.float64), numpy.arange(steps - half, dtype=numpy.float64)[::-1]
    if kind.is_complex:
        step = (last - first) / (steps - 1)
        result[:half], result[half:] = first + step * up, last - step * down
    elif work.itemsize == 2:  # every operation is rounded
        low, high = numpy.float32(first), numpy.float32(last)
        distance = (high - low).astype(work).astype(numpy.float32)
        step = (distance / numpy.float32(steps - 1)).astype(work).astype(numpy.float32)
        up, down = (index.astype(work).astype(numpy.float32) for index in (up, down))  # type: ignore[assignment]
        result[:half] = low + (up * step).astype(work).astype(numpy.float32)
        result[half:] = high - (down * step).astype(work).astype(numpy.float32)
    else:
        step, first, last = float((last - first) / work.type(steps - 1)), float(first), float(last)
        if work.itemsize == 8:
            result[:half], result[half:] = fma64(up, step, first), fma64(down.copy(), -step, last)
        elif is_exact(steps, step, first, last):
            numbers = numpy.concatenate((up, -down))
            numbers *= step
            numbers[:half] += first
            numbers[half:] += last
            result[:] = numbers
        else:
            result[:half], result[half:] = fma32(up, step, first), fma32(down.copy(), -step, last)
    return result


def logspace(start: Any, end: Any, base: float, kind: dtype, shape: tuple[int], _: Any) -> Array:
    """Return `base` to the powers `linspace(start, end, steps)`."""
    (steps,) = shape
    if steps > 1 and (kind is dtypes.bool or kind.roles is not None):
        raise refuse("logspace_cpu", kind)
    if kind.is_complex:
        return convert(numpy.power(base, _spaced(start, end, steps, kind)), kind.numpy)
    if steps == 1:
        end = start
    if steps and kind.is_floating_point and is_within(start, kind) and is_within(end, kind):
        found = numpy.empty(steps, kind.numpy)
        if _POWERS.run(steps, found, float(base), start, end) is not NotImplemented:
            return found
    if not kind.is_floating_point and steps > 1:
        start, end = int(start), int(end)
    elif kind.itemsize <= 4 and kind.is_floating_point:
        start, end = numpy.float32(start), numpy.float32(end)
    powers, half = float((end - start) / max(steps - 1, 1)) * numpy.arange(steps, dtype=numpy.float64), steps // 2
    powers[half:] = float(end) - powers[: steps - half][::-1]
    powers[:half] += float(start)
    numbers = quietly(each, numpy.float64(base).__pow__, powers)  # NumPy's own may differ in the last bit
    return convert(numbers, kind.numpy)


def eye(shape: tuple[int, int], dtype: Any) -> Array:
    """Return a matrix with ones on the diagonal and zeros elsewhere."""
    if dtype == dtypes.complex32.numpy:
        raise refuse("eye", dtypes.complex32)
    result = numpy.zeros(shape, dtype)
    result[: shape[1]].reshape(-1)[:: shape[1] + 1] = 1
    return result


def tril_indices(row: int, col: int, offset: int) -> Array:
    """Return the rows and columns of the elements on and below a diagonal, in row-major order."""
    return _indices(numpy.greater_equal, row, col, offset)


def triu_indices(row: int, col: int, offset: int) -> Array:
    """Return the rows and columns of the elements on and above a diagonal, in row-major order."""
    return _indices(numpy.less_equal, row, col, offset)


def _indices(compare: numpy.ufunc, row: int, col: int, offset: int) -> Array:
    if row * col < MOVED:
        return _kept_indices(compare, row, col, offset).copy()
    return _found_indices(compare, row, col, offset)


def _found_indices(compare: numpy.ufunc, row: int, col: int, offset: int) -> Array:
    """Return the rows and columns of the elements for which `compare(row + offset, column)` is true."""
    (places,) = compare.outer(numpy.arange(offset, row + offset), numpy.arange(col)).ravel().nonzero()
    result = numpy.empty((2, places.size), numpy.int64)
    numpy.divmod(places, max(col, 1), out=(result[0], result[1]))
    return result


_kept_indices = functools.lru_cache(32)(_found_indices)


# --- complex numbers ------------------------------------------------------------------------------------------


def complex_from_parts(real: Array, imag: Array) -> Array:
    """Return complex numbers with the given real and imaginary parts, which are broadcast together."""
    _check_parts(real, imag)
    kind = dtypes.from_numpy(real.dtype).to_complex().numpy
    result = kept(laid_out(numpy.empty(broadcast_shapes(real.shape, imag.shape), kind), (real, imag)))
    if LOOPS.takes(result.size, LARGE):
        from ...codegen.compiled_ufuncs import joined

        if joined(result, real, imag):
            return result
    result.real, result.imag = real, imag
    return result


def polar(abs: Array, angle: Array) -> Array:
    """Return complex numbers with the given absolute values and angles, which are broadcast together."""
    _check_parts(abs, angle)
    if abs.dtype == numpy.float16:
        raise refuse("polar_cpu", abs)
    return complex_from_parts(numpy.asarray(abs * numpy.cos(angle)), numpy.asarray(abs * numpy.sin(angle)))


def _check_parts(first: Array, second: Array) -> None:
    if first.dtype.kind != "f" or second.dtype.kind != "f":
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {type_name(first.dtype)} and "
            f"{type_name(second.dtype)}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {type_name(first.dtype)} but got scalar type {type_name(second.dtype)} for "
            "second argument"
        )


# --- arrays like others ---------------------------------------------------------------------------------------


def zeros_like(array: Array) -> Array:
    """Return row-major zeros with the shape and dtype of `array`."""
    return numpy.zeros(array.shape, array.dtype)


def ones_like(array: Array) -> Array:
    """Return row-major ones with the shape and dtype of `array`."""
    return numpy.ones(array.shape, array.dtype)


def empty_like(array: Array) -> Array:
    """Return an uninitialized row-major array with the shape and dtype of `array`."""
    return numpy.empty(array.shape, array.dtype)


def full_like(array: Array, value: Any) -> Array:
    """Return a row-major array with the shape and dtype of `array`, filled with `value`."""
    return numpy.full(array.shape, value, array.dtype)


def zeros_of(array: Array, shape: tuple[int, ...] = ()) -> Array:
    """Return zeros with another shape and the dtype of `array`."""
    return numpy.zeros(shape, array.dtype)

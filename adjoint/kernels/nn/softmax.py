"""Softmax, its logarithm, log-sum-exp, and their vector-Jacobian products.

The largest element is subtracted first, so nothing overflows. A row that holds nan, or nothing but -inf, gives nan.
Large arrays are worked through in tiles that stay in cache, by several threads; half types are computed in float32.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import asarray, ndarray

from ... import dtypes
from ..reduce import reduction
from ..reduce.reduction import sum_kept
from ..runtime.floating import compute_dtype, is_floating, is_inexact, quietly, type_name, widen
from ..runtime.layout import row_major
from ..runtime.parallel import TILE_BYTES, parallel_rows
from ..runtime.shapes import Dims, normalize_dim, normalize_dims

_SMALL = 4096  # elements; larger arrays are worked through in tiles
_NATIVE = "fd"
_MODERATE = 40  # of numbers up to this the exponential can be summed in float32 as it is
_CLOSE = 8
_SHORT = 32  # rows up to this long are put side by side, for vector loops across rows

_max: Any = numpy.maximum.reduce
_exp, _log, _subtract, _multiply, _divide = numpy.exp, numpy.log, numpy.subtract, numpy.multiply, numpy.true_divide


def softmax(x: ndarray, dim: int) -> ndarray:
    """The exponential of `x` divided by its sum along `dim`.

    Raises:
        IndexError: if `dim` is out of range.
        NotImplementedError: if `x` is not floating-point.
    """
    if not _is_small(x, dim):
        return quietly(_along, "softmax", _softmax_tile, x, dim)
    if x.item(x.argmin()) > -_MODERATE and x.item(x.argmax()) < _MODERATE:
        return _normalized(x, dim)
    return quietly(_normalized, _shifted(x, dim), dim)


def _is_small(x: ndarray, dim: int) -> bool:
    return x.dtype.char in _NATIVE and 0 < x.size <= _SMALL and -x.ndim <= dim < x.ndim and x.flags.c_contiguous


def _shifted(x: ndarray, dim: int) -> ndarray:
    """`x` less its maximum along `dim`."""
    shifted: ndarray = quietly(_subtract, x, _max(x, dim, None, None, True))
    return shifted


def _normalized(x: ndarray, dim: int) -> ndarray:
    result = _exp(x)
    return _divide(result, sum_kept(result, dim), result)


def _softmax_tile(x: ndarray, out: ndarray) -> None:
    _subtract(x, _max(x, 1, None, None, True), out)
    _exp(out, out)
    _divide(out, _tile_sums(out), out)


def log_softmax(x: ndarray, dim: int) -> ndarray:
    """The logarithm of softmax: `x` less the logarithm of the sum of exp(x) along `dim`.

    Raises:
        IndexError: if `dim` is out of range.
        NotImplementedError: if `x` is not floating-point.
    """
    if not _is_small(x, dim):
        return quietly(_along, "log_softmax", _log_softmax_tile, x, dim)
    # One number for all is cheaper to find and to subtract. It costs accuracy: the rounding of numbers up to `_CLOSE`.
    largest = x.item(x.argmax())
    if largest - x.item(x.argmin()) < _CLOSE:
        return _log_normalized(_subtract(x, asarray(largest, x.dtype)), dim)
    return quietly(_log_normalized, _shifted(x, dim), dim)


def _log_normalized(x: ndarray, dim: int) -> ndarray:
    """`x`, which is overwritten, less the logarithm of the sum of its exponential along `dim`."""
    total = sum_kept(_exp(x), dim)
    return _subtract(x, _log(total, total), x)


def _log_softmax_tile(x: ndarray, out: ndarray) -> None:
    _subtract(x, _max(x, 1, None, None, True), out)
    total = _tile_sums(_exp(out))
    _subtract(out, _log(total, total), out)


def softmax_backward(grad: ndarray, result: ndarray, dim: int) -> ndarray:
    """The gradient of softmax's input: result * (grad - sum(grad * result))."""
    if result.dtype.char in _NATIVE and result.size <= _SMALL and result.ndim and grad.flags.c_contiguous:
        product = _multiply(grad, result)
        total = sum_kept(product, dim)
        return _subtract(product, _multiply(result, total), product)
    return _along("softmax_backward", _softmax_backward_tile, grad, dim, result)


def _softmax_backward_tile(grad: ndarray, result: ndarray, out: ndarray) -> None:
    _multiply(grad, result, out)
    _subtract(out, _multiply(result, _tile_sums(out)), out)


def log_softmax_backward(grad: ndarray, result: ndarray, dim: int) -> ndarray:
    """The gradient of log_softmax's input: grad - exp(result) * sum(grad)."""
    if result.dtype.char in _NATIVE and result.size <= _SMALL and result.ndim:
        probabilities = _exp(result)
        _multiply(probabilities, sum_kept(grad, dim), probabilities)
        return _subtract(grad, probabilities, probabilities)
    return _along("log_softmax_backward", _log_softmax_backward_tile, grad, dim, result)


def _log_softmax_backward_tile(grad: ndarray, result: ndarray, out: ndarray) -> None:
    total = _tile_sums(grad)
    _exp(result, out)
    _multiply(out, total, out)
    _subtract(grad, out, out)


def _tile_sums(x: ndarray) -> ndarray:
    """The sum over dimension 1, kept, of a tile of two dimensions or three."""
    if x.ndim == 2 and _SHORT < x.shape[1] <= 4096:
        return numpy.einsum("ij->i", x)[:, None]
    return asarray(numpy.add.reduce(x, 1, None, None, True))  # type: ignore[call-overload]


def _along(name: str, tile: Callable[..., None], x: ndarray, dim: int, *others: ndarray) -> ndarray:
    """Call `tile(x, *others, out)` for parts of the arrays in which dimension 1 is `dim`, whole."""
    dim = normalize_dim(dim, x.ndim)
    if not is_floating(x.dtype) and x.size:
        kernel = f"{name}_lastdim_kernel_impl" if dim == max(x.ndim - 1, 0) else f"{name}_kernel_impl"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(x.dtype)}'")
    result = numpy.empty(x.shape, x.dtype)
    if x.size == 0:
        return result
    length = x.shape[dim] if x.ndim else 1
    inner = math.prod(x.shape[dim + 1 :])
    shape = (-1, length) if inner == 1 else (-1, length, inner)
    arrays = [array.reshape(shape) for array in (x, *others, result)]
    half = compute_dtype(x.dtype) != x.dtype
    across = inner == 1 and 1 < length <= _SHORT

    def work(where: Any) -> None:
        *parts, out = [array[where] for array in arrays]
        if half or across:
            if across:
                parts = [part.T[None] for part in parts]
            parts = [numpy.ascontiguousarray(widen(part)) for part in parts]
            scratch = numpy.empty(parts[0].shape, parts[0].dtype)
            tile(*parts, scratch)
            out[...] = scratch[0].T if across else scratch
        else:
            tile(*parts, out)

    column_bytes = length * (4 if half else x.itemsize) * (1 + len(others))
    if inner == 1 or column_bytes * inner <= TILE_BYTES:
        parallel_rows(lambda start, stop: work(slice(start, stop)), len(arrays[0]), column_bytes * inner)
        return result
    # Too much for the cache in one block: tiles of columns, wide enough for vector loops.
    width = min(inner, 256)
    for block in range(len(arrays[0])):
        columns = lambda start, stop, i=block: (slice(i, i + 1), slice(None), slice(start * width, stop * width))
        parallel_rows(lambda start, stop, at=columns: work(at(start, stop)), -(-inner // width), width * column_bytes)  # type: ignore[misc]
    return result


def logsumexp(x: ndarray, dim: Dims, keepdim: bool = False) -> ndarray:
    """log(sum(exp(x))) over `dim`, without overflow; integers are converted to the default floating-point type.

    Raises:
        IndexError: if `dim` is out of range.
    """
    if not is_inexact(x.dtype):
        x = x.astype(dtypes.get_default_dtype().numpy)
    dims = normalize_dims(dim, x.ndim)
    if dim == () and x.ndim:
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {list(x.shape)}")
    if reduction.count(x.shape, dims) == 0:
        shape = [1 if axis in dims else n for axis, n in enumerate(x.shape) if keepdim or axis not in dims]
        return numpy.full(shape, -math.inf, x.dtype)
    wide = widen(x)
    largest = reduction.amax(wide.real, dims, True)
    largest = numpy.where(numpy.isinf(largest), 0, largest)
    if wide.size <= _SMALL:
        total = asarray(numpy.add.reduce(_exp(wide - largest), dims, None, None, True))  # type: ignore[call-overload]
    else:
        total = reduction.sum(_exp_shifted(wide, largest), dims, True)
    _log(total, out=total)
    total += largest
    return row_major((total if keepdim else total.squeeze(dims)).astype(x.dtype, copy=False))


def _exp_shifted(x: ndarray, shift: ndarray) -> ndarray:
    shifted = numpy.subtract(x, shift, order="C")
    flat = shifted.reshape(-1)
    parallel_rows(lambda start, stop: _exp(flat[start:stop], flat[start:stop]), flat.size, flat.itemsize)
    return shifted

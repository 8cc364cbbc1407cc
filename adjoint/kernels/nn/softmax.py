"""Softmax, its logarithm, log-sum-exp, and their vector-Jacobian products.

The largest element is subtracted first, so nothing overflows. A row that holds nan, or nothing but -inf, gives nan.
Large arrays are worked through in tiles that stay in cache, by several threads; half types are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import asarray, ndarray

from ... import dtypes
from ...codegen.rows import Refusing, row_program
from ...codegen.tracing import PerRow, row, xp
from ..reduce import reduction
from ..reduce.reduction import sum_kept
from ..runtime.floating import is_floating, is_inexact, quietly, refuse, widen
from ..runtime.layout import row_major
from ..runtime.shapes import Dims, names_all, normalize_dims

Array = numpy.ndarray[Any, Any]

_SMALL = 4096  # elements; larger arrays are worked through in tiles
_NATIVE = "fd"
_MODERATE = 40  # of numbers up to this the exponential can be summed in float32 as it is
_CLOSE = 8

_max: Any = numpy.maximum.reduce
_exp, _log, _subtract, _multiply, _divide = numpy.exp, numpy.log, numpy.subtract, numpy.multiply, numpy.true_divide


def _refusing(name: str) -> Refusing:
    """What refuses integers in the name of PyTorch's kernel, which it has one of for the last dimension."""

    def refuse_integers(x: ndarray, dim: int) -> None:
        if not is_floating(x.dtype) and x.size:
            raise refuse(f"{name}_lastdim_kernel_impl" if dim == max(x.ndim - 1, 0) else f"{name}_kernel_impl", x)

    return refuse_integers


def softmax(x: ndarray, dim: int) -> ndarray:
    """The exponential of `x` divided by its sum along `dim`.

    Raises:
        IndexError: if `dim` is out of range.
        NotImplementedError: if `x` is not floating-point.
    """
    if not _is_small(x, dim):
        return softmax_rows.run((x,), dim)
    if x.item(x.argmin()) > -_MODERATE and x.item(x.argmax()) < _MODERATE:
        return _normalized(x, dim)
    return quietly(_normalized, _shifted(x, dim), dim)


def _is_small(x: ndarray, dim: int) -> bool:
    return (
        x.dtype.char in _NATIVE
        and 0 < x.size <= _SMALL
        and type(dim) is int
        and -x.ndim <= dim < x.ndim
        and x.flags.c_contiguous
    )


def _shifted(x: ndarray, dim: int) -> ndarray:
    """`x` less its maximum along `dim`."""
    shifted: ndarray = quietly(_subtract, x, _max(x, dim, None, None, True))
    return shifted


def _normalized(x: ndarray, dim: int) -> ndarray:
    result = _exp(x)
    return _divide(result, sum_kept(result, dim), result)


@row_program(_refusing("softmax"))
def softmax_rows(x: Array) -> Any:
    """The exponential of what the row falls short of its maximum, divided by the sum."""
    exponential = xp.exp(x - row.max(x))
    return exponential / row.sum(exponential)


def safe_softmax(x: ndarray, dim: int) -> ndarray:
    """`softmax`, but 0 along `dim` where all elements are -inf."""
    result = softmax(x, dim)
    if x.size:
        result[numpy.broadcast_to(_max(x, dim, None, None, True) == -math.inf, x.shape)] = 0
    return result


def log_softmax(x: ndarray, dim: int) -> ndarray:
    """The logarithm of softmax: `x` less the logarithm of the sum of exp(x) along `dim`.

    Raises:
        IndexError: if `dim` is out of range.
        NotImplementedError: if `x` is not floating-point.
    """
    if not _is_small(x, dim):
        return log_softmax_rows.run((x,), dim)
    # One number for all is cheaper to find and to subtract. It costs accuracy: the rounding of numbers up to `_CLOSE`.
    largest = x.item(x.argmax())
    if largest - x.item(x.argmin()) < _CLOSE:
        return _log_normalized(_subtract(x, asarray(largest, x.dtype)), dim)
    return quietly(_log_normalized, _shifted(x, dim), dim)


def _log_normalized(x: ndarray, dim: int) -> ndarray:
    """`x`, which is overwritten, less the logarithm of the sum of its exponential along `dim`."""
    total = sum_kept(_exp(x), dim)
    return _subtract(x, _log(total, total), x)


@row_program(_refusing("log_softmax"))
def log_softmax_rows(x: Array) -> Any:
    """What the row falls short of its maximum, less the logarithm of the sum of its exponential."""
    shifted = x - row.max(x)
    return shifted - xp.log(row.sum(xp.exp(shifted)))


def softmax_backward(grad: ndarray, result: ndarray, dim: int) -> ndarray:
    """The gradient of softmax's input: result * (grad - sum(grad * result))."""
    if result.dtype.char in _NATIVE and result.size <= _SMALL and result.ndim and grad.flags.c_contiguous:
        product = _multiply(grad, result)
        _subtract(grad, sum_kept(product, dim), product)
        return _multiply(product, result, product)
    return softmax_backward_rows.run((grad, result), dim)


@row_program(_refusing("softmax_backward"))
def softmax_backward_rows(grad: Array, result: Array) -> Any:
    """`result * (grad - sum(grad * result))`."""
    return result * (grad - row.sum(grad * result))


def log_softmax_backward(grad: ndarray, result: ndarray, dim: int) -> ndarray:
    """The gradient of log_softmax's input: grad - exp(result) * sum(grad)."""
    if result.dtype.char in _NATIVE and result.size <= _SMALL and result.ndim:
        probabilities = _exp(result)
        _multiply(probabilities, sum_kept(grad, dim), probabilities)
        return _subtract(grad, probabilities, probabilities)
    return log_softmax_backward_rows.run((grad, result), dim)


@row_program(_refusing("log_softmax_backward"))
def log_softmax_backward_rows(grad: Array, result: Array) -> Any:
    """`grad - exp(result) * sum(grad)`."""
    return grad - xp.exp(result) * row.sum(grad)


def logsumexp(x: ndarray, dim: Dims, keepdim: bool = False) -> ndarray:
    """log(sum(exp(x))) over `dim`, without overflow; integers are converted to the default floating-point type.

    Raises:
        IndexError: if `dim` is out of range.
    """
    if not is_inexact(x.dtype):
        x = x.astype(dtypes.get_default_dtype().numpy)
    dims = normalize_dims(dim, x.ndim)
    if dim is not None and names_all(dim) and x.ndim:
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {list(x.shape)}")
    if reduction.count(x.shape, dims) == 0:
        shape = [1 if axis in dims else n for axis, n in enumerate(x.shape) if keepdim or axis not in dims]
        return numpy.full(shape, -math.inf, x.dtype)
    if x.dtype.kind == "c" or x.size <= _SMALL:
        total = _logsumexp_in_steps(widen(x), dims)
    else:
        total = _as_rows(x, dims, lambda rows: logsumexp_rows.run((rows,), 1))
    return row_major((total if keepdim else total.squeeze(dims)).astype(x.dtype, copy=False))


@row_program()
def logsumexp_rows(x: Array) -> Any:
    """The logarithm of the sum of the exponentials of the row, of which the largest finite element is factored out."""
    largest = row.max(x)
    shift = xp.where(xp.isinf(largest), 0, largest)
    return xp.log(row.sum(xp.exp(x - shift))) + shift


def logsumexp_backward(grad: ndarray, x: ndarray, result: ndarray, dim: Dims, keepdim: bool) -> ndarray:
    """The gradient of logsumexp's input: grad * exp(x - result)."""
    grad, result = (reduction.kept(item, x.shape, dim, keepdim) for item in (grad, result))
    dims = normalize_dims(dim, x.ndim)
    if len(dims) == 1 and x.ndim and x.size > _SMALL and x.dtype.char in _NATIVE and grad.dtype == x.dtype:
        return logsumexp_backward_rows.run((grad, x, result), dims[0])
    to_input: ndarray = grad * _exp(x - result).conj()
    return to_input


@row_program()
def logsumexp_backward_rows(grad: PerRow, x: Array, result: PerRow) -> Any:
    """`grad * exp(x - result)`."""
    return grad * xp.exp(x - result)


def _as_rows(x: ndarray, dims: tuple[int, ...], function: Callable[[ndarray], ndarray]) -> ndarray:
    """What a function makes of rows, one number of each, for rows that lie along all of `dims`; these keep length 1."""
    others = [axis for axis in range(x.ndim) if axis not in dims]
    kept = tuple(1 if axis in dims else n for axis, n in enumerate(x.shape))
    rows = x.transpose(*others, *dims).reshape(math.prod(kept), -1)
    return function(rows).reshape(kept)


def _logsumexp_in_steps(x: ndarray, dims: tuple[int, ...]) -> ndarray:
    largest = reduction.amax(x.real, dims, True)
    largest = numpy.where(numpy.isinf(largest), 0, largest)
    total: ndarray = numpy.log(reduction.sum(_exp(x - largest), dims, True)) + largest
    return total

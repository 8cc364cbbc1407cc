"""Softmax, its logarithm, log-sum-exp, and their vector-Jacobian products.

The largest element is subtracted first, so nothing overflows. A row that contains NaN, or only -inf, gives NaN.
Half types are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
from numpy import ndarray

from ... import dtypes
from ...codegen.kernel import Kernel
from ...codegen.plans import replayed
from ...codegen.recording import recordable
from ...codegen.rows import Refusing, RowProgram, row_program
from ...codegen.tracing import PerRow, row, xp
from ..memory.copying import rounded
from ..reduce import reduction
from ..runtime.floating import Array, is_floating, is_inexact, refuse
from ..runtime.layout import row_major
from ..runtime.shapes import Dims, names_all, normalize_dims

_NATIVE = "fd"


def _kernel(program: RowProgram, quiet: bool = False) -> Kernel:
    """Return the kernel that computes a row program along a dimension, which is its last argument."""

    def along(*arguments: Any) -> Any:
        *arrays, dim = arguments
        return program.run(arrays, dim)

    along.__name__ = program.name.removesuffix("_rows")
    return Kernel(recordable(along), quiet=quiet, rows=program)


def _refusing(name: str) -> Refusing:
    """Return the check that raises PyTorch's error for integers. The last dimension has a kernel of its own."""

    def refuse_integers(x: ndarray, dim: int) -> None:
        if not is_floating(x.dtype) and x.size:
            raise refuse(f"{name}_lastdim_kernel_impl" if dim == max(x.ndim - 1, 0) else f"{name}_kernel_impl", x)

    return refuse_integers


@row_program(_refusing("softmax"))
def softmax_rows(x: Array) -> Any:
    """Return the exponentials of the row minus its maximum, divided by their sum."""
    exponential = xp.exp(x - row.max(x))
    return exponential / row.sum(exponential)


softmax = _kernel(softmax_rows, quiet=True)


def safe_softmax(x: ndarray, dim: int) -> ndarray:
    """Return `softmax`, but 0 if all elements along `dim` are -inf."""
    result: ndarray = softmax(x, dim)
    if x.size:
        result[numpy.broadcast_to(numpy.maximum.reduce(x, dim, keepdims=True) == -math.inf, x.shape)] = 0
    return result


@row_program(_refusing("log_softmax"))
def log_softmax_rows(x: Array) -> Any:
    """Return the row minus its maximum, minus the logarithm of the sum of the exponentials of that difference."""
    shifted = x - row.max(x)
    return shifted - xp.log(row.sum(xp.exp(shifted)))


log_softmax = _kernel(log_softmax_rows, quiet=True)


@row_program(_refusing("softmax_backward"))
def softmax_backward_rows(grad: Array, result: Array) -> Any:
    """Return `result * (grad - sum(grad * result))`."""
    return result * (grad - row.sum(grad * result))


softmax_backward = _kernel(softmax_backward_rows)


@row_program(_refusing("log_softmax_backward"))
def log_softmax_backward_rows(grad: Array, result: Array) -> Any:
    """Return `grad - exp(result) * sum(grad)`."""
    return grad - xp.exp(result) * row.sum(grad)


log_softmax_backward = _kernel(log_softmax_backward_rows)


@replayed
def logsumexp(x: ndarray, dim: Dims, keepdim: bool = False) -> ndarray:
    """Return log(sum(exp(x))) over `dim`, without overflow. Integers are converted to the default floating-point type."""
    if not is_inexact(x.dtype):
        x = x.astype(dtypes.get_default_dtype().numpy)
    dims = normalize_dims(dim, x.ndim)
    if dim is not None and names_all(dim) and x.ndim:
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {list(x.shape)}")
    if reduction.count(x.shape, dims) == 0:
        shape = [1 if axis in dims else n for axis, n in enumerate(x.shape) if keepdim or axis not in dims]
        return numpy.full(shape, -math.inf, x.dtype)
    if x.dtype.kind == "c":
        total = _logsumexp_in_steps(x, dims)
    else:
        total = _as_rows(x, dims, lambda rows: logsumexp_rows.run((rows,), 1))
    return row_major(rounded(total if keepdim else total.squeeze(dims), x.dtype))


@row_program()
def logsumexp_rows(x: Array) -> Any:
    """Return the logarithm of the sum of the exponentials of the row. The largest finite element is factored out."""
    largest = row.max(x)
    shift = xp.where(xp.isinf(largest), 0, largest)
    return xp.log(row.sum(xp.exp(x - shift))) + shift


@replayed
def logsumexp_backward(grad: ndarray, x: ndarray, result: ndarray, dim: Dims, keepdim: bool) -> ndarray:
    """Return the gradient of logsumexp's input: grad * exp(x - result)."""
    grad, result = (reduction.kept(item, x.shape, dim, keepdim) for item in (grad, result))
    dims = normalize_dims(dim, x.ndim)
    if len(dims) == 1 and x.ndim and x.dtype.char in _NATIVE and grad.dtype == x.dtype:
        return logsumexp_backward_rows.run((grad, x, result), dims[0])
    to_input: ndarray = grad * numpy.exp(x - result).conj()
    return to_input


@row_program()
def logsumexp_backward_rows(grad: PerRow, x: Array, result: PerRow) -> Any:
    """Return `grad * exp(x - result)`."""
    return grad * xp.exp(x - result)


def _as_rows(x: ndarray, dims: tuple[int, ...], function: Callable[[ndarray], ndarray]) -> ndarray:
    """Reduce `dims` with a function of rows. The reduced dimensions keep length 1."""
    others = [axis for axis in range(x.ndim) if axis not in dims]
    kept = tuple(1 if axis in dims else n for axis, n in enumerate(x.shape))
    rows = x.transpose(*others, *dims).reshape(math.prod(kept), math.prod(x.shape[axis] for axis in dims))
    return function(rows).reshape(kept)


def _logsumexp_in_steps(x: ndarray, dims: tuple[int, ...]) -> ndarray:
    largest = reduction.amax(x.real, dims, True)
    largest = numpy.where(numpy.isinf(largest), 0, largest)
    total: ndarray = numpy.log(reduction.sum(numpy.exp(x - largest), dims, True)) + largest
    return total

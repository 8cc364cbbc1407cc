"""Products of several matrices, powers of one, and products of vectors along a dimension (`adjoint.linalg`)."""

from __future__ import annotations

from ..kernels import linalg as kernels
from ..kernels.floating import is_inexact
from ..kernels.matmul import c_name
from .build import public, tensors
from .dispatch import is_of_type
from .matmul import check_tensors, mm, vdot
from .matmul import matmul as general_product
from .out import STRICT, stored

MULTI_DOT = "multi_dot(): expected out tensor to have dtype {wanted_c} but got {given_c}"
VECDOT = "linalg.vecdot: Expected out of dtype{wanted} but found {given}"


@public(namespace="linalg", numpy_names=True)
def matmul(input, other, *, out=None):
    """The product of two tensors: `adjoint.matmul`."""
    return general_product(input, other, out=out)


@public(namespace="linalg")
def multi_dot(tensors, *, out=None):
    """The product of several matrices, in the order of the fewest multiplications (Cormen et al., chapter 15.2).

    The first and the last may be vectors.

    >>> import adjoint as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)])
    tensor([12., 12.])
    """
    factors = list(tensors)
    if len(factors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(factors)}")
    shape = []
    if factors[0]._array.ndim == 1:
        factors[0] = factors[0].unsqueeze(0)
    else:
        shape.append(factors[0]._array.shape[0])
    if factors[-1]._array.ndim == 1:
        factors[-1] = factors[-1].unsqueeze(-1)
    else:
        shape.append(factors[-1]._array.shape[-1])
    _check_chain(tensors, factors)
    splits = _best_splits([factor._array.shape[0] for factor in factors] + [factors[-1]._array.shape[1]])
    result = _product(factors, splits, 0, len(factors) - 1).view(tuple(shape))
    return stored("multi_dot", result, out, MULTI_DOT)


def _check_chain(given, factors):
    """Raise unless `factors`, made matrices of what was `given`, can be multiplied in their order."""
    last = len(factors) - 1
    for index, factor in enumerate(factors):
        if factor._array.ndim != 2:
            which = "the first tensor" if index == 0 else "the last tensor" if index == last else f"tensor {index}"
            dims = "1D or 2D" if index in (0, last) else "2D"
            raise RuntimeError(f"multi_dot(): {which} must be {dims} but got {factor._array.ndim}D")
        if factor.dtype is not factors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {c_name(factors[0]._array)} and tensor "
                f"{index} {c_name(factor._array)}"
            )
    for index in range(last):
        if factors[index]._array.shape[1] != factors[index + 1]._array.shape[0]:
            shapes = [list(item._array.shape) for item in given[index : index + 2]]
            raise RuntimeError(
                f"multi_dot(): tensors {index} and {index + 1} with shapes {shapes[0]} and {shapes[1]} cannot be multiplied"
            )


def _best_splits(sizes):
    """Where to split each run of factors, so that there are the fewest multiplications."""
    count = len(sizes) - 1
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for start in range(count - length):
            stop = start + length
            options = [
                cost[start][middle] + cost[middle + 1][stop] + sizes[start] * sizes[middle + 1] * sizes[stop + 1]
                for middle in range(start, stop)
            ]
            cost[start][stop] = least = min(options)
            # Where it makes no difference, PyTorch begins with the first two of three factors, and with the last of more.
            split[start][stop] = stop - 1 if count == 3 and options[-1] == least else start + options.index(least)
    return split


def _product(factors, split, start, stop):
    if start == stop:
        return factors[start]
    middle = split[start][stop]
    return mm(_product(factors, split, start, middle), _product(factors, split, middle + 1, stop))


@public(namespace="linalg", numpy_names=True)
def matrix_power(input, n, *, out=None):
    """Square matrices to the power `n`, by repeated squaring; of the inverse for negative `n`.

    >>> import adjoint as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if not is_of_type(n, "Int"):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    kernels.check_matrix("matrix_power", input._array, square=True, floating=False)
    if n in (0, 1):
        return stored(
            "matrix_power", _trivial_power(input if out is None or n else input.detach(), n), out, recorded=True
        )
    base = tensors.linalg_inv(input) if n < 0 else input
    return stored("matrix_power", _power(base, abs(n)), out, STRICT)


def _trivial_power(input, n):
    result = input.clone()
    return result if n else result.copy_(tensors.eye(input._array.shape[-1], dtype=input.dtype))


def _power(base, n):
    if n == 1:
        return base
    if n == 3:
        return general_product(general_product(base, base), base)
    result = None
    while n:
        if n & 1:
            result = base if result is None else general_product(result, base)
        n >>= 1
        if n:
            base = general_product(base, base)
    return result


@public(name="matrix_power", method=("matrix_power",), numpy_names=True)
def matrix_power_function(input, n, *, out=None):
    """Square matrices to the power `n`: `linalg.matrix_power`."""
    return matrix_power(input, n, out=out)


@public(namespace="linalg")
def vecdot(x, y, *, dim=-1, axis=None, out=None):
    """The sums of the products of two tensors' elements along `dim`, the first conjugated."""
    check_tensors("linalg_vecdot", x=x, y=y)
    if not is_inexact(x._array.dtype):
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_type}"
        )
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.scalar_type} and y of type "
            f"{y.dtype.scalar_type} instead"
        )
    if x._array.ndim == 1 == y._array.ndim:
        result = vdot(x, y)
    else:
        result = tensors.sum(x.conj() * y, dim if axis is None else axis)
    return stored("linalg_vecdot", result, out, VECDOT)

"""Elementwise arithmetic of sparse arrays, and of a sparse array with a dense array or a number."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..math import arithmetic as pointwise
from ..runtime.floating import Array
from ..runtime.shapes import broadcast_shapes
from ..runtime.sparse_array import Compressed, Coordinates, SparseArray, sparse
from .layouts import coalesce, coo, coordinates, elements_at, keys, like, to_dense


def mapped(array: SparseArray, function: Any, *args: Any, **options: Any) -> SparseArray:
    """Apply a function that is 0 at 0 to the stored elements."""
    array = coalesce(array) if isinstance(array.parts, Coordinates) else array
    return sparse(array.parts.with_values(numpy.asarray(function(array.parts.values, *args, **options))), array.shape)


def add(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return `self + alpha * other`, which is sparse if both operands are."""
    if not isinstance(other, SparseArray):
        if isinstance(self.parts, Coordinates):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        if other.shape != self.shape:
            raise RuntimeError(
                f"add: expected 'self' and 'other' to have same size, but self has size {list(other.shape)} while other has size "
                f"{list(self.shape)} (FYI: op2-sparse addition does not currently support broadcasting)"
            )
        return to_dense(self) + (other if alpha == 1 else _scaled(other, alpha))
    if self.shape != other.shape:
        if isinstance(self, SparseArray):
            if isinstance(self.parts, Compressed):
                raise RuntimeError(
                    "torch.add: Expected input tensors to have the same shape, but got tensor `self` with shape "
                    f"{list(self.shape)} and tensor `other` with shape {list(other.shape)}"
                )
            raise RuntimeError(
                f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}"
            )
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(self.shape)} while other has size "
            f"{list(other.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )
    if alpha != 1:
        other = sparse(other.parts.with_values(_scaled(other.parts.values, alpha)), other.shape)
    if not isinstance(self, SparseArray):
        return self + to_dense(other)
    first, second = coordinates(self).parts, coordinates(other).parts
    if len(first.indices) != len(second.indices):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same density, but 'self' has {len(first.indices)} sparse dimensions while "
            f"'other' has {len(second.indices)} sparse dimensions"
        )
    coalesced = first.coalesced and second.coalesced
    if coalesced or not (first.values.flags.c_contiguous and second.values.flags.c_contiguous):  # as in PyTorch
        indices = numpy.concatenate((first.indices, second.indices), axis=1)
        joined = coo(indices, numpy.concatenate((first.values, second.values)), self.shape)
        return like(coalesce(joined) if coalesced else joined, self)
    return _merged(first, second, self.shape)


def add_(self: Array, other: SparseArray, *, alpha: Any = 1) -> Array:
    """Execute `self += alpha * other` for a dense array `self`."""
    if self.shape != other.shape:
        add(self, other)
    parts = coalesce(coordinates(other)).parts
    values = parts.values if alpha == 1 else _scaled(parts.values, alpha)
    if len(parts.indices):
        self[tuple(parts.indices)] += values
    elif len(values):
        self += values[0]
    return self


def sub_(self: Array, other: SparseArray, *, alpha: Any = 1) -> Array:
    """Execute `self -= alpha * other` for a dense array `self`."""
    return add_(self, other, alpha=-alpha)


def _merged(first: Coordinates, second: Coordinates, shape: tuple[int, ...]) -> SparseArray:
    """Merge two lists of elements as PyTorch does: take the smaller of the two next coordinates each time.

    Elements are added if their coordinates are equal when they are compared. In a list that is not sorted, an element
    waits for the greater elements before it.
    """
    count = first.indices.shape[1]
    indices = numpy.concatenate((first.indices, second.indices), axis=1)
    numbers = keys(indices, shape[: len(indices)])
    values = numpy.concatenate((first.values, second.values))
    tops = [numpy.maximum.accumulate(part) for part in (numbers[:count], numbers[count:])]
    if not numpy.intersect1d(tops[0], tops[1]).size:
        order = numpy.argsort(numpy.concatenate(tops), kind="stable")
        return coo(indices[:, order], values[order], shape)
    kept: list[int] = []
    added: list[tuple[int, int]] = []
    left, right = 0, count
    while left < count or right < len(numbers):
        ahead = left < count and (right == len(numbers) or numbers[left] <= numbers[right])
        if ahead and right < len(numbers) and numbers[left] == numbers[right]:
            added.append((len(kept), right))
            right += 1
        kept.append(left if ahead else right)
        left, right = (left + 1, right) if ahead else (left, right + 1)
    result = values[kept]
    if added:
        targets, sources = zip(*added, strict=True)
        result[list(targets)] += values[list(sources)]
    return coo(indices[:, kept], result, shape)


def _scaled(values: Array, factor: Any) -> Array:
    return numpy.multiply(values, numpy.asarray(factor).astype(values.dtype))


def sub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return `self - alpha * other`, which is sparse if both operands are."""
    return add(self, other, alpha=-alpha)


def rsub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return `other - alpha * self`."""
    return add(other, self, alpha=-alpha)


def mul(self: Any, other: Any) -> Any:
    """Return `self * other`, which is sparse."""
    if not isinstance(self, SparseArray):
        self, other = other, self
    if isinstance(other, SparseArray):
        return _product(self, other)
    if numpy.ndim(other) == 0:
        return sparse(self.parts.with_values(numpy.multiply(self.parts.values, other)), self.shape)
    shape = broadcast_shapes(self.shape, other.shape)
    if shape != self.shape:
        if not isinstance(self.parts, Coordinates):
            raise RuntimeError(
                f"mul(sparse, dense): the dense operand of size {list(other.shape)} must broadcast to the size "
                f"{list(self.shape)} of the sparse one"
            )
        self = _broadcast(self, shape)
    other = numpy.broadcast_to(other, shape)
    whole = coordinates(self)
    parts = whole.parts
    found = elements_at(other, parts.indices, ())
    return like(sparse(parts.with_values(numpy.multiply(parts.values, found)), shape), self)


def _broadcast(array: SparseArray, shape: tuple[int, ...]) -> SparseArray:
    """Return an array of coordinates broadcast to `shape`. New dimensions are sparse."""
    parts, extra = array.parts, len(shape) - array.ndim
    old, (count, stored) = (1,) * extra + array.shape, parts.indices.shape
    wide = [dim for dim in range(extra + count) if old[dim] != shape[dim]]
    lengths = [shape[dim] for dim in wide]
    copies = math.prod(lengths)
    indices = numpy.zeros((extra + count, copies, stored), numpy.int64)
    indices[extra:] = parts.indices[:, None]
    indices[wide] = numpy.stack(numpy.unravel_index(numpy.arange(copies), lengths))[:, :, None] if wide else 0
    values = numpy.broadcast_to(parts.values, (copies, stored, *shape[extra + count :]))
    values = values.reshape(copies * stored, *values.shape[2:])
    return coo(indices.reshape(extra + count, -1), values, shape, parts.coalesced and wide == [*range(len(wide))])


def _product(first: SparseArray, second: SparseArray) -> SparseArray:
    """Return the product of two sparse arrays.

    The product stores the coordinates that both arrays store, or the coordinates of the second array if one is not coalesced.
    """
    if not first.ndim or not second.ndim:
        scalar, array = (second, first) if first.ndim else (first, second)
        return sparse(array.parts.with_values(numpy.multiply(array.parts.values, to_dense(scalar))), array.shape)
    if first.shape != second.shape:
        count = len(coordinates(first).parts.indices)
        if first.ndim != second.ndim or first.shape[:count] != second.shape[:count]:
            raise RuntimeError(
                "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse "
                f"dimensions, and shape of sparse dimensions, but got sizes {list(first.shape)} and {list(second.shape)}"
            )
        shape = broadcast_shapes(first.shape, second.shape)
        first, second = _broadcast(first, shape), _broadcast(second, shape)
    one, two = coordinates(first).parts, coordinates(second).parts
    if not (one.coalesced and two.coalesced):
        found = elements_at(first, two.indices, one.values.shape[1:])
        return like(coo(two.indices, numpy.multiply(found, two.values), first.shape, two.coalesced), first)
    count = one.indices.shape[1]
    both = keys(numpy.concatenate((one.indices, two.indices), axis=1), first.shape[: len(one.indices)])
    _, left, right = numpy.intersect1d(both[:count], both[count:], assume_unique=True, return_indices=True)
    values = numpy.multiply(one.values[left], two.values[right])
    return like(coo(one.indices[:, left], values, first.shape, True), first)


def div(self: Any, other: Any) -> Any:
    """Return `self / other` for `other` without dimensions."""
    return _divided(self, other, "division", numpy.true_divide)


def div_rounded(self: Any, other: Any, rounding_mode: str = "floor") -> Any:
    """Return `self / other`, rounded, for a number or an array `other` without dimensions."""
    if isinstance(self, SparseArray) and isinstance(self.parts, Coordinates):
        self = coalesce(self)
    return _divided(self, other, "floor division", pointwise.div_rounded, rounding_mode)


def _divided(self: Any, other: Any, name: str, function: Any, *options: Any) -> Any:
    if isinstance(other, SparseArray) or numpy.ndim(other):
        raise RuntimeError(
            f"Sparse {name} requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for divisor)"
        )
    return sparse(self.parts.with_values(function(self.parts.values, other, *options)), self.shape)


def power(self: Any, exponent: Any) -> Any:
    """Return `self ** exponent` for a number `exponent`."""
    if isinstance(exponent, SparseArray) or not isinstance(self, SparseArray) or numpy.ndim(exponent):
        return NotImplemented
    if exponent == 0:
        raise RuntimeError("cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    return mapped(self, numpy.power, numpy.asarray(exponent).astype(self.dtype))


def threshold_backward(grad: Any, self: Any, threshold: Any) -> Any:
    """Return `grad` where `self` is greater than `threshold`."""
    above = mapped(self, lambda values: values > threshold) if isinstance(self, SparseArray) else self > threshold
    return mul(grad, above.astype(grad.dtype))


def sum_of_gradients(first: Any, second: Any, out: Any) -> Any:
    """Return the sum of two gradients, one of them sparse. `out`: the first, if it is dense and receives the sum."""
    if out:
        return add_(first, second)
    if isinstance(first, SparseArray) and not isinstance(second, SparseArray):
        first, second = second, first
    return add(first, second)


SparseArray._sum_of_gradients = staticmethod(sum_of_gradients)

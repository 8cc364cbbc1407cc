"""Distances between the rows of one or two matrices, slices whose norm is limited, and products of three arrays."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy

from ...codegen.acceleration import LOOPS
from ...codegen.compiled_ufuncs import of_any_size
from ...codegen.plans import compiled
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..memory.copying import rounded, widen
from ..reduce import moments
from ..runtime.costs import MOVED, PART, TILE
from ..runtime.floating import HALVES, Array, is_floating, refuse, type_name, unwarned
from ..runtime.layout import row_major
from ..runtime.parallel import parallel_rows
from ..runtime.shapes import broadcast_shapes, normalize_dim

_DISTANCES = compiled("linalg.distance.distances_of", least=MOVED)
_GRADIENT = compiled("linalg.distance.gradient_of", least=MOVED)


def pdist(self: Array, p: float) -> Array:
    """Return the `p`-norm of the difference of each pair of rows `i < j`, with the shape `(N (N - 1) / 2,)`."""
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if not is_floating(self.dtype):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if self.dtype.itemsize == 2:
        raise refuse("pdist", self)
    found = _DISTANCES.run(len(self) * self.size, self, self, p, True)
    if found is not NotImplemented:
        return numpy.asarray(found)
    if len(self) * self.size < TILE:
        return numpy.asarray(_norms(_differences(self), p))
    distances = [_norms(self[row + 1 :] - self[row], p) for row in range(len(self))]
    return numpy.concatenate(distances, dtype=self.dtype)


def _differences(self: Array) -> Array:
    first, second = numpy.triu_indices(len(self), 1)
    return self[first] - self[second]


def pdist_backward(grad: Array, self: Array, p: float, distance: Array) -> Array:
    """Return the gradient of the argument of `pdist`."""
    if grad.dtype == self.dtype:
        found = _GRADIENT.run(len(self) * self.size, grad, self, self, p, distance, True)
        if found is not NotImplemented:
            return numpy.asarray(found)
    parts = norm_slopes(_differences(self), p, distance.reshape(-1, 1)) * grad.reshape(-1, 1)
    count, width = self.shape
    square = numpy.zeros((count, count, width), parts.dtype)
    square[numpy.triu_indices(count, 1)] = parts
    return numpy.add.reduce(square, 1) - numpy.add.reduce(square, 0)


def norm_slopes(difference: Array, p: float, norm: Array) -> Array:
    """Return the derivatives of the norms of the rows of `difference`, which are 0 at the corner where a norm is 0."""
    if p == 0:
        return numpy.zeros_like(difference)
    if p == 1:
        return numpy.sign(difference)
    if p == math.inf:
        return numpy.sign(difference) * (numpy.abs(difference) == norm)
    with unwarned():
        if p == 2:
            slopes = difference / norm
        else:
            slopes = numpy.sign(difference) * (numpy.abs(difference) / norm) ** (p - 1)
    return numpy.where((norm == 0) | (difference == 0), 0, slopes).astype(difference.dtype, copy=False)


_GROWTH = 64
"""BLAS computes the product of two operands if the product is at most this many times as large as the largest operand."""


def trilinear(
    i1: Array, i2: Array, i3: Array, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int],
    sumdim: Sequence[int],
) -> Array:  # fmt: skip
    """Return `(i1 * i2 * i3).sum(sumdim)`, where each operand first gets new dimensions of size 1 at its `expand` positions.

    Parts of the longest dimension are computed one after another, so that the products of two operands stay in the cache.
    """
    total = i1.ndim + len(expand1)
    own = [[dim for dim in range(total) if dim not in expand] for expand in (expand1, expand2, expand3)]
    operands = [widen(array) for array in (i1, i2, i3)]
    shape = [1] * total
    for dims, array in zip(own, operands, strict=True):
        for dim, size in zip(dims, array.shape, strict=True):
            shape[dim] = size if shape[dim] == 1 else shape[dim]
    kept = [dim for dim in range(total) if dim not in sumdim]
    result = numpy.zeros([shape[dim] for dim in kept], operands[0].dtype)
    if not math.prod(shape):
        return rounded(result, i1.dtype)
    longest = max(range(total), key=shape.__getitem__)
    axes = [
        dims.index(longest) if longest in dims and array.shape[dims.index(longest)] > 1 else None
        for dims, array in zip((*own, kept), (*operands, result), strict=True)
    ]
    products = math.prod(shape) // sorted(shape)[-2] if total > 1 else 1
    step = max(1, PART * shape[longest] // products)
    optimize = ("greedy", _GROWTH * max(array.size for array in operands)) if i1.dtype.kind != "c" else False
    for start in range(0, shape[longest], step):
        *parts, target = [
            array if axis is None else array[(*[slice(None)] * axis, slice(start, start + step))]
            for array, axis in zip((*operands, result), axes, strict=True)
        ]
        labelled: Any = itertools.chain.from_iterable(zip(parts, own, strict=True))
        target += numpy.einsum(*labelled, kept, optimize=optimize)
    return rounded(result, i1.dtype)


def cdist(x1: Array, x2: Array, p: float) -> Array:
    """Return the `p`-norms of the differences of rows of `x1` and `x2`: `(..., P, M)`, `(..., R, M)` give `(..., P, R)`."""
    if x1.dtype != x2.dtype:
        raise RuntimeError(f"expected scalar type {type_name(x1.dtype)} but found {type_name(x2.dtype)}")
    if x1.dtype in HALVES:
        raise refuse("cdist", x1)
    if x1.ndim == x2.ndim == 2 and 0 < x1.size * len(x2) < MOVED and not LOOPS.every_size:
        return numpy.asarray(_norms(x1[:, None] - x2, p))
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    shape = (*batch, x1.shape[-2], x2.shape[-2])
    if 0 in shape or not x1.shape[-1]:
        return numpy.zeros(shape, x1.dtype)
    left, right = x1, x2
    if batch:
        left, right = (numpy.broadcast_to(item, (*batch, *item.shape[-2:])) for item in (x1, x2))
    found = _DISTANCES.run(math.prod(shape) * x1.shape[-1], left, right, p, False)
    if found is not NotImplemented:
        return numpy.asarray(found)
    result = numpy.empty(shape, x1.dtype)
    for place in numpy.ndindex(batch):

        def work(start: int, stop: int, place: tuple[int, ...] = place) -> None:
            result[place][start:stop] = _norms(left[place][start:stop, None] - right[place], p)

        parallel_rows(work, left.shape[-2], right[place].nbytes)
    return result


def _norms(difference: Array, p: float) -> Any:
    """Return the `p`-norms over the last dimension."""
    if p == 2:
        return numpy.sqrt(numpy.einsum("...i,...i->...", difference, difference))
    size = numpy.abs(difference)
    if p == 0:
        return numpy.add.reduce(numpy.where(numpy.isnan(size), size, size != 0), -1, dtype=size.dtype)
    if p == 1:
        return numpy.add.reduce(size, -1)
    if p == math.inf:
        return numpy.maximum.reduce(size, -1, initial=0)
    return numpy.add.reduce(size**p, -1) ** (1 / p)


def cdist_backward(grad: Array, x1: Array, x2: Array, p: float, distance: Array) -> Array:
    """Return the gradient of `x1` before summation over broadcast dimensions. It is 0 at a distance of 0."""
    batch = grad.shape[:-2]
    left = numpy.broadcast_to(x1, (*batch, *x1.shape[-2:]))
    result = numpy.zeros(left.shape, x1.dtype)
    if p == 0 or not result.size or not grad.size:
        return result
    right = numpy.broadcast_to(x2, (*batch, *x2.shape[-2:]))
    if grad.dtype == x1.dtype == x2.dtype:
        found = _GRADIENT.run(grad.size * x1.shape[-1], grad, left, right, p, distance, False)
        if found is not NotImplemented:
            return numpy.asarray(found)
    for place in numpy.ndindex(batch):

        def work(start: int, stop: int, place: tuple[int, ...] = place) -> None:
            rows = slice(start, stop)
            difference = left[place][rows, None] - right[place]
            slopes = norm_slopes(difference, p, distance[place][rows, :, None])
            result[place][rows] = numpy.einsum("ij,ijk->ik", grad[place][rows], slopes)

        parallel_rows(work, left.shape[-2], 2 * right[place].nbytes)
    return result


def euclidean_dist(x1: Array, x2: Array) -> Array:
    """Euclidean distances of rows by one product of matrices, from `|a - b|² = |a|² + |b|² - 2ab`."""
    if x1.dtype != x2.dtype:
        raise RuntimeError(f"expected scalar type {type_name(x1.dtype)} but found {type_name(x2.dtype)}")
    one, two = widen(x1), widen(x2)
    squares = numpy.matmul(one, numpy.swapaxes(two, -1, -2))
    squares *= -2
    squares += numpy.einsum("...i,...i->...", one, one)[..., :, None]
    squares += numpy.einsum("...i,...i->...", two, two)[..., None, :]
    numpy.maximum(squares, 0, out=squares)
    return rounded(numpy.sqrt(squares, out=squares), x1.dtype)


_MULTIPLY = of_any_size(numpy.multiply)


@pointwise("euclidean_dist")
def grad_by_distance(grad: Array, distance: Array) -> Any:
    """Return `grad / distance`, or 0 at a distance of 0, where the distance has a corner."""
    return xp.where(distance == 0, grad * 0, grad / distance)


def renorm(self: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Return `self`, with slices along `dim` scaled down if their `p`-norm exceeds `maxnorm`."""
    dim = operator.index(dim)
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    dim = normalize_dim(dim, self.ndim)
    norms = moments.norm(widen(self), p, tuple([d for d in range(self.ndim) if d != dim]), True)
    if self.dtype.char in "fd":
        return row_major(_shrunk(self, norms, float(maxnorm)))
    return row_major(_MULTIPLY(self, _shrinking(norms, float(maxnorm)).astype(self.dtype, copy=False)))


@pointwise("renorm")
def _shrunk(self: Array, norm: Array, maxnorm: float) -> Any:
    """Return the slices times `_shrinking` of their norms, computed in one loop."""
    return self * xp.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)


@pointwise("renorm")
def _shrinking(norm: Array, maxnorm: float) -> Any:
    """Return the factor that reduces a norm to `maxnorm` if it exceeds it."""
    return xp.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)

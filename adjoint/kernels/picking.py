"""What picking elements along a dimension needs: reading them, and putting gradients back where they came from."""

from __future__ import annotations

from typing import Any

import numpy

from .floating import widen

Array = numpy.ndarray[Any, Any]


def selected_values(x: Array, dim: int, indices: Array, keepdim: bool) -> Array:
    """The elements of `x` at `indices` along `dim`; `keepdim` says whether `indices` has that dimension."""
    if x.ndim == 0:
        return x.copy()
    where = indices if keepdim else numpy.expand_dims(indices, dim)
    values = numpy.take_along_axis(x, where, dim)
    return values if keepdim else values.squeeze(dim)


def value_selecting_backward(grad: Array, shape: tuple[int, ...], dim: int, indices: Array, keepdim: bool) -> Array:
    """Zeros of `shape` with `grad` at `indices` along `dim`."""
    if not shape:
        return numpy.asarray(grad).reshape(())
    result = numpy.zeros(shape, grad.dtype)
    if not keepdim:
        grad, indices = numpy.expand_dims(grad, dim), numpy.expand_dims(indices, dim)
    numpy.put_along_axis(result, indices, grad, dim)
    return result


def add_at_selected(grad: Array, shape: tuple[int, ...], dim: int, indices: Array) -> Array:
    """Zeros of `shape` to which `grad` is added at `indices` along `dim`, of which several may be the same."""
    if not shape:
        return numpy.asarray(grad).reshape(())
    result = numpy.zeros(shape, grad.dtype)
    places = list(numpy.indices(indices.shape, sparse=True))
    places[dim] = indices
    numpy.add.at(result, tuple(places), grad)
    return result


def gathered(x: Array, dim: int, indices: Array) -> Array:
    """The elements of `x` at `indices` along `dim`."""
    return x.copy() if x.ndim == 0 else numpy.take_along_axis(x, indices, dim)


def others_product(x: Array, dim: int) -> Array:
    """For each element the product of the others along `dim`: what precedes it times what follows it."""
    before, after = numpy.ones_like(x), numpy.ones_like(x)
    along = numpy.moveaxis(x, dim, 0)
    numpy.cumprod(along[:-1], axis=0, out=numpy.moveaxis(before, dim, 0)[1:])
    numpy.cumprod(along[:0:-1], axis=0, out=numpy.moveaxis(after, dim, 0)[-2::-1] if len(along) > 1 else None)
    return before * after


def cumprod_backward(grad: Array, x: Array, result: Array, dim: int) -> Array:
    """The gradient of `cumprod`: each element's is a sum over all later products, each without that element.

    Without zeros that is the reversed cumulative sum of `grad * result`, divided by the element; where there are zeros the sum
    is taken as it stands.
    """
    if x.size <= 1:
        return numpy.asarray(grad)
    g, a, r = (numpy.moveaxis(widen(numpy.asarray(value)), dim, 0) for value in (grad, x, result))
    if not (x == 0).any():
        summed = numpy.cumsum((g * r.conj())[::-1], axis=0)[::-1] / a.conj()
    else:
        summed = numpy.empty_like(g * a)
        before = numpy.ones_like(a[:1])[0] if len(a) else None
        for i in range(len(a)):
            products = numpy.concatenate([before[None], a[i + 1 :]], axis=0)
            summed[i] = (g[i:] * numpy.cumprod(products, axis=0).conj()).sum(0)
            before = before * a[i]
    return numpy.moveaxis(summed, 0, dim)


def reversed_cumsum(x: Array, dim: int) -> Array:
    """Sums of each element and all later ones along `dim`."""
    return x if x.ndim == 0 else numpy.flip(numpy.cumsum(numpy.flip(x, dim), axis=dim), dim)


def at_indices(x: Array, indices: Array) -> Array:
    """The elements of `x` (batch, channels, spatial...) at `indices` of its flattened spatial dimensions."""
    rows = x.reshape(*x.shape[:2], -1)
    return numpy.take_along_axis(rows, indices.reshape(*x.shape[:2], -1), -1).reshape(indices.shape)

"""The gradients of views of several outputs: what the outputs' gradients make together."""

from __future__ import annotations

from typing import Any

import numpy

from ..tensor import as_array
from .build import arrays, tensors

Grads = list[Any]


def _first(grads: Grads) -> Any:
    return next(grad for grad in grads if grad is not None)


def _unbind_arrays(grads: Grads, shape: Any, dtype: Any, dim: int) -> Any:
    result = numpy.zeros(shape, dtype)
    slices = numpy.moveaxis(result, dim, 0)
    for index, grad in enumerate(grads):
        if grad is not None:
            slices[index] = grad
    return result


def _unbind_tensors(grads: Grads, shape: Any, dtype: Any, dim: int) -> Any:
    like = _first(grads)
    return tensors.stack([tensors.zeros_like(like) if grad is None else grad for grad in grads], dim)


def _split_arrays(grads: Grads, shape: Any, dtype: Any, sizes: Any, dim: int) -> Any:
    from ..kernels.view import split

    result = numpy.zeros(shape, dtype)
    for part, grad in zip(split(result, sizes, dim), grads, strict=True):
        if grad is not None:
            part[...] = as_array(grad)
    return result


def _split_tensors(grads: Grads, shape: Any, dtype: Any, sizes: Any, dim: int) -> Any:
    like = _first(grads)
    if isinstance(sizes, int):
        length = shape[dim]
        sizes = [min(sizes, length - start) for start in range(0, length, sizes)] if sizes else [0]
    dim %= len(shape)
    parts = [
        like.new_zeros((*shape[:dim], size, *shape[dim + 1 :])) if grad is None else grad
        for size, grad in zip(sizes, grads, strict=True)
    ]
    return tensors.cat(parts, dim)


arrays.unbind_backward, tensors.unbind_backward = _unbind_arrays, _unbind_tensors
arrays.split_backward, tensors.split_backward = _split_arrays, _split_tensors

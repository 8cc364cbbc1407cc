"""The gradients of gathers: zeros with a gradient added at the positions of the gathered elements."""

from __future__ import annotations

import numpy
from numpy import ndarray

from ...codegen.plans import zeros
from ...codegen.recording import recordable
from .flattened import put_
from .scatter import index_add_, scatter_add_


@recordable
def gather_backward(grad: ndarray, shape: tuple[int, ...], dim: int, index: ndarray) -> ndarray:
    """Return zeros of `shape` to which `grad` is added at `index` along `dim`."""
    return scatter_add_(zeros(shape, grad.dtype), dim, index, grad)


@recordable
def index_select_backward(grad: ndarray, shape: tuple[int, ...], dim: int, index: ndarray) -> ndarray:
    """Return zeros of `shape` to which the slices of `grad` are added at `index` along `dim`."""
    return index_add_(zeros(shape, grad.dtype), dim, index, grad)


def take_backward(grad: ndarray, shape: tuple[int, ...], index: ndarray) -> ndarray:
    """Return zeros of `shape` to which `grad` is added at `index` of the flattened array."""
    return put_(numpy.zeros(shape, grad.dtype), index, grad, True)

"""Reading and writing at positions in the flattened array, and the gradients of gathers: zeros with a gradient added."""

from __future__ import annotations

import numpy
from numpy import ndarray

from ..._runtime.determinism import alert_not_deterministic
from ...codegen.plans import replayed, zeros
from ..memory.copying import clone
from ..runtime.floating import INT64, type_name
from .places import few_places, out_of_bounds
from .scatter import combine, index_add_, scatter_add_, take_rows


def take(x: ndarray, index: ndarray) -> ndarray:
    """Return elements of the flattened `x` in the shape of `index`. Negative indices count from the end."""
    if few_places(x, 0, index):
        return x.take(index)
    if index.dtype != INT64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {type_name(index.dtype)}")
    if x.size == 0 and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_flat(x, index)
    return take_rows(x.reshape(-1), index) if x.size else numpy.empty(index.shape, x.dtype)


def put(x: ndarray, index: ndarray, source: ndarray, accumulate: bool = False) -> ndarray:
    """Return a copy of `x` with the elements of `source` written, or added, at the flattened positions `index`."""
    return put_(clone(x), index, source, accumulate)


def put_(x: ndarray, index: ndarray, source: ndarray, accumulate: bool = False) -> ndarray:
    """Do the same as `put` in place in `x`."""
    if not accumulate:
        alert_not_deterministic("put_")
    if index.dtype != INT64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {type_name(index.dtype)}")
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {type_name(x.dtype)} and "
            f"source.dtype = {type_name(source.dtype)}"
        )
    if source.size != index.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    if x.size == 0 and index.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    _check_flat(x, index)
    if index.size == 0:
        return x
    positions = wrap_positions(index.reshape(-1), x.size)
    combine(x, (x.size,), 0, positions, source.reshape(-1), numpy.add if accumulate else None)
    return x


def _check_flat(x: ndarray, index: ndarray) -> None:
    wrong = out_of_bounds(index, x.size, -x.size)
    if wrong is not None:
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {x.size} elements.")


def wrap_positions(index: ndarray, length: int) -> ndarray:
    """Return `index` with negative entries converted to positions that count from the start."""
    negative = index < 0
    if not negative.any():
        return index
    wrapped = index.copy()
    wrapped[negative] += length
    return wrapped


@replayed
def gather_backward(grad: ndarray, shape: tuple[int, ...], dim: int, index: ndarray) -> ndarray:
    """Return zeros of `shape` to which `grad` is added at `index` along `dim`."""
    return scatter_add_(zeros(shape, grad.dtype), dim, index, grad)


@replayed
def index_select_backward(grad: ndarray, shape: tuple[int, ...], dim: int, index: ndarray) -> ndarray:
    """Return zeros of `shape` to which the slices of `grad` are added at `index` along `dim`."""
    return index_add_(zeros(shape, grad.dtype), dim, index, grad)


def take_backward(grad: ndarray, shape: tuple[int, ...], index: ndarray) -> ndarray:
    """Return zeros of `shape` to which `grad` is added at `index` of the flattened array."""
    return put_(numpy.zeros(shape, grad.dtype), index, grad, True)

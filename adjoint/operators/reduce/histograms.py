"""Histograms of numbers and of points."""

from __future__ import annotations

import math

from ...dispatch.decorators import public
from ...dispatch.out import store
from ...dispatch.return_types import return_type
from ...dispatch.sequential import sequential_fallback
from ...kernels.reduce import histograms as kernels
from ...kernels.runtime.floating import quietly, type_name
from ...tensor import Tensor, wrap

_NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
}

_HISTOGRAM = return_type("histogram", "hist", "bin_edges")
_HISTOGRAMDD = return_type("histogramdd", "hist", "bin_edges")


def _name(tensor):
    return _NAMES.get(str(tensor.dtype).removeprefix("torch."), type_name(tensor._array.dtype).lower())


def _checked_edges(input, bins):
    for dim, edge in enumerate(bins):
        shape = edge._array.shape
        if edge.dtype != input.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{_name(input)} and bins for dimension {dim} with dtype {_name(edge)}"
            )
        if len(shape) != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {len(shape)} dimensions in the bins "
                f"tensor for dimension {dim}"
            )
        if shape[0] == 0:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                f"dimension {dim}"
            )
    for dim, edge in enumerate(bins):
        if edge._array.shape[0] == 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {dim}")


def _found(input, bins, range, weight, density):
    """Return the counts and the edges for points `(..., dims)`."""
    if input._array.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if weight is not None:
        if weight.dtype != input.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
                f"but got input({_name(input)}), and weight({_name(weight)})"
            )
        if weight._array.shape != input._array.shape[:-1]:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
                f"its innermost dimension, but got input with shape {list(input._array.shape)} and weight with shape "
                f"{list(weight._array.shape)}"
            )
    shape = input._array.shape
    points = input._array.reshape(math.prod(shape[:-1]), shape[-1])
    given = len(bins) > 0 and all(isinstance(each, Tensor) for each in bins)
    if given:
        if len(bins) != points.shape[1]:
            raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
        _checked_edges(input, bins)
        kernels.check_points(points)
        edges = [each.resolve_neg()._array for each in bins]
    else:
        edges = quietly(kernels.edges_of, points, list(bins), range)
    weights = None if weight is None else weight._array
    counts = quietly(kernels.histogram, points, edges, weights, density, not given)
    return wrap(counts), [each.clone() for each in bins] if given else [wrap(each) for each in edges]


@sequential_fallback
def _in_one_dimension(input, bins, range, weight, density):
    counted = None if weight is None else weight.reshape(-1)
    counts, edges = _found(input.reshape(-1, 1), [bins], range, counted, density)
    return counts, edges[0]


@public(method=True)
def histogram(input: Tensor, bins, *, range=None, weight: Tensor | None = None, density: bool = False, out=None):
    """The number of elements in each bin, and the edges of the bins.

    The result has no derivative.

    Args:
        bins: the number of equal bins, or their edges in ascending order.
        range: the lowest and the highest edge of equal bins; by default the extremes of the elements.
        weight: the weight of each element.
        density: whether to divide by the total, so that the integral is 1.

    >>> import adjoint as torch
    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    found = _in_one_dimension(input, bins, range, weight, density)
    if out is None:
        return _HISTOGRAM(found)
    for target, result in zip(out, found, strict=True):
        if target.dtype != result.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and hist tensor should have the same dtype, but got input "
                f"{_name(input)} and hist {_name(target)}"
            )
    for target, result in zip(out, found, strict=True):
        store(result._array, target)
    return _HISTOGRAM.out(tuple(out))


@public()
def histogramdd(input: Tensor, bins, range=None, weight: Tensor | None = None, density: bool = False):
    """The number of points in each box of a grid, and the edges of the grid.

    The result has no derivative.

    Args:
        input: points `(..., dims)`.
        bins: the number of equal bins, for all dimensions or for each dimension, or the edges for each dimension.
        range: the lowest and highest edge of each dimension, in one list; by default the extremes of the points.
        weight: the weight of each point.
        density: whether to divide by the total, so that the integral is 1.
    """
    dims = input._array.shape[-1] if input._array.ndim else 1
    each = [bins] * dims if isinstance(bins, int) else list(bins)
    counts, edges = _found(input, each, range, weight, density)
    return _HISTOGRAMDD((counts, tuple(edges)))

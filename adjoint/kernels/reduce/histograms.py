"""Histograms of points: the number of points, or the sum of their weights, in each box of a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.plans import NUMPY, Plan, compiled
from ..runtime.costs import PASSES, TILE
from ..runtime.floating import refuse
from ..runtime.lazy_conj import materialize
from .counting import searchsorted

_FUNCTION = "torch.histogramdd"


def check_points(points: ndarray) -> None:
    """Raise an error unless `points` are float32 or float64."""
    if points.dtype.char not in "fd":
        raise refuse("histogramdd", points)


def edges_of(points: ndarray, bins: list[int], range: Any) -> list[ndarray]:
    """Return the edges of equal bins for each dimension of `points`, of the shape (count, dims).

    Args:
        range: the lowest and the highest edge of each dimension in turn, or None for the range of the points.
    """
    for dim, count in enumerate(bins):
        if count <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {dim}")
    if points.shape[1] != len(bins):
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    check_points(points)
    if range is not None and len(range) != 2 * len(bins):
        raise RuntimeError(
            f"{_FUNCTION}: for a {len(bins)}-dimensional histogram range should have {2 * len(bins)} elements, but got "
            f"{len(range)}"
        )
    found = []
    for dim, count in enumerate(bins):
        low, high = 0.0, 1.0
        if range is not None:
            low, high = range[2 * dim], range[2 * dim + 1]
        elif points.shape[0]:
            low, high = (float(each.reduce(points[:, dim])) for each in (numpy.minimum, numpy.maximum))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"{_FUNCTION}: dimension {dim}'s range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"{_FUNCTION}: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        found.append(_linspace(points.dtype.type(low), points.dtype.type(high), count))
    return found


def _linspace(low: Any, high: Any, count: int) -> ndarray:
    """Return edges, rounded as in PyTorch's `linspace`: each half is computed from its own end."""
    steps = (high - low) / low.dtype.type(count) * numpy.arange(count + 1, dtype=low.dtype)
    edges = low + steps
    numpy.subtract(high, steps[count // 2 :: -1], edges[(count + 1) // 2 :])
    return edges


def histogram(points: ndarray, edges: list[ndarray], weight: ndarray | None, density: bool, equal: bool) -> ndarray:
    """Return the histogram of `points`, (count, dims), in bins with the given edges.

    Args:
        weight: the weight of each point, or None for 1.
        density: whether to divide by the sum and by the volumes of the boxes.
        equal: whether all bins of a dimension have the same size.
    """
    points, edges = materialize(points), [materialize(edge) for edge in edges]
    if weight is not None:
        weight = weight.reshape(-1)
    sizes = tuple([len(edge) - 1 for edge in edges])
    totals: Any = NotImplemented
    if equal and weight is None and len(edges) == 1 and len(points) < TILE and _separates(edges[0]):
        totals = _counted_by_loops(points[:, 0], edges[0])
    if totals is NotImplemented:
        totals = numpy.zeros(sizes)
        for start in range(0, len(points) if totals.size else 0, TILE):
            part = slice(start, start + TILE)
            totals += _counted(points[part], edges, None if weight is None else weight[part], equal, sizes)
    counts = totals.astype(points.dtype)
    if density:
        counts = counts / counts.sum()
        for dim, edge in enumerate(edges):
            shape = [1] * len(edges)
            shape[dim] = -1
            counts = counts / numpy.diff(edge).reshape(shape)
    return counts


@compiled("index.searching.histogram", least=PASSES, cost=1)
def _counted_by_loops(values: ndarray, edges: ndarray) -> Plan:
    """Return the numbers of values in equal bins, found by compiled loops."""
    return NUMPY


def _separates(edge: ndarray) -> bool:
    """Return whether the edges of equal bins determine the bin of each value. If they are rounded, far bins may be chosen."""
    return bool(0 < edge[-1] - edge[0] < math.inf and len(edge) - 2 < 1 << 24)


def _counted(
    points: ndarray, edges: list[ndarray], weight: ndarray | None, equal: bool, sizes: tuple[int, ...]
) -> ndarray:
    """Return the number of points, or the sum of their weights, in each box."""
    within = [(points[:, dim] >= edge[0]) & (points[:, dim] <= edge[-1]) for dim, edge in enumerate(edges)]
    inside = within[0] if len(within) == 1 else numpy.logical_and.reduce(within)
    if numpy.count_nonzero(inside) < len(points):
        points, weight = points[inside], None if weight is None else weight[inside]
    flat: Any = 0
    for dim, edge in enumerate(edges):
        flat = flat * sizes[dim] + _bins(points[:, dim], edge, equal)
    return numpy.bincount(flat, weight, math.prod(sizes)).reshape(sizes)


def _after(edge: ndarray, values: ndarray) -> ndarray:
    """Return the first edge beyond each value."""
    if edge.dtype != values.dtype:
        return numpy.searchsorted(edge, values, side="right")
    return searchsorted(edge, values, right=True)


def _bins(values: ndarray, edge: ndarray, equal: bool) -> ndarray:
    """Return the bin of each value. The last bin includes both of its edges."""
    last = len(edge) - 2
    found = _after(edge, values) - 1
    if equal and not _separates(edge):
        near_edge = found
        found = ((values - edge[0]) / (edge[-1] - edge[0]) * values.dtype.type(last + 1)).astype(numpy.int64)
        # Correct values that rounding has moved across an edge.
        near = numpy.clip(found, 1, max(last, 1))
        found = numpy.maximum(numpy.where(abs(near - found) <= 1, near_edge, found), 0)
    return numpy.minimum(found, last)

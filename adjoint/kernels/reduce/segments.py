"""Segments, given by their lengths or by where they begin: which of them each element belongs to."""

from __future__ import annotations

import numpy
from numpy import ndarray


def ends_of(given: ndarray, of_lengths: bool) -> tuple[ndarray, ndarray]:
    """Where segments begin and where they end, along the last dimension, from their lengths or from offsets.

    Raises:
        RuntimeError: if there is no dimension.
    """
    if not given.ndim:
        raise RuntimeError("lengths and offsets of segments have at least one dimension")
    if not of_lengths:
        return given[..., :-1], given[..., 1:]
    ends = numpy.cumsum(given, -1)
    return ends - given, ends


def segment_of_each(given: ndarray, of_lengths: bool, size: int) -> ndarray:
    """The number of the segment of each of `size` elements along the last dimension; of those in none, how many there are."""
    starts, ends = ends_of(given, of_lengths)
    count = ends.shape[-1]
    segments = numpy.full((*ends.shape[:-1], size), count, numpy.int64)
    for row in numpy.ndindex(ends.shape[:-1]):
        if (ends[row] < starts[row]).any():
            raise RuntimeError("Expected segment_length >= 0 to be true, but got false.")
        begin, *limits = numpy.clip([*starts[row][:1], *ends[row]], 0, size).tolist() or [0]
        segments[row][begin : limits[-1] if limits else 0] = numpy.repeat(
            numpy.arange(count), numpy.diff([begin, *limits])
        )
    return segments

"""Abbreviated values: the elements of a tensor as a few characters, and as statistics. The results keep no array alive."""

from __future__ import annotations

from typing import Any

import numpy

from ..kernels.runtime.lazy_conj import materialize
from ..kernels.runtime.meta_array import Unread
from ..kernels.runtime.narrow_array import widened
from .model import Statistics

SAMPLE = 4096
"""The statistics of a larger tensor come from an evenly spaced sample.

Its size is between half of this number and this number.
"""

BINS = 24
_EDGE = 3


def in_short(array: Any) -> str | None:
    """Return the elements of `array` as a few characters, such as `[1, 2.5, … 9]`, or None if no elements can be read.

    >>> import numpy
    >>> in_short(numpy.arange(10.0))
    '[0, 1, 2, … 9]'
    """
    if type(array) is not numpy.ndarray:
        if isinstance(array, Unread) or not isinstance(array, (numpy.ndarray, numpy.generic)):
            return None
        array = numpy.asarray(materialize(array))
    if array.size == 0:
        return "[]"
    return _nested(array)


def _nested(array: Any) -> str:
    if array.ndim == 0:
        return number(array.item())
    size = len(array)
    few = 2 * _EDGE if array.ndim == 1 else _EDGE if array.ndim == 2 else 1
    if array.ndim > 1:
        if size <= few:
            return f"[{', '.join(map(_nested, array))}]"
        last = "" if array.ndim > 2 else " " + _nested(array[-1])
        return f"[{_nested(array[0])}, …{last}]"
    if size <= few:
        return f"[{', '.join(map(number, array.tolist()))}]"
    return f"[{', '.join(map(number, array[:_EDGE].tolist()))}, … {number(array[-1].item())}]"


def number(value: Any) -> str:
    """Return one number with four significant digits."""
    if type(value) is float:
        return f"{value:.4g}"
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, complex):
        return f"{value.real:.4g}{value.imag:+.4g}j"
    return f"{float(value):.4g}"


def statistics(array: Any) -> Statistics | None:
    """Return the statistics of `array`, computed from all elements up to `SAMPLE`, otherwise from an evenly spaced sample.

    Complex elements are represented by their absolute values.

    >>> import numpy
    >>> statistics(numpy.array([0.0, 1.0, 2.0, numpy.nan])).mean
    1.0
    """
    if not isinstance(array, numpy.ndarray) or isinstance(array, Unread) or array.size == 0:
        return None
    values = widened(_sample(array).ravel())
    values = abs(values) if values.dtype.kind == "c" else values
    values = values.astype(numpy.float64)
    finite = numpy.isfinite(values)
    count, nan = values.size, 0
    zero = count - int(numpy.count_nonzero(values))
    if not finite.all():
        nan = int(numpy.count_nonzero(numpy.isnan(values)))
        values = values[finite]
    inf = count - nan - values.size
    if not values.size:
        return Statistics(count, nan, inf, zero, None, None, None, None)
    low, high = float(values.min()), float(values.max())
    mean = float(values.mean())
    std = float(values.std())
    return Statistics(
        count,
        nan,
        inf,
        zero,
        _rounded(low),
        _rounded(high),
        _rounded(mean),
        _rounded(std),
        _histogram(values, low, high),
    )


def _sample(array: Any) -> Any:
    """Return a view of at most `SAMPLE` evenly spaced elements."""
    if array.size <= SAMPLE:
        return array
    if array.flags.c_contiguous:
        return array.reshape(-1)[:: -(-array.size // SAMPLE)]
    while array.size > SAMPLE:
        longest = max(range(array.ndim), key=array.shape.__getitem__)
        step = min(-(-array.size // SAMPLE), array.shape[longest])
        array = array[(slice(None),) * longest + (slice(None, None, step),)]
    return array


def _histogram(values: Any, low: float, high: float) -> list[int]:
    width = high - low
    if not 0 < width < float("inf"):
        return [values.size]
    bins = min(BINS, values.size)
    places = ((values - low) * (bins / width)).astype(numpy.intp)
    counts: list[int] = numpy.bincount(places.clip(0, bins - 1), minlength=bins).tolist()
    return counts


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")

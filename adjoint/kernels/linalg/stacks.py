"""LAPACK as NumPy calls it, for much work: stacks of matrices are shared among threads, and OpenBLAS's own threads rest.

Those threads look for work for some hundredths of a second after each product, and take the processors from all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...codegen.acceleration import LOOPS
from ..runtime import parallel

Array = numpy.ndarray[Any, Any]

_LARGE = 1 << 19  # multiplications or so; less work is done in less time than threads take to begin
_RESTING = 512  # rows; for larger matrices OpenBLAS's threads are of use


def of_stack(function: Callable[[Array], Any], a: Array) -> Any:
    """What `function` gives for a stack of matrices: an array, or several of them, which have the same first dimensions."""
    if a.size * min(a.shape[-2:]) < _LARGE:
        return function(a)
    if max(a.shape[-2:]) <= _RESTING:
        found = LOOPS.run("linalg.blas.alone", lambda: _in_parts(function, a))
        if found is not NotImplemented:
            return found
    return _in_parts(function, a)


def _in_parts(function: Callable[[Array], Any], a: Array) -> Any:
    batch = a.shape[:-2]
    stack = a.reshape(-1, *a.shape[-2:])
    if len(stack) == 1:
        return function(a)
    rows = -(-len(stack) // parallel.num_threads)
    parts: list[Any] = [None] * -(-len(stack) // rows)

    def work(start: int, stop: int) -> None:
        parts[start // rows] = function(stack[start:stop])

    parallel.parallel_rows(work, len(stack), 1, tile_rows=rows, parallel_bytes=0)
    if not isinstance(parts[0], tuple):
        return _joined(parts, batch)
    return tuple([_joined(several, batch) for several in zip(*parts, strict=True)])


def _joined(parts: Any, batch: tuple[int, ...]) -> Array:
    whole = numpy.concatenate(parts)
    return whole.reshape(*batch, *whole.shape[1:])

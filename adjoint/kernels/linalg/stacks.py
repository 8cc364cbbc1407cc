"""LAPACK as NumPy calls it: stacks of matrices are shared among threads, and OpenBLAS's own threads rest meanwhile."""

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
    batch, stack = a.shape[:-2], a.reshape(-1, *a.shape[-2:])
    rows = -(-len(stack) // parallel.num_threads)
    if rows == len(stack):
        return function(a)
    parts: list[Any] = [None] * -(-len(stack) // rows)

    def work(start: int, stop: int) -> None:
        found = function(stack[start:stop])
        parts[start // rows] = found if isinstance(found, tuple) else (found,)

    parallel.parallel_rows(work, len(stack), 1, tile_rows=rows, parallel_bytes=0)
    whole = tuple([numpy.concatenate(several) for several in zip(*parts, strict=True)])
    results = tuple([item.reshape(*batch, *item.shape[1:]) for item in whole])
    return results if len(results) > 1 else results[0]

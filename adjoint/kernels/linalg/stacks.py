"""LAPACK as NumPy calls it.

Stacks of matrices are shared among threads, and OpenBLAS's own threads are idle during the call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from ...codegen.plans import compiled
from ..runtime import parallel
from ..runtime.costs import ON_ONE_THREAD, SCANNED
from ..runtime.floating import Array


def of_stack(function: Callable[[Array], Any], a: Array) -> Any:
    """Return the result of `function` for a stack of matrices: one array, or several with the same first dimensions."""
    if a.size * min(a.shape[-2:]) < 2 * ON_ONE_THREAD:  # starting threads would take longer
        return function(a)
    batch, stack = a.shape[:-2], a.reshape(-1, *a.shape[-2:])
    parts: dict[int, tuple[Array, ...]] = {}

    def work(start: int, stop: int) -> None:
        found = function(stack[start:stop])
        parts[start] = found if isinstance(found, tuple) else (found,)

    shared(work, stack)
    ordered = [parts[start] for start in sorted(parts)]
    whole = ordered[0] if len(ordered) == 1 else [numpy.concatenate(several) for several in zip(*ordered, strict=True)]
    results = tuple([item.reshape(*batch, *item.shape[1:]) for item in whole])
    return results if len(results) > 1 else results[0]


_ALONE = compiled("linalg.blas.alone")


def shared(work: Callable[[int, int], None], stack: Array) -> None:
    """Call `work(start, stop)` for all matrices of a stack, or for parts of them in several threads if that is faster."""
    if stack.size * min(stack.shape[-2:]) < 2 * ON_ONE_THREAD:  # starting threads would take longer
        work(0, len(stack))
    elif stack[0].size > ON_ONE_THREAD or _ALONE.run(0, lambda: _in_parts(work, len(stack))) is NotImplemented:
        _in_parts(work, len(stack))  # OpenBLAS's threads help with large matrices


def _in_parts(work: Callable[[int, int], None], count: int) -> None:
    rows = -(-count // parallel.num_threads)
    if rows == count:
        work(0, count)
    else:
        parallel.parallel_rows(work, count, 1, tile_rows=rows, parallel_bytes=0)


def by_lapack(name: str, a: Array, *arguments: Any, smallest: int = SCANNED, **options: Any) -> Any:
    """Return the result of a function of `kernels.compiled.linalg.lapack`, or NotImplemented if NumPy must compute.

    NumPy computes matrices of fewer than `smallest` elements in less time than a call takes.
    """
    if a.shape[-1] * a.shape[-2] < smallest or a.dtype.char not in "fdFD":
        return NotImplemented
    return _lapack(name).run(0, a, *arguments, **options)


@functools.cache
def _lapack(name: str) -> compiled:
    return compiled(f"linalg.lapack.{name}")

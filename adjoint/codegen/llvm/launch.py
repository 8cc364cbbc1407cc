"""Compiled functions on several threads: the work is cut into ranges, which the pool of `kernels.runtime.parallel` takes."""

from __future__ import annotations

from typing import Any

from ...kernels.runtime.parallel import TILE_BYTES, get_num_threads, parallel_rows

PARALLEL_BYTES = 1 << 22
"""Less work than this is done by the calling thread alone: compiled code needs about as long for it as another thread to wake."""


def launch(function: Any, n: int, row_bytes: int, *arguments: Any) -> None:
    """Call `function(*arguments, start, stop)` for ranges that together cover `range(n)`.

    `row_bytes`: how much memory one row of the range touches, or as many bytes as take equal time where a row computes much.
    """
    work = n * row_bytes
    if work < PARALLEL_BYTES or get_num_threads() == 1:
        if n > 0:
            function(*arguments, 0, n)
        return
    # A few ranges for each thread, so that one that started late, or sleeps, does not hold up the others.
    tiles = max(1, min(work // TILE_BYTES, 4 * get_num_threads()))
    parallel_rows(
        lambda start, stop: function(*arguments, start, stop),
        n,
        max(row_bytes, 1),
        tile_rows=-(-n // tiles),
        parallel_bytes=PARALLEL_BYTES,
    )

"""Compiled functions on several threads."""

from __future__ import annotations

from typing import Any

from ...kernels.runtime.parallel import get_num_threads
from .workers import workers

PARALLEL_BYTES = 1 << 18
"""Less work than this is done by the calling thread alone. On two processors of an EPYC, a sum of 256 KB takes 3.7 microseconds
on one thread and 3.9 on two, `relu` of as much to as much 7.9 and 6.0."""

PIECE_BYTES = 1 << 16
"""A thread takes at least so much work at a time."""


def launch(function: Any, n: int, row_bytes: int, *arguments: Any) -> None:
    """Call the compiled `function(*arguments, start, stop)` for ranges that together cover `range(n)`.

    `row_bytes`: how much memory one row of the range touches, or as many bytes as take equal time where a row computes much.
    """
    work = n * row_bytes
    threads = get_num_threads()
    if work < PARALLEL_BYTES or threads == 1 or n < 2:
        if n > 0:
            function.call(*arguments, 0, n)
        return
    # A few pieces for each thread, so that one that started late, or sleeps, does not hold up the others.
    pieces = min(work // PIECE_BYTES, 4 * threads)
    workers().run(function, arguments, n, -(-n // pieces), threads)

"""Run compiled functions on several threads."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from ...kernels.runtime import parallel
from ..observed_kernels import KERNELS
from .compilation import in_numbers
from .workers import WORKERS, splitter

PARALLEL_BYTES = 1 << 18
"""The amount of work in bytes below which the calling thread works alone.

On two processors of an EPYC, a sum of 256 KB takes 3.7 microseconds on one thread and 3.9 on two, and `relu` of 256 KB
takes 7.9 and 6.0 microseconds.
"""

WHOLE_BYTES = 1 << 26
"""The amount of work in bytes above which work is split into parts.

Between two parts, Python raises pending interrupts. Splitting a smaller amount of work costs up to 3 % if memory is
new. From this size on, the cost is too small to be measured.
"""

FIRST_BYTES = 1 << 23
"""The size of the first part. The time that it takes determines the size of the next part."""

PART_SECONDS = 0.04
"""The intended duration of a part, so that an interrupt is raised soon even on a busy machine."""

GROWTH = 8
"""The maximum ratio of the sizes of two consecutive parts."""


def launch(function: Any, n: int, row_bytes: int, *arguments: Any) -> None:
    """Call the compiled `function(*arguments, start, stop)` for ranges that together cover `range(n)`.

    Arguments that are pointers may be given as arrays.

    `row_bytes`: the number of bytes that a row of the range accesses, or an equivalent number if a row requires much
    computation.
    """
    work = n * row_bytes
    if work < PARALLEL_BYTES:
        if n > 0:
            function.quick(*arguments, 0, n)
        return
    arguments = tuple(in_numbers(arguments))
    if work > WHOLE_BYTES:
        _launch_in_parts(function, n, row_bytes, arguments)
        return
    threads = parallel.num_threads
    if threads == 1 or n == 1:
        function.call(*arguments, 0, n)
        return
    split = function.split or _split(function)
    shared = WORKERS.address if WORKERS.threads >= threads else WORKERS.ready(threads)
    split(shared, *arguments, 0, n, row_bytes, threads)


def _split(function: Any) -> Any:
    """Return the function through which workers call the compiled function. It is created on first use."""
    function.split = KERNELS.called(function, splitter(function))
    return function.split


def _launch_in_parts(function: Any, n: int, row_bytes: int, arguments: tuple[Any, ...]) -> None:
    """Launch the function like `launch`, in calls that take about `PART_SECONDS` each.

    A range may be split at any row, as for threads. Each part contains rows for all threads. A small number of long
    rows forms one part.
    """
    threads = parallel.num_threads
    split = None if threads == 1 else function.split or _split(function)
    begin, rows = 0, FIRST_BYTES // row_bytes
    while begin < n:
        rows = min(max(rows // threads, 1) * threads, n - begin)
        started = perf_counter()
        if split is None:
            function.call(*arguments, begin, begin + rows)
        else:
            split(WORKERS.ready(threads), *arguments, begin, rows, row_bytes, threads)
        begin += rows
        rows = int(rows * min(PART_SECONDS / max(perf_counter() - started, 1e-6), GROWTH))

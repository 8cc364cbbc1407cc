"""Write results that are too large for the cache directly to memory.

A processor first reads memory to which it writes into its cache, unless whole aligned vectors bypass the cache. Then the
next kernel does not find the data in the cache, which matters only if it would have stayed there.
"""

from __future__ import annotations

from typing import Any

from ...kernels.runtime.costs import STREAMED_BYTES
from .functions import Builtin
from .host import HOST
from .language import Int, Static, as_pointer, i64, loops, prefetch, u8, unrolled
from .lowering import Lowering
from .values import size_of

LINES_UNREAD = {"znver5": 1 << 25}
"""The `STREAMED_BYTES` of processors that do not read a line before a whole vector is written to it.

On two processors of such an EPYC, filling 16 MB takes 90 microseconds through the cache and 390 without it.
"""

LINE = 64
"""The number of bytes in a cache line."""


def is_streamed(nbytes: int) -> bool:
    """Return whether results of this many bytes are written without the cache."""
    return nbytes >= LINES_UNREAD.get(HOST.cpu, STREAMED_BYTES)


AHEAD = 1 << 11
"""Loops that stream results, and first passes over rows, prefetch operands at this distance in bytes.

Processors do not prefetch beyond a page. On a Xeon, this saves a tenth to a sixth of the time of `exp` of 16 MB.
"""


@loops(noalias=False)
def ask_ahead(place: Int, WIDTH: Static, ELEMENT: Static) -> None:
    """Prefetch the vector that is `AHEAD` bytes ahead."""
    for START in unrolled(0, WIDTH * size_of(ELEMENT), LINE):
        prefetch(as_pointer(place + (AHEAD + START), u8))


@Builtin
def stream(lowering: Lowering, pointer: Any, value: Any) -> None:
    """Store a vector without the cache. The address is a multiple of `aligned_bytes`."""
    mark = f"!{len(lowering.metadata)}"
    lowering.metadata.append(f"{mark} = !{{i32 1}}")
    aligned = aligned_bytes(value.type.width, value.type.element)
    lowering.emit(f"store {value}, ptr {pointer.name}, align {aligned}, !nontemporal {mark}")


@Builtin
def end_streams(lowering: Lowering) -> None:
    """Ensure that streamed writes precede later writes."""
    lowering.emit("fence seq_cst")


def aligned_bytes(width: int, type_: Any) -> int:
    """Return the size of a vector of this many elements, or of a cache line if that is smaller."""
    return min(LINE, width * size_of(type_))


@loops(noalias=False)
def elements_before_aligned(place: Int, WIDTH: Static, ELEMENT: Static) -> Int:
    """Return the number of elements before the first address to which vectors may be streamed."""
    return ((i64(0) - place) & (aligned_bytes(WIDTH, ELEMENT) - 1)) // size_of(ELEMENT)

"""Results that are too large for the cache, written past it.

If a processor writes to memory that is not in its cache, it reads that memory first, and later writes it back in place
of other data. Whole aligned vectors may bypass the cache instead. Data written this way are not in the cache for the
next kernel. This is a loss only if they would have stayed there until then.
"""

from __future__ import annotations

from typing import Any

from .functions import Builtin
from .host import HOST
from .language import Int, Static, as_pointer, i64, loops, prefetch, u8, unrolled
from .lowering import Lowering
from .values import size_of

STREAMED_BYTES = 1 << 24
"""How many bytes the results of a call have that are written past the cache. On two processors of an EPYC with a cache of 32 MB,
a copy of 16 MB takes 580 microseconds through the cache and 230 past it; the same and back 2,400 and 1,200. To 4 MB and back
takes 170 and 290."""

LINES_UNREAD = {"znver5": 1 << 25}
"""The same for processors that do not read a line if a whole vector of it is written.

On two of an EPYC of the fifth generation, with a cache of 32 MB, filling 16 MB takes 90 microseconds through the cache
and 390 past it, and 64 MB 1,500 either way.
"""

LINE = 64
"""Bytes in a line of the cache."""


def is_streamed(nbytes: int) -> bool:
    """Whether results of this many bytes are written past the cache."""
    return nbytes >= LINES_UNREAD.get(HOST.cpu, STREAMED_BYTES)


AHEAD = 1 << 11
"""The distance in bytes at which a loop prefetches operands if results are streamed or a row is read first.

Processors look ahead by themselves, but not beyond a page, and where much is computed not early enough: on two cores of a Xeon,
`exp` and `layer_norm` of 16 MB take a tenth to a sixth less time so, `relu` as much as without.
"""


@loops(noalias=False)
def ask_ahead(place: Int, WIDTH: Static, ELEMENT: Static) -> None:
    """Prefetch the vector that is `AHEAD` bytes ahead."""
    for START in unrolled(0, WIDTH * size_of(ELEMENT), LINE):
        prefetch(as_pointer(place + (AHEAD + START), u8))


@Builtin
def stream(lowering: Lowering, pointer: Any, value: Any) -> None:
    """Store a vector past the cache. The address is a multiple of `aligned_bytes`."""
    mark = f"!{len(lowering.metadata)}"
    lowering.metadata.append(f"{mark} = !{{i32 1}}")
    aligned = aligned_bytes(value.type.width, value.type.element)
    lowering.emit(f"store {value}, ptr {pointer.name}, align {aligned}, !nontemporal {mark}")


@Builtin
def end_streams(lowering: Lowering) -> None:
    """Order streamed writes before later writes."""
    lowering.emit("fence seq_cst")


def aligned_bytes(width: int, type_: Any) -> int:
    """Return the size of a vector of this many elements, or of a cache line if that is smaller."""
    return min(LINE, width * size_of(type_))


@loops(noalias=False)
def elements_before_aligned(place: Int, WIDTH: Static, ELEMENT: Static) -> Int:
    """Return the number of elements before the first address to which vectors may be streamed."""
    return ((i64(0) - place) & (aligned_bytes(WIDTH, ELEMENT) - 1)) // size_of(ELEMENT)

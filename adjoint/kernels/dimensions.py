"""Dimensions as arguments: negative ones count from the end, impossible and repeated ones are refused."""

from collections.abc import Sequence
from operator import index

Dims = int | Sequence[int] | None


def normalize_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; a zero-dimensional array has the dimensions 0 and -1.

    Raises:
        IndexError: if there is no such dimension.
    """
    limit = ndim or 1
    if 0 <= dim < limit:
        return dim
    if -limit <= dim < 0:
        return dim + limit
    raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")


def normalize_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions that `dim` names, ascending: all of them for None and for an empty sequence.

    For a zero-dimensional array the result is empty.

    Raises:
        IndexError: if there is no such dimension.
        RuntimeError: if one is named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int):
        dim = (dim,)
    if len(dim) == 0:
        return tuple(range(ndim))
    seen: list[int] = []
    for each in dim:
        one = normalize_dim(index(each), ndim)
        if one in seen:
            raise RuntimeError(f"dim {one} appears multiple times in the list of dims")
        seen.append(one)
    return tuple(sorted(seen)) if ndim else ()

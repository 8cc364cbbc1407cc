"""Marks on tensors: the dimensions whose sizes are inputs of the programs of compiled functions."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from ..tensor import Tensor

Dims = int | Iterable[int] | None

MARKS: dict[int, tuple[weakref.ref[Tensor], dict[int, bool]]] = {}
"""For each marked tensor, by its identity: whether the sizes of its marked dimensions may change in later calls."""


def mark(tensor: Tensor, dims: Dims, dynamic: bool) -> None:
    """Mark dimensions of a tensor. None marks all.

    Raises:
        IndexError: if the tensor does not have the dimension.
    """
    rank = tensor.ndim
    chosen = range(rank) if dims is None else [dims] if isinstance(dims, int) else [*dims]
    for dim in chosen:
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
            )
    key = id(tensor)
    marks = {**marks_of(tensor), **{dim % rank: dynamic for dim in chosen}}
    MARKS[key] = weakref.ref(tensor, lambda gone: MARKS.pop(key, None)), marks


def marks_of(tensor: Tensor) -> dict[int, bool]:
    """Return the marks of a tensor."""
    reference, marks = MARKS.get(id(tensor), (None, {}))
    return marks if reference is not None and reference() is tensor else {}


def mark_dynamic(t: Tensor, index: Dims, **options: object) -> None:
    """Declare that the sizes of dimensions of a tensor will change in later calls of compiled functions.

    From the second size on, one program serves any size. A size of 0 or 1 always has a separate program. If the
    function performs other operations for a size, this size has a separate program too. PyTorch's options for bounds
    are accepted, but not needed.

    Raises:
        IndexError: if the tensor does not have the dimension.

    >>> import adjoint as torch
    >>> x = torch.ones(3, 2)
    >>> torch._dynamo.mark_dynamic(x, 0)
    """
    mark(t, index, True)


def maybe_mark_dynamic(t: Tensor, index: Dims) -> None:
    """Declare that the sizes of dimensions of a tensor may change in later calls, like `mark_dynamic`."""
    mark(t, index, True)


def mark_static(t: Tensor, index: Dims = None) -> None:
    """Declare that each size of the given dimensions of a tensor (by default all) has its own program.

    Raises:
        IndexError: if the tensor does not have the dimension.
    """
    if isinstance(t, Tensor):
        mark(t, index, False)

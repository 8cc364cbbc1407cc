"""Marks on tensors: which of their dimensions have sizes that programs of compiled functions read at each call."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from ..tensor import Tensor

Dims = int | Iterable[int] | None

MARKS: dict[int, tuple[weakref.ref[Tensor], dict[int, bool]]] = {}
"""For each marked tensor, by its identity: whether the sizes of its marked dimensions may be others in later calls."""


def mark(tensor: Tensor, dims: Dims, dynamic: bool) -> None:
    """Mark dimensions of a tensor; None: all.

    Raises:
        IndexError: for a dimension that the tensor does not have.
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
    """The marks of a tensor."""
    reference, marks = MARKS.get(id(tensor), (None, {}))
    return marks if reference is not None and reference() is tensor else {}


def mark_dynamic(t: Tensor, index: Dims, **options: object) -> None:
    """Say that the sizes of dimensions of a tensor will be others in later calls of compiled functions.

    Their programs are for any size after the second one that occurs. A size of 0 or 1 always has a program of its own, and so has
    each size that a function cannot be generalised over. Bounds, which PyTorch takes as options, are not needed.

    Raises:
        IndexError: for a dimension that the tensor does not have.

    >>> import adjoint as torch
    >>> x = torch.ones(3, 2)
    >>> torch._dynamo.mark_dynamic(x, 0)
    """
    mark(t, index, True)


def maybe_mark_dynamic(t: Tensor, index: Dims) -> None:
    """Say that the sizes of dimensions of a tensor may be others in later calls: the same as `mark_dynamic`."""
    mark(t, index, True)


def mark_static(t: Tensor, index: Dims = None) -> None:
    """Say that each size of dimensions of a tensor, by default of all, has a program of its own.

    Raises:
        IndexError: for a dimension that the tensor does not have.
    """
    if isinstance(t, Tensor):
        mark(t, index, False)

"""Order, selection and sets of elements, under the standard's names."""

from __future__ import annotations

from typing import NamedTuple

import adjoint as torch

from .data_types import Scalar, as_common

__all__ = """
    argsort isin nonzero searchsorted sort take take_along_axis unique_all unique_counts unique_inverse unique_values where
""".split()


def sort(x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    """The elements in order along an axis."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    """The indices that put the elements in order along an axis."""
    return torch.argsort(x, dim=axis, descending=descending, stable=stable)


def searchsorted(
    x1: torch.Tensor, x2: torch.Tensor | Scalar, /, *, side: str = "left", sorter: torch.Tensor | None = None
) -> torch.Tensor:
    """The indices at which the elements of `x2` would be inserted into the sorted `x1`."""
    ordered = x1 if sorter is None else torch.index_select(x1, 0, sorter.to(torch.int64))
    ordered, values = as_common(ordered, x2)
    return torch.searchsorted(ordered, values, side=side)


def isin(x1: torch.Tensor | Scalar, x2: torch.Tensor | Scalar, /, *, invert: bool = False) -> torch.Tensor:
    """Whether elements of `x1` are among the elements of `x2`.

    With `invert`, whether elements of `x1` are not among the elements of `x2`.
    """
    return torch.isin(*as_common(x1, x2), invert=invert)


def nonzero(x: torch.Tensor, /) -> tuple[torch.Tensor, ...]:
    """The indices of the elements that are not zero, one tensor for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero(): a zero-dimensional tensor has no axis")
    return tuple(torch.nonzero(x, as_tuple=True))


def where(condition: torch.Tensor, x1: torch.Tensor | Scalar, x2: torch.Tensor | Scalar, /) -> torch.Tensor:
    """The elements of `x1` where the condition is true, and the elements of `x2` elsewhere."""
    if not isinstance(x1, torch.Tensor) and not isinstance(x2, torch.Tensor):
        return torch.where(condition, torch.asarray(x1), torch.asarray(x2))
    return torch.where(condition, *as_common(x1, x2))


def take(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int | None = None) -> torch.Tensor:
    """The slices of `x` at these indices along an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take() from {x.ndim} dimensions needs an axis")
        axis = 0
    return torch.index_select(x, axis, _from_front(indices, x.shape[axis]))


def take_along_axis(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """The elements of `x` at these indices along an axis, for each position on the other axes."""
    return torch.take_along_dim(x, _from_front(indices, x.shape[axis]), dim=axis)


def _from_front(indices: torch.Tensor, size: int) -> torch.Tensor:
    """Return the indices as `int64`. Negative indices are converted to indices from the front."""
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + size, indices)


class UniqueAll(NamedTuple):
    """The results of `unique_all`."""

    values: torch.Tensor
    indices: torch.Tensor
    inverse_indices: torch.Tensor
    counts: torch.Tensor


class UniqueCounts(NamedTuple):
    """The results of `unique_counts`."""

    values: torch.Tensor
    counts: torch.Tensor


class UniqueInverse(NamedTuple):
    """The results of `unique_inverse`."""

    values: torch.Tensor
    inverse_indices: torch.Tensor


def _unique(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the distinct elements, the index of each element among them, and their counts.

    Complex numbers are treated as pairs.
    """
    if not x.dtype.is_complex:
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return values, inverse.reshape(x.shape), counts
    pairs, inverse, counts = torch.unique(
        torch.view_as_real(x.resolve_conj().flatten()), return_inverse=True, return_counts=True, dim=0
    )
    return torch.view_as_complex(pairs), inverse.reshape(x.shape), counts


def unique_all(x: torch.Tensor, /) -> UniqueAll:
    """The distinct elements, their first positions, the index of each element among them, and their counts."""
    values, inverse, counts = _unique(x)
    places = torch.arange(x.numel(), device=x.device)
    first = torch.full_like(counts, x.numel()).scatter_reduce(0, inverse.flatten(), places, "amin")
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: torch.Tensor, /) -> UniqueCounts:
    """The distinct elements, and the number of times that each occurs."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: torch.Tensor, /) -> UniqueInverse:
    """The distinct elements and the index of each element among them."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: torch.Tensor, /) -> torch.Tensor:
    """The distinct elements."""
    return _unique(x)[0] if x.dtype.is_complex else torch.unique(x)

"""`associative_scan`: all partial results of an associative function along a dimension, in a logarithmic number of steps.

Blelloch, "Prefix sums and their applications", 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch

from ..transforms import tree as pytree

__all__ = ["associative_scan"]


def associative_scan(combine_fn: Any, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """For each place along `dim`, what `combine_fn` makes of all elements up to it.

    Args:
        combine_fn: an associative function of two trees of tensors of equal shape, which works on many elements at once.
        xs: a tree of tensors of one length along `dim`.
        dim: the dimension.
        reverse: whether to begin at the end.
        combine_mode: "pointwise" or "generic"; both compute the same.

    Raises:
        ValueError: if `combine_fn` cannot be called, or an argument is none of these.

    >>> import adjoint as torch
    >>> from adjoint._higher_order_ops import associative_scan
    >>> associative_scan(torch.mul, torch.tensor([1, 2, 3, 4]), 0)
    tensor([ 1,  2,  6, 24])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    tensors, tree = pytree.tree_flatten(xs)
    if len({each.shape[dim] for each in tensors}) != 1:
        raise ValueError("All xs leaves must have the same length along dim")

    def combine(first: list[Any], second: list[Any]) -> list[Any]:
        result = combine_fn(pytree.tree_unflatten(first, tree), pytree.tree_unflatten(second, tree))
        return pytree.tree_flatten(result)[0]

    moved = [each.movedim(dim, 0) for each in tensors]
    moved = [each.flip(0) for each in moved] if reverse else moved
    found = _scanned(combine, moved)
    found = [each.flip(0) for each in found] if reverse else found
    return pytree.tree_unflatten([each.movedim(0, dim) for each in found], tree)


def _scanned(combine: Callable[[list[Any], list[Any]], list[Any]], parts: list[Any]) -> list[Any]:
    """The scan along the first dimension: pairs are combined, scanned, and combined with what stands between them."""
    length = parts[0].shape[0]
    if length < 2:
        return parts
    pairs = combine([each[: length - 1 : 2] for each in parts], [each[1::2] for each in parts])
    odd = _scanned(combine, pairs)
    before = [each[: (length - 1) // 2] for each in odd]
    even = combine(before, [each[2::2] for each in parts]) if length > 2 else before
    even = [torch.cat([each[:1], rest]) for each, rest in zip(parts, even, strict=True)]
    results = []
    for first, second in zip(even, odd, strict=True):
        both = torch.stack([first[: second.shape[0]], second], 1).flatten(0, 1)
        results.append(both if length % 2 == 0 else torch.cat([both, first[-1:]]))
    return results

"""`scan`: a function that carries a state along a dimension."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from ..transforms import tree as pytree

__all__ = ["scan"]


def scan(combine_fn: Any, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """The last state, and the outputs, stacked along their first dimension, of `state, output = combine_fn(state, x)`.

    Args:
        combine_fn: takes a state and a part of `xs`.
        init: the first state, a tree of tensors.
        xs: a tree of tensors of one length along `dim`, which the parts lack.
        dim: the dimension.
        reverse: whether the parts come from the end; outputs stay in the places of their parts.

    Raises:
        RuntimeError: if `combine_fn` cannot be called, or the tensors are empty or not equally long.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    tensors, tree = pytree.tree_flatten(xs)
    lengths = {each.shape[dim] for each in tensors}
    if len(lengths) != 1 or 0 in lengths:
        raise RuntimeError(
            f"All xs leaves must at least have 'dim' number of dimensions and be equally long, not {sorted(lengths)}"
        )
    parts = [pytree.tree_unflatten(list(each), tree) for each in zip(*(t.unbind(dim) for t in tensors), strict=True)]
    state, outputs = init, []
    for part in reversed(parts) if reverse else parts:
        state, output = combine_fn(state, part)
        outputs.append(output)
    if reverse:
        outputs.reverse()
    return state, pytree.tree_map(lambda *each: torch.stack(each), *outputs)

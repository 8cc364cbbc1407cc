"""`map`: a function of each part of tensors along their first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch

from ..transforms import tree as pytree

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """The results of `f(x, *args)`, stacked, for the parts `x` of `xs`, a tree of tensors, along their first dimension.

    Raises:
        RuntimeError: if the tensors are empty, or not equally long.
    """
    tensors, tree = pytree.tree_flatten(xs)
    lengths = {each.shape[0] for each in tensors}
    if len(lengths) != 1 or 0 in lengths:
        raise RuntimeError(f"map() needs tensors of one leading length, not 0, but got {sorted(lengths)}")
    found = [f(pytree.tree_unflatten(list(parts), tree), *args) for parts in zip(*tensors, strict=True)]
    return pytree.tree_map(lambda *parts: torch.stack(parts), *found)

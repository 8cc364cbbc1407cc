"""`torch.fx._pytree`: flattening with a known structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..utils import _pytree

SUPPORTED_NODES: dict[type, Callable[..., Any]] = {}


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Callable[..., Any], *others: Any) -> None:
    """Register how objects of a class are flattened for a given structure."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """Return the leaves of a nested value for a given structure."""
    return list(spec.flatten_up_to(pytree)) if hasattr(spec, "flatten_up_to") else _pytree.tree_leaves(pytree)  # type: ignore[attr-defined]  # imported late

"""Where the gradient of a tensor goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..tensor import LEAF, Tensor, current_edge


def edge_of(tensor: Tensor) -> Any:
    """Where a gradient of `tensor` goes: None, `(node, output_nr)`, or `tensor` itself if it is a leaf."""
    edge = tensor._edge if tensor._base is None else current_edge(tensor)
    return tensor if edge is LEAF else edge


def edges_of(items: Iterable[Tensor]) -> tuple[Any, ...] | None:
    """Where gradients of each tensor go; None if they all go nowhere."""
    edges, recorded = [], False
    for item in items:
        edge = item._edge if item._base is None else current_edge(item)
        if edge is not None:
            recorded = True
        edges.append(item if edge is LEAF else edge)
    return tuple(edges) if recorded else None

"""Where the gradient of a tensor goes."""

from __future__ import annotations

from typing import Any

from ..tensor import LEAF, Tensor, current_edge


def edge_of(tensor: Tensor) -> Any:
    """Where a gradient of `tensor` goes: None, `(node, output_nr)`, or `tensor` itself if it is a leaf."""
    edge = tensor._edge if tensor._base is None else current_edge(tensor)
    return tensor if edge is LEAF else edge

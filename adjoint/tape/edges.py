"""Where the gradient of a tensor goes."""

from __future__ import annotations

from typing import Any

from ..late_bound import LATE
from ..tensor import LEAF, Tensor
from .node import NOWHERE


def edge_of(tensor: Tensor) -> Any:
    """Where a gradient of `tensor` goes: None, `(node, output_nr)`, or `tensor` itself if it is a leaf."""
    edge = tensor._edge if tensor._base is None else current_edge(tensor)
    return tensor if edge is LEAF else edge


def current_edge(view: Tensor) -> Any:
    """The edge of a view, which in-place operations on its base or its siblings may have made stale."""
    if view._view_version != (0 if view._counter is None else view._counter[0]):
        LATE.regenerate(view, False)
    edge = view._edge
    if view._base._edge is None:  # type: ignore[union-attr]
        return None if edge is NOWHERE else edge  # the base may have been told to require no grad since
    return NOWHERE if edge is None else edge

"""The edge of a tensor: the place in the graph that receives its gradient."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ..tensor import LEAF, Tensor
from .modes import FLAGS
from .node import NOWHERE


def edge_of(tensor: Tensor) -> Any:
    """Return the edge of `tensor`: None, `(node, output_nr)`, or the tensor itself if it is a leaf."""
    edge = tensor._edge if tensor._base is None else current_edge(tensor)
    return tensor if edge is LEAF else edge


def has_no_history(tensor: Tensor) -> bool:
    """Return whether this is an ordinary tensor without history, so that its array may be used directly."""
    return is_plain(tensor) and (tensor._edge if tensor._base is None else current_edge(tensor)) is None


def is_plain(tensor: Tensor) -> bool:
    """Return whether `tensor` is an ordinary tensor on an ordinary array, and no mode is active."""
    return type(tensor) is Tensor and type(tensor._array) is ndarray and not FLAGS.special


def current_edge(view: Tensor) -> Any:
    """Return the edge of a view. In-place operations on its base or on other views may have made the stored edge stale."""
    if view._view_version != (0 if view._counter is None else view._counter[0]):
        view._regenerate(False)
    edge = view._edge
    if view._base._edge is None:  # type: ignore[union-attr]
        return None if edge is NOWHERE else edge  # `requires_grad_(False)` may have been called on the base since then
    return NOWHERE if edge is None else edge

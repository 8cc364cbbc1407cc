"""Tensors that share memory with another tensor without being views of it: detached tensors and unpacked results."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor, new_tensor


def detached(tensor: Tensor, counter: list[Any] | None) -> Tensor:
    """Return a tensor on the same memory and version counter, without history."""
    if type(tensor) is not Tensor and hasattr(tensor, "without_history"):  # a batched tensor of `vmap`
        result: Tensor = tensor.without_history()
        result._counter = counter
        return result
    return alias(tensor._array, counter, None)


def alias(array: Any, counter: list[Any] | None, edge: Any) -> Tensor:
    """Return a tensor on `array` with a version counter and a place in the graph."""
    result = new_tensor()
    result._array = array
    result._grad = result._base = result._extra = None
    result._counter = counter
    result._edge = edge
    return result

"""Checks of the arguments of collectives, with PyTorch's errors."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


def check_tensor(value: Any, name: str) -> Tensor:
    """Return `value` if it is a tensor, otherwise raise TypeError."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    return value


def check_tensors(value: Any, name: str) -> list[Tensor]:
    """Return `value` if it is a list of tensors, otherwise raise TypeError."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, Tensor) for each in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(value)} with elements of type {[type(each) for each in value or ()]}."
        )
    return list(value)


def check_same_dtype(*tensors: Tensor) -> None:
    """Raise ValueError unless all tensors have one dtype."""
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {tensor.dtype}"
            )


def check_list(tensors: list[Tensor], like: Tensor, count: int, name: str, which: str) -> None:
    """Raise RuntimeError unless there is one tensor per rank, each with the shape of `like`."""
    if len(tensors) != count:
        raise RuntimeError(
            f"ProcessGroupMPI::{name}: invalid {which} tensor list at index 0 (expected length {count}, got {len(tensors)})"
        )
    for number, tensor in enumerate(tensors):
        if tensor.shape != like.shape:
            expected, got = (", ".join(map(str, each.shape)) for each in (like, tensor))
            raise RuntimeError(
                f"ProcessGroupMPI::{name}: invalid tensor size at index {number} (expected ({expected}), got ({got}))"
            )


def check_for_root(tensors: list[Tensor], is_root: bool, name: str, root: str) -> None:
    """Raise ValueError if the root passes no list, or if another rank passes a list."""
    if is_root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {root} rank.")
    if tensors and not is_root:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{root} ranks.")

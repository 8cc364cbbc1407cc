"""Splitting a batch into parts for several workers, and joining their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint as torch

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Split every tensor inside `inputs` along `dim` into at most one part for each worker in `target_gpus`.

    Other objects are passed to every worker.

    >>> import adjoint as torch
    >>> torch.nn.parallel.scatter(torch.arange(4), [0, 1])
    [tensor([0, 1]), tensor([2, 3])]
    """
    parts = split(inputs, len(target_gpus), dim)
    return [parts[0].value for _ in target_gpus] if _is_everywhere(parts) else parts


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Call `scatter` for positional and keyword arguments. Return the tuples and the dictionaries of the parts."""
    parts = split((inputs, kwargs or {}), len(target_gpus), dim)
    if _is_everywhere(parts):
        return (inputs,), (kwargs or {},)
    return tuple(part[0] for part in parts), tuple(part[1] for part in parts)


def split(value: Any, count: int, dim: int) -> list[Any]:
    """Split every tensor inside `value` along `dim` into at most `count` parts. Other objects are passed to every part."""
    if isinstance(value, torch.Tensor):
        return list(value.chunk(count, dim))
    if isinstance(value, (tuple, list)) and value:
        columns = [split(item, count, dim) for item in value]
        if all(map(_is_everywhere, columns)):
            return [_Everywhere(value)]
        rows = _align(columns)
        if hasattr(value, "_make"):
            return [value._make(row) for row in rows]
        return [type(value)(row) for row in rows]
    if isinstance(value, dict) and value:
        columns = [split(item, count, dim) for item in value.values()]
        if all(map(_is_everywhere, columns)):
            return [_Everywhere(value)]
        return [type(value)(zip(value, row, strict=True)) for row in _align(columns)]
    return [_Everywhere(value)]


class _Everywhere:
    """A value that is the same in every part."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _align(columns: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Convert the parts of each item to the items of each part."""
    count = min(len(column) for column in columns if not _is_everywhere(column))
    return [tuple(column[0].value if _is_everywhere(column) else column[i] for column in columns) for i in range(count)]


def _is_everywhere(column: list[Any]) -> bool:
    return len(column) == 1 and isinstance(column[0], _Everywhere)


def gather(outputs: Any, target_device: Any = None, dim: int = 0) -> Any:
    """Join the outputs of the parts along `dim`. Zero-dimensional outputs are stacked into a vector.

    All tensors are on the CPU.
    """
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(outputs) if first.dim() == 0 else torch.cat(outputs, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([output[key] for output in outputs], target_device, dim)) for key in first)
    joined = (gather(list(column), target_device, dim) for column in zip(*outputs, strict=True))
    return first._make(joined) if hasattr(first, "_make") else type(first)(joined)

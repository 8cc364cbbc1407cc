"""Functions that create tensors, under the standard's names."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from .data_types import Scalar, converted

__all__ = """
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like
""".split()

Shape = int | tuple[int, ...]


def _shape(shape: Shape) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(
    obj: Any, /, *, dtype: torch.dtype | None = None, device: Any = None, copy: bool | None = None
) -> torch.Tensor:
    """Convert numbers, sequences or arrays to a tensor.

    The tensor shares memory with the argument if possible. With `copy=False` it must share memory.

    The history of a tensor is kept.
    """
    if isinstance(obj, torch.Tensor):
        return converted(obj, dtype, device, copy)
    return torch.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> torch.Tensor:
    """Return a tensor that shares the memory of an object with DLPack support."""
    return torch.from_dlpack(x, device=device, copy=copy)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: torch.dtype | None = None, device: Any = None
) -> torch.Tensor:
    """Return the numbers from `start` up to, but excluding, `stop`. The result is empty if the step has the wrong sign."""
    if stop is None:
        start, stop = 0, start
    if step and (stop - start) / step <= 0:
        whole = all(isinstance(each, int) for each in (start, stop, step))
        return torch.empty(0, dtype=dtype or (torch.int64 if whole else None), device=device)
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Scalar,
    stop: Scalar,
    /,
    num: int,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> torch.Tensor:
    """Return `num` evenly spaced numbers, with or without the last one."""
    if endpoint:
        return torch.linspace(start, stop, num, dtype=dtype, device=device)
    return torch.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def empty(shape: Shape, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """Return a tensor of this shape with uninitialized elements."""
    return torch.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """Return a tensor of zeros of this shape."""
    return torch.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """Return a tensor of ones of this shape."""
    return torch.ones(_shape(shape), dtype=dtype, device=device)


def full(shape: Shape, fill_value: Scalar, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """Return a tensor of this shape with all elements equal."""
    return torch.full(_shape(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: torch.Tensor, /, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """Return a tensor with the shape of `x` and uninitialized elements."""
    return torch.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: torch.Tensor, /, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """Return a tensor of zeros with the shape of `x`."""
    return torch.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: torch.Tensor, /, *, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    """Return a tensor of ones with the shape of `x`."""
    return torch.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: torch.Tensor, /, fill_value: Scalar, *, dtype: torch.dtype | None = None, device: Any = None
) -> torch.Tensor:
    """Return a tensor with the shape of `x` and all elements equal."""
    return torch.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: torch.dtype | None = None,
    device: Any = None,
) -> torch.Tensor:
    """Return a matrix with ones on the diagonal `k`."""
    n_cols = n_rows if n_cols is None else n_cols
    matrix = torch.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        matrix.diagonal(k).fill_(1)
    return matrix


def tril(x: torch.Tensor, /, *, k: int = 0) -> torch.Tensor:
    """Return the part of the last two dimensions on and below the diagonal `k`."""
    return torch.tril(x, k)


def triu(x: torch.Tensor, /, *, k: int = 0) -> torch.Tensor:
    """Return the part of the last two dimensions on and above the diagonal `k`."""
    return torch.triu(x, k)


def meshgrid(*arrays: torch.Tensor, indexing: str = "xy") -> tuple[torch.Tensor, ...]:
    """Return the coordinates of a grid, with one tensor for each vector."""
    return tuple(torch.meshgrid(*arrays, indexing=indexing)) if arrays else ()

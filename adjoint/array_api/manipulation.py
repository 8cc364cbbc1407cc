"""Functions that change the shape of tensors and the order of elements, under the standard's names."""

from __future__ import annotations

from collections.abc import Sequence

import adjoint as torch

from .data_types import as_common

__all__ = """
    broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack
    tile unstack
""".split()

Axes = int | tuple[int, ...]


def broadcast_arrays(*arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The tensors expanded to one shape."""
    return tuple(torch.broadcast_tensors(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape to which tensors of these shapes broadcast."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: torch.Tensor, /, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor expanded to this shape."""
    return torch.broadcast_to(x, shape)


def concat(arrays: Sequence[torch.Tensor], /, *, axis: int | None = 0) -> torch.Tensor:
    """The tensors joined along an axis. If the axis is None, the tensors are flattened first."""
    tensors = as_common(*arrays)
    if axis is None:
        return torch.cat([each.flatten() for each in tensors])
    return torch.cat(tensors, axis)


def stack(arrays: Sequence[torch.Tensor], /, *, axis: int = 0) -> torch.Tensor:
    """The tensors stacked along a new axis."""
    return torch.stack(as_common(*arrays), axis)


def unstack(x: torch.Tensor, /, *, axis: int = 0) -> tuple[torch.Tensor, ...]:
    """The slices of a tensor along an axis."""
    return tuple(torch.unbind(x, axis))


def expand_dims(x: torch.Tensor, /, axis: int) -> torch.Tensor:
    """The tensor with a new axis of size one."""
    return torch.unsqueeze(x, axis)


def squeeze(x: torch.Tensor, /, axis: Axes) -> torch.Tensor:
    """The tensor without these axes, which must be of size one."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze(): axis {each} is of size {x.shape[each]}, not 1")
    return torch.squeeze(x, axes)


def flip(x: torch.Tensor, /, *, axis: Axes | None = None) -> torch.Tensor:
    """The elements in reverse order along one, several or all axes."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return torch.flip(x, axes)


def moveaxis(x: torch.Tensor, source: Axes, destination: Axes, /) -> torch.Tensor:
    """The tensor with axes moved to other positions."""
    return torch.movedim(x, source, destination)


def permute_dims(x: torch.Tensor, /, axes: tuple[int, ...]) -> torch.Tensor:
    """The tensor with its axes in another order."""
    return torch.permute(x, tuple(axes))


def repeat(x: torch.Tensor, repeats: int | torch.Tensor, /, *, axis: int | None = None) -> torch.Tensor:
    """Each element repeated several times. If the axis is None, the elements of the flattened tensor are repeated."""
    counts = repeats.to(torch.int64) if isinstance(repeats, torch.Tensor) else repeats
    return torch.repeat_interleave(x, counts, dim=axis)


def reshape(x: torch.Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> torch.Tensor:
    """The elements in another shape. `copy=True` always copies, and `copy=False` never copies."""
    if copy:
        return x.clone().reshape(shape)
    if copy is None:
        return x.reshape(shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(): this needs a copy, which copy=False forbids: {error}") from None


def roll(x: torch.Tensor, /, shift: Axes, *, axis: Axes | None = None) -> torch.Tensor:
    """The elements shifted cyclically along axes. If the axis is None, the elements of the flattened tensor are shifted."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return torch.roll(x, shift) if axis is None else torch.roll(x, shift, axis)


def tile(x: torch.Tensor, repetitions: tuple[int, ...], /) -> torch.Tensor:
    """The tensor repeated along its axes."""
    return torch.tile(x, tuple(repetitions))

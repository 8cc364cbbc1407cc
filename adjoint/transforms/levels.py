"""PyTorch's private interface to transforms.

A program begins and ends a transform explicitly, and identifies it by its level.

No `with` block surrounds such a transform, so the code that begins a transform must end it.
"""

from __future__ import annotations

from typing import Any

from ..tape import modes
from ..tape.interpreters import Interpreter, Transform
from ..tensor import Tensor, wrap_dim
from . import vmap
from .reverse import Reverse
from .vmap_interpreter import VmapInterpreter


def current_level() -> int:
    """Return the number of transforms that are running in this thread.

    Raises:
        RuntimeError: if no transform is running.
    """
    if not modes.STATE.transforms:
        raise RuntimeError("no transform of functions is running: there is no current level")
    return len(modes.STATE.transforms)


def begin_vmap(batch_size: int, randomness: str) -> int:
    """Begin a `vmap` over `batch_size` examples, and return its level."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("randomness argument must be error, same, or different.")
    level = VmapInterpreter(batch_size, randomness)
    level.begin()
    level.enter()
    return level.number


def begin_grad() -> int:
    """Begin a transform that differentiates in reverse mode, and return its level."""
    transform = Reverse()
    transform.begin()
    return transform.number


def end_innermost() -> int:
    """End the innermost transform, and return its level.

    Raises:
        RuntimeError: if no transform is running.
    """
    number = current_level()
    transform = modes.STATE.transforms[-1]
    transform.end()
    if isinstance(transform, Interpreter):
        transform.leave()
    return number


def add_batch_dim(value: Tensor, dim: int, level: Any) -> Tensor:
    """Return a tensor without its dimension `dim`, as the `vmap` of this level sees it."""
    return vmap._add_batch_dim(value, dim, _vmap_at(level))


def remove_batch_dim(output: Tensor, level: Any, size: int, dim: int) -> Tensor:
    """Return the tensor of the whole batch of the `vmap` of this level, with the batch dimension at position `dim`."""
    return vmap._remove_batch_dim(output, _vmap_at(level), size, dim)


def unwrap_batched(tensor: Tensor, level: Any) -> tuple[Tensor, int | None]:
    """Return the tensor of the whole batch of the `vmap` of this level, and its batch dimension or None."""
    interpreter = _vmap_at(level)
    return (tensor.value, tensor.bdim) if interpreter.has(tensor) else (tensor, None)  # type: ignore[attr-defined]


def wrap_for_grad(tensor: Tensor, level: Any) -> Tensor:
    """Return a copy of `tensor`. The transform of this level differentiates with respect to the copy."""
    transform: Any = _at(level)
    tracked: Tensor = transform.track(tensor)
    return tracked


def unwrap_for_grad(tensor: Tensor, level: Any) -> Tensor:
    """Return `tensor` without its history in the transform of this level."""
    _at(level)
    return tensor.detach()


def reshape_dim_into(src: int, dst: int, x: Tensor) -> Tensor:
    """Merge the dimension `src` into the dimension that is then at `dst`. The slices of `src` follow one another."""
    src = wrap_dim(src, x.dim())
    dst = wrap_dim(dst, x.dim() - 1)
    return x.movedim(src, dst).flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Tensor) -> Tensor:
    """Undo `reshape_dim_into` by splitting the dimension `src` into a dimension of `size1` and another dimension."""
    src = wrap_dim(src, x.dim())
    return x.unflatten(src, (size1, x.shape[src] // size1))


def _at(level: Any) -> Transform:
    if isinstance(level, Transform):
        return level
    transforms = modes.STATE.transforms
    if not 0 < level <= len(transforms):
        raise RuntimeError(f"no transform of functions runs at level {level}")
    return transforms[level - 1]


def _vmap_at(level: Any) -> VmapInterpreter:
    transform = _at(level)
    if not isinstance(transform, VmapInterpreter):
        raise RuntimeError(f"the transform at level {level} is no vmap")
    return transform

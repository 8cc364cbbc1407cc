"""`torch._C._functorch`: names that programs use to inspect tensors in a transformed function, and to begin and end transforms.

No `with` block surrounds such a transform, so the code that begins a transform must end it. A level identifies the transform.
"""

from enum import Enum
from typing import Any

from adjoint.tape import modes
from adjoint.tape.interpreters import Transform
from adjoint.tensor import Tensor, wrap_dim
from adjoint.transforms import vmap
from adjoint.transforms.forward_mode import JvpInterpreter
from adjoint.transforms.reverse import Forward, Functional, Reverse, debug_unwrap, has_ended, tracking
from adjoint.transforms.vmap_interpreter import BatchedTensor, VmapInterpreter


class TransformType(Enum):
    """The types of function transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4

    def __str__(self) -> str:
        return f"TransformType.{self.name}"


def type_of(transform: Transform) -> TransformType:
    """Return the type of a running transform."""
    if isinstance(transform, VmapInterpreter):
        return TransformType.Vmap
    if isinstance(transform, JvpInterpreter):
        return TransformType.Jvp
    return TransformType.Functionalize if isinstance(transform, Functional) else TransformType.Grad


def current_level() -> int:
    """Return the number of transforms that are running in this thread.

    Raises:
        RuntimeError: if no transform is running.
    """
    if not modes.STATE.transforms:
        raise RuntimeError("no transform of functions is running: there is no current level")
    return len(modes.STATE.transforms)


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begin a `vmap` over `batch_size` examples, and return its level."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("randomness argument must be error, same, or different.")
    level = VmapInterpreter(batch_size, randomness)
    level.begin()
    return level.number


def _grad_increment_nesting() -> int:
    """Begin a transform that differentiates in reverse mode, and return its level."""
    transform = Reverse()
    transform.begin()
    return transform.number


def _jvp_increment_nesting() -> int:
    """Begin a transform that differentiates in forward mode, and return its level."""
    transform = Forward()
    transform.begin()
    return transform.number


def _vmap_decrement_nesting() -> int:
    """End the innermost transform, and return its level.

    Raises:
        RuntimeError: if no transform is running.
    """
    number = current_level()
    modes.STATE.transforms[-1].end()
    return number


_grad_decrement_nesting = _jvp_decrement_nesting = _vmap_decrement_nesting


def get_dynamic_layer_stack_depth() -> int:
    """Return the number of transforms that are running in this thread."""
    return len(modes.STATE.transforms)


def pop_dynamic_layer_stack_and_undo_to_depth(depth: int) -> None:
    """End the innermost transforms until `depth` of them are running."""
    while len(modes.STATE.transforms) > depth:
        modes.STATE.transforms[-1].end()


def _add_batch_dim(value: Tensor, dim: int, level: Any) -> Tensor:
    """Return a tensor without its dimension `dim`, as the `vmap` of this level sees it."""
    return vmap._add_batch_dim(value, dim, _vmap_at(level))


def _remove_batch_dim(output: Tensor, level: Any, size: int, dim: int) -> Tensor:
    """Return the tensor of the whole batch of the `vmap` of this level, with the batch dimension at position `dim`."""
    return vmap._remove_batch_dim(output, _vmap_at(level), size, dim)


def _unwrap_batched(tensor: Tensor, level: Any) -> tuple[Tensor, int | None]:
    """Return the tensor of the whole batch of the `vmap` of this level, and its batch dimension or None."""
    interpreter = _vmap_at(level)
    return (tensor.value, tensor.bdim) if interpreter.has(tensor) else (tensor, None)  # type: ignore[attr-defined]


def _is_vmap_fallback_enabled() -> bool:
    """Return whether `vmap` applies operators without a batching rule to one batch element after another."""
    return not VmapInterpreter.refuses_fallback


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Set whether `vmap` applies operators that have no batching rule in PyTorch, or refuses them."""
    VmapInterpreter.refuses_fallback = not enabled


def _wrap_for_grad(tensor: Tensor, level: Any) -> Tensor:
    """Return a copy of `tensor`. The transform of this level differentiates with respect to the copy."""
    transform: Any = _at(level)
    tracked: Tensor = transform.track(tensor)
    return tracked


def _unwrap_for_grad(tensor: Tensor, level: Any) -> Tensor:
    """Return `tensor` without its history in the transform of this level."""
    _at(level)
    return tensor.detach()


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Return whether the innermost transform to which `tensor` belongs differentiates it."""
    return bool(tracking(tensor))


def is_batchedtensor(tensor: Tensor) -> bool:
    """Return whether the innermost transform to which `tensor` belongs is the `vmap` that wraps it."""
    return type(tensor) is BatchedTensor and tensor.bdim is not None and not tracking(tensor)


def is_functorch_wrapped_tensor(tensor: Tensor) -> bool:
    """Return whether `tensor` belongs to a function transform."""
    return maybe_get_level(tensor) > 0


def maybe_get_bdim(tensor: Tensor) -> int:
    """Return the batch dimension of a batched tensor, or -1 for other tensors."""
    return tensor.bdim if type(tensor) is BatchedTensor and is_batchedtensor(tensor) else -1  # type: ignore[return-value]


def maybe_get_level(tensor: Tensor) -> int:
    """Return the level of the innermost transform to which `tensor` belongs, or -1."""
    found = tracking(tensor)
    if found:
        return found[0].number
    return tensor.level.number if type(tensor) is BatchedTensor and tensor.bdim is not None else -1


def dlevel(tensor: Tensor) -> int:
    """Return the level of the innermost transform to which `tensor` belongs: 0 for none, and -1 if it has ended."""
    created = getattr(tensor._counter, "created_in", 0)
    ended = all(transform.serial != created for transform in modes.STATE.transforms)
    is_dead = (created and ended and tensor.grad_fn is not None) or has_ended(tensor)
    return -1 if is_dead else max(maybe_get_level(tensor), 0)


def maybe_current_level() -> int | None:
    """Return the number of running transforms in this thread, or None if there are none."""
    return len(modes.STATE.transforms) or None


def get_unwrapped(tensor: Tensor) -> Tensor:
    """Unwrap a tensor by the innermost level."""
    if not is_functorch_wrapped_tensor(tensor):
        raise RuntimeError("No wrappers present!")
    return debug_unwrap(tensor, recurse=False)


def is_dead_tensor_wrapper(tensor: Tensor) -> bool:
    """Return whether `tensor` belongs to a transform that has ended."""
    return dlevel(tensor) == -1


def unwrap_if_dead(tensor: Any) -> Any:
    """Return `tensor` without the history of its transform if the transform has ended, and any other value unchanged."""
    return tensor.detach() if isinstance(tensor, Tensor) and is_dead_tensor_wrapper(tensor) else tensor


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


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Return False, because only one kind of batched tensor exists."""
    return False

"""`torch._C._autograd`: those names of PyTorch's C library that programs which look into the engine use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tape import mode_switches, modes
from ..tape.node import Node
from ..tape.node_interface import InputMetadata as _InputMetadata
from ..tape.saved_attributes import SavedTensor as SavedTensor
from ..tape.versions import shared_counter
from ..tensor import Tensor
from .graph import saved_tensors_hooks

__all__ = ["SavedTensor", "_InputMetadata"]


def _push_saved_tensors_default_hooks(pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
    """Enter `saved_tensors_hooks(pack_hook, unpack_hook)`."""
    saved_tensors_hooks(pack_hook, unpack_hook).__enter__()


def _pop_saved_tensors_default_hooks() -> None:
    """Leave the innermost `saved_tensors_hooks`.

    Raises:
        RuntimeError: if there are none.
    """
    if not modes.STATE.saved_tensor_hooks:
        raise RuntimeError("there are no saved tensor hooks to leave")
    mode_switches.pop_saved_tensor_hooks()


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved-tensor hooks may be used in this thread."""
    return modes.STATE.hooks_disabled is None


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Let the use of saved-tensor hooks raise RuntimeError with `error_message` from now on."""
    if fail_if_non_empty and modes.STATE.saved_tensor_hooks:
        raise RuntimeError(error_message)
    modes.STATE.hooks_disabled = error_message


def _saved_tensors_hooks_enable() -> None:
    """Allow saved-tensor hooks again."""
    modes.STATE.hooks_disabled = None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """The message of `_saved_tensors_hooks_disable`, None while they are allowed."""
    return modes.STATE.hooks_disabled


def _unsafe_set_version_counter(tensors: tuple[Tensor, ...], versions: tuple[int, ...]) -> None:
    """Set how many in-place changes of each of `tensors` there have been, as backward sees it."""
    if len(tensors) != len(versions):
        raise RuntimeError(f"tensors_len={len(tensors)}, versions_len={len(versions)}")
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        shared_counter(tensor)[0] = version


def current_autograd_node() -> Node | None:
    """The node that this thread is running in a backward."""
    from .graph_task import current_node

    return current_node()


def will_engine_execute_node(node: Any) -> bool:
    """Whether the backward that is running in this thread reaches `node`.

    Raises:
        RuntimeError: outside of a backward, or for what is no node.
    """
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if modes.STATE.task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return bool(modes.STATE.task.will_run(node))

"""`torch._C._autograd`: names of PyTorch's C library that other programs use to inspect the engine."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from typing import Any

from adjoint._runtime.sequence import sequence_numbers
from adjoint.autograd.function_context import SavedVariable
from adjoint.autograd.graph import saved_tensors_hooks
from adjoint.autograd.graph_task import current_node
from adjoint.tape import mode_switches, modes, views
from adjoint.tape.node import Node, accumulator_of
from adjoint.tape.node_interface import InputMetadata as _InputMetadata
from adjoint.tape.saved_attributes import SavedTensor as SavedTensor
from adjoint.tape.versions import shared_counter
from adjoint.tensor import Tensor

__all__ = ["SavedTensor", "_InputMetadata"]


def _push_saved_tensors_default_hooks(pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
    """Enter `saved_tensors_hooks(pack_hook, unpack_hook)`."""
    saved_tensors_hooks(pack_hook, unpack_hook).__enter__()


def _pop_saved_tensors_default_hooks() -> None:
    """Leave the innermost `saved_tensors_hooks`, or raise an error if there is none."""
    if not modes.STATE.saved_tensor_hooks:
        raise RuntimeError("there are no saved tensor hooks to leave")
    mode_switches.pop_saved_tensor_hooks()


def _saved_tensors_hooks_is_enabled() -> bool:
    """Return whether saved-tensor hooks may be used in this thread."""
    return modes.STATE.hooks_disabled is None


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Disable saved-tensor hooks. From now on, using them raises RuntimeError with `error_message`."""
    if fail_if_non_empty and modes.STATE.saved_tensor_hooks:
        raise RuntimeError(error_message)
    modes.STATE.hooks_disabled = error_message


def _saved_tensors_hooks_enable() -> None:
    """Allow saved-tensor hooks again."""
    modes.STATE.hooks_disabled = None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """Return the message given to `_saved_tensors_hooks_disable`, or None while hooks are allowed."""
    return modes.STATE.hooks_disabled


def _unsafe_set_version_counter(tensors: tuple[Tensor, ...], versions: tuple[int, ...]) -> None:
    """Set the version of each of `tensors`. Backward compares versions to detect in-place changes."""
    if len(tensors) != len(versions):
        raise RuntimeError(f"tensors_len={len(tensors)}, versions_len={len(versions)}")
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        counter = shared_counter(tensor)
        if not isinstance(counter, list):
            raise RuntimeError(
                "Tried to call torch.autograd._unsafe_set_version() on a tensor that does not have a version counter. Was it "
                "created in inference mode?"
            )
        counter[0] = version


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> tuple[Any, Any] | None:
    """Return the innermost pair of saved-tensor hooks, or None."""
    hooks = modes.STATE.saved_tensor_hooks
    return (hooks[-1][0], hooks[-1][1]) if hooks else None


def _make_saved_tensor(tensor: Tensor, is_output: bool, is_inplace_on_view: bool = False) -> SavedTensor:
    """Save `tensor`, through the saved-tensor hooks if there are any."""
    return SavedVariable(tensor, 0 if is_output else None)


class CreationMeta(enum.Enum):
    """The origin of a view. The origin decides whether the view may be changed in place."""

    DEFAULT = 0
    IN_CUSTOM_FUNCTION = 1
    MULTI_OUTPUT_NODE = 2
    NO_GRAD_MODE = 3
    INFERENCE_MODE = 4


_CREATIONS = {
    None: CreationMeta.DEFAULT,
    views.CUSTOM: CreationMeta.IN_CUSTOM_FUNCTION,
    views.MULTI_OUTPUT: CreationMeta.MULTI_OUTPUT_NODE,
    views.NO_GRAD: CreationMeta.NO_GRAD_MODE,
    views.INFERENCE: CreationMeta.INFERENCE_MODE,
}


def _get_creation_meta(view: Tensor) -> CreationMeta:
    """Return the origin of a view, or raise an error for any other tensor."""
    if view._base is None:
        raise RuntimeError("a tensor that is no view has no creation meta")
    return _CREATIONS[view._creation]


def _get_sequence_nr() -> int:
    """Return the sequence number of the next node."""
    return int(repr(sequence_numbers).removeprefix("count(").removesuffix(")"))  # copying a `count` is deprecated


def _get_current_graph_task_keep_graph() -> bool:
    """Return whether the current backward of this thread retains its graph. Return True outside of a backward."""
    return modes.STATE.task is None or modes.STATE.task.retain_graph


def _profiler_enabled() -> bool:
    """Return whether this thread is being profiled."""
    return modes.STATE.recorder is not None


def current_autograd_node() -> Node | None:
    """Return the node that this thread is running in a backward."""
    return current_node()


def will_engine_execute_node(node: Any) -> bool:
    """Return whether the current backward of this thread reaches `node`. Raise an error outside of a backward."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    if modes.STATE.task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    return bool(modes.STATE.task.will_run(node))


def execution_order() -> list[Node]:
    """Return the nodes that the current backward of this thread will still run, in order.

    Each `AccumulateGrad` runs as early as possible.

    Raises:
        RuntimeError: outside of a backward, or if the backward may use several threads, as PyTorch's may.
    """
    task = modes.STATE.task
    if task is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if modes.STATE.multithreading:
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, "
            "e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     torch.autograd.grad(...)\n"
        )
    nodes = [node for node in task.order if task.will_run(node)]
    current = current_node()
    if current in nodes:
        nodes = nodes[nodes.index(current) :]
    assert task.needed is not None  # set by `will_run`
    leading_on = [[edge for edge in task.needed.get(node, ()) if isinstance(edge, Tensor)] for node in nodes]
    awaited = Counter(leaf for leaves in leading_on for leaf in leaves)
    order: list[Node] = []
    for node, leaves in zip(nodes, leading_on, strict=True):
        order.append(node)
        awaited.subtract(leaves)
        order += [accumulator_of(leaf) for leaf in dict.fromkeys(leaves) if not awaited[leaf]]
    return order

"""`register_multi_grad_hook`: one hook for the gradients of several tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._runtime.forks import lock_across_forks
from .._runtime.weak_keys import WeakKeys
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.hook_handles import RemovableHandle
from ..tape.node import NOWHERE, Node
from ..tensor import Tensor
from .gradient_edge import get_gradient_edge
from .graph_task import GraphTask


class _MultiHandle(RemovableHandle):
    """A handle that removes a hook from all tensors on which it is registered."""

    handles: tuple[RemovableHandle, ...]

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove the hook. Removing it twice has no effect."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[RemovableHandle, ...]:
        return self.handles

    def __setstate__(self, state: tuple[RemovableHandle, ...]) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` in each backward that computes gradients of `tensors`.

    With `mode="all"`, `fn` is called when all gradients that this backward computes for `tensors` have arrived. It
    receives a list, with None for the other tensors. With `mode="any"`, `fn` is called with the first gradient. The
    result of `fn` is ignored.

    Raises:
        ValueError: if the mode is neither "all" nor "any".
        AssertionError: if a tensor does not require grad, in mode "all".

    >>> import adjoint as torch
    >>> x, y, z = (torch.tensor(value, requires_grad=True) for value in (1.0, 2.0, 3.0))
    >>> with torch.autograd.graph.register_multi_grad_hook((x, y, z), print):
    ...     (x * y).backward()
    [tensor(2.), tensor(1.), None]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    hook = _All(tensors, fn) if mode == "all" else _Any(fn)
    handles = [tensor.register_hook(hook.of(number)) for number, tensor in enumerate(tensors) if tensor.requires_grad]
    return _MultiHandle(tuple(handles))


class _All:
    """A hook that waits for the gradients of all its tensors, separately in each backward."""

    def __init__(self, tensors: Sequence[Tensor], fn: Callable[..., None]) -> None:
        self.nodes = [_node_of(tensor) for tensor in tensors]
        self.fn = fn
        self.arrived: WeakKeys[GraphTask, dict[int, Tensor]] = WeakKeys()
        self.expected: WeakKeys[GraphTask, int] = WeakKeys()
        self.lock = lock_across_forks()

    def of(self, number: int) -> Callable[[Tensor], None]:
        """Return the hook of tensor `number`."""
        return lambda grad: self.take(number, grad)

    def take(self, number: int, grad: Tensor) -> None:
        """Store a gradient. After the last gradient, call the function."""
        task = modes.STATE.task
        with self.lock:
            if task not in self.expected:
                self.expected[task] = sum(task.will_run(node) for node in self.nodes)
                self.arrived[task] = {}
            arrived = self.arrived[task]
            arrived[number] = grad
            if len(arrived) < self.expected[task]:
                return
            del self.arrived[task], self.expected[task]
        self.fn([arrived.get(index) for index in range(len(self.nodes))])


class _Any:
    """A hook that waits for the first gradient of any of its tensors, in each backward."""

    def __init__(self, fn: Callable[..., None]) -> None:
        self.fn = fn
        self.called: WeakKeys[GraphTask, bool] = WeakKeys()
        self.lock = lock_across_forks()

    def of(self, number: int) -> Callable[[Tensor], None]:
        """Return the hook of each tensor. All tensors have the same hook."""
        return self.take

    def take(self, grad: Tensor) -> None:
        """Call the function unless this backward has called it already."""
        task = modes.STATE.task
        with self.lock:
            if task in self.called:
                return
            self.called[task] = True
        self.fn(grad)


def _node_of(tensor: Tensor) -> Node:
    if not tensor.requires_grad or edge_of(tensor) is NOWHERE:
        raise AssertionError("Expected gradient function to be set")
    return get_gradient_edge(tensor).node

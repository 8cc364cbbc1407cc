"""`adjoint.autograd.graph`: looking at the graph, and the hooks that pack and unpack saved tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..tape import modes
from ..tape.edges import edge_of
from ..tape.hooks import RemovableHandle
from ..tape.node import Node, accumulator_of
from ..tape.saved import bump
from ..tensor import Tensor
from .task import WATCHERS, present_task


class GradientEdge(NamedTuple):
    """Where a gradient arrives: output `output_nr` of `node`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place where a gradient of `tensor` arrives: its `grad_fn` (or `AccumulateGrad`) and output number."""
    edge = edge_of(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node: Node = accumulator_of(edge) if isinstance(edge, Tensor) else edge[0]
    return GradientEdge(node, 0 if isinstance(edge, Tensor) else edge[1])


class saved_tensors_hooks:
    """Context manager: tensors that operations save are passed through `pack_hook`, and back through `unpack_hook`.

    `pack_hook(tensor)` may return anything; `unpack_hook(packed)` must return a tensor of the same value. The innermost
    pair applies. Saving to disk, compressing or counting what a graph keeps are done this way.

    >>> import adjoint as torch
    >>> x = torch.ones(3, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), torch.from_numpy):
    ...     y = x.exp().sum()
    >>> y.backward()
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        modes.push_saved_tensor_hooks((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exception: object) -> None:
        modes.pop_saved_tensor_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Context manager: nodes keep copies of saved tensors, so that changing the originals does no harm.

    PyTorch moves them from the GPU to main memory; here they are there anyway.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda packed: packed)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Context manager: tensors that are saved may be changed in place afterwards; what was saved is what counts.

    A copy of each is kept. PyTorch makes it only when the tensor is about to be changed.
    """

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda packed: packed)


class MultiHandle(RemovableHandle):
    """Removes a hook of several tensors."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles
        WATCHERS.count += 1

    def remove(self) -> None:
        """Remove the hook from all tensors; removing it twice does nothing."""
        if self.handles:
            WATCHERS.count -= 1
        for handle in self.handles:
            handle.remove()
        self.handles = ()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once in a backward that reaches some of `tensors`.

    With mode `"all"` when all gradients are there, with a list of them (None for a tensor that is not reached); with `"any"`
    when the first is there, with that.

    >>> import adjoint as torch
    >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> handle = torch.autograd.graph.register_multi_grad_hook((a, b), print)
    >>> (a * 2 + b).sum().backward()
    [tensor([2.]), tensor([1.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    edges = [edge_of(tensor) for tensor in tensors]
    if None in edges:
        raise AssertionError("Expected gradient function to be set")
    key = object()

    def arrived(index: int, grad: Tensor) -> None:
        task = present_task()
        if task is None:
            return
        if mode == "any":
            if key not in task.notes:
                task.notes[key] = True
                fn(grad)
            return
        grads: list[Tensor | None] = task.notes.setdefault(key, [None] * len(edges))
        grads[index] = grad
        if sum(item is not None for item in grads) == sum(map(task.reaches, edges)):
            fn(grads)

    return MultiHandle(
        tuple(tensor.register_hook(functools.partial(arrived, index)) for index, tensor in enumerate(tensors))
    )


class disable_saved_tensors_hooks:
    """Context manager and decorator: using saved-tensor hooks inside raises RuntimeError with `error_message`."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        self.previous = modes.STATE.hooks_disabled
        modes.STATE.hooks_disabled = self.error_message

    def __exit__(self, *exception: object) -> None:
        modes.STATE.hooks_disabled = self.previous

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `function`: hooks are disabled while it runs."""

        @functools.wraps(function)
        def decorated(*args: Any, **keywords: Any) -> Any:
            with type(self)(self.error_message):
                return function(*args, **keywords)

        return decorated


def increment_version(tensor: Tensor | Any) -> None:
    """Count a change that was made to the memory of `tensor` (or each of several) behind autograd's back."""
    for item in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump(item, "increment_version")

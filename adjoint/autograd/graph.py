"""`adjoint.autograd.graph`: looking at the graph, and the hooks that pack and unpack saved tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ..tape import modes
from ..tape.edges import edge_of
from ..tape.node import Node, accumulator_of
from ..tape.saved import bump
from ..tensor import Tensor


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

"""Handles that remove a hook, and the full backward hooks of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .._runtime.tracebacks import warn

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


RemovableHandle = torch.autograd.graph.RemovableHandle


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a tensor hook that may be dropped when its tensor is serialized."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn if `tensor` has backward hooks that serialization would drop."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning"
            )


class BackwardHookFunction(torch.autograd.Function):
    """The identity of several tensors. One node receives all their gradients together."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Any:
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads


class BackwardHook:
    """The backward hooks of one call of a module. It calls full backward hooks with the gradients of inputs and outputs.

    The inputs and the outputs each pass through one identity node. The node of the outputs receives the gradients of
    all outputs and passes them to the pre-hooks. The node of the inputs computes the gradients of all inputs and calls
    the hooks.
    """

    def __init__(
        self, module: Any, user_hooks: Iterable[Callable[..., Any]], user_pre_hooks: Iterable[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.user_hooks = list(user_hooks)
        self.user_pre_hooks = list(user_pre_hooks)
        self.input_positions: list[int] | None = None
        self.input_forms: list[tuple[Any, Any]] = []
        self.input_count = -1
        self.output_positions: list[int] = []
        self.output_count = -1
        self.grad_outputs: Any = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `args` with their tensors passed through the inputs' node."""
        self.input_count = len(args)
        self.input_forms = [(arg.shape, arg.dtype) for arg in args if isinstance(arg, Tensor)]
        args, self.input_positions = _through_one_node(args, lambda node: node.register_hook(self._on_input_gradients))
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """Pass the tensors of `result` through the outputs' node, and return the result."""
        is_tuple = isinstance(result, tuple)
        if not is_tuple and not isinstance(result, Tensor):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}"
            )
            return result
        outputs = result if is_tuple else (result,)
        self.output_count = len(outputs)
        outputs, positions = _through_one_node(outputs, lambda node: node.register_prehook(self._on_output_gradients))
        self.output_positions = positions or []
        return outputs if is_tuple else outputs[0]

    def _on_output_gradients(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...] | None:
        grad_outputs = _spread(self.output_count, self.output_positions, grads)
        before = grad_outputs
        for hook in self.user_pre_hooks:
            result = hook(self.module, grad_outputs)
            grad_outputs = _replaced(grad_outputs, result, self.output_count, "pre hook", "grad_output")
        self.grad_outputs = grad_outputs
        if self.input_positions is None:
            self._call_hooks_without_input_gradients()
        return None if grad_outputs is before else tuple(grad_outputs[i] for i in self.output_positions)

    def _call_hooks_without_input_gradients(self) -> None:
        warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no "
            "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details."
        )
        grad_inputs = (None,) * self.input_count
        for hook in self.user_hooks:
            result = hook(self.module, grad_inputs, self.grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(grad is None for grad in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or "
                    "None for all gradients."
                )
        self.grad_outputs = None

    def _on_input_gradients(
        self, grads: tuple[Tensor | None, ...], _: tuple[Tensor | None, ...]
    ) -> tuple[Tensor | None, ...] | None:
        if self.grad_outputs is None:  # the gradient bypassed the module's outputs
            return None
        assert self.input_positions is not None
        # An input that requires no gradient gets zeros, as always for a node with several outputs.
        filled = [
            torch.zeros(shape, dtype=dtype) if grad is None else grad
            for grad, (shape, dtype) in zip(grads, self.input_forms, strict=True)
        ]
        grad_inputs = _spread(self.input_count, self.input_positions, filled)
        before = grad_inputs
        for hook in self.user_hooks:
            result = hook(self.module, grad_inputs, self.grad_outputs)
            grad_inputs = _replaced(grad_inputs, result, self.input_count, "hook", "grad_input")
        self.grad_outputs = None
        return None if grad_inputs is before else tuple(grad_inputs[i] for i in self.input_positions)


def _replaced(grads: Any, result: Any, count: int, kind: str, what: str) -> Any:
    """Return the gradients after a hook has returned `result`, which is None or the new gradients."""
    if result is not None and len(result) != count:
        raise RuntimeError(
            f"Backward {kind} returned an invalid number of {what}, got {len(result)}, but expected {count}"
        )
    return grads if result is None else result


def _through_one_node(
    values: tuple[Any, ...], watch: Callable[[Any], None]
) -> tuple[tuple[Any, ...], list[int] | None]:
    """Pass the tensors among `values` through one identity node, and call `watch` with that node.

    Return the new values and the positions of the tensors, or `values` and None if no tensor requires grad.
    """
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not torch.is_grad_enabled() or not any(values[i].requires_grad for i in positions):
        return values, None
    tensors = BackwardHookFunction.apply(*[values[i] for i in positions])
    nodes = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    if not nodes:
        raise RuntimeError("Error while setting up backward hooks: the identity node was not recorded.")
    watch(nodes[0])
    replaced = list(values)
    for i, tensor in zip(positions, tensors, strict=True):
        replaced[i] = tensor
    if type(values) is not tuple and hasattr(values, "_make"):  # keep the type of a named tuple
        return values._make(replaced), positions
    return tuple(replaced), positions


def _spread(count: int, positions: list[int], grads: Iterable[Tensor | None]) -> tuple[Any, ...]:
    """Return the gradients at their positions among all `count` arguments, and None for arguments that are not tensors."""
    spread: list[Tensor | None] = [None] * count
    for i, grad in zip(positions, grads, strict=True):
        spread[i] = grad
    return tuple(spread)

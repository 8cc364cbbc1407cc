"""The `ctx` of custom functions, arguments that are given by name, and `once_differentiable`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._runtime.tracebacks import warn
from ..tape import modes
from ..tape.edges import edge_of
from ..tape.interpreters import innermost
from ..tape.node import Node, start
from ..tensor import Tensor, wrap


class FunctionCtx:
    """The methods of `ctx` for `forward`, `setup_context` and `backward`."""

    __slots__ = ("__dict__",)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs or outputs for `backward`, which reads them as `ctx.saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save inputs or outputs for `jvp`, which reads them as `ctx.saved_for_forward`."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare which inputs `forward` has changed in place. `forward` must also return these inputs."""
        self.dirty_tensors = tensors

    def mark_shared_storage(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """Warn, and do nothing else, because the library knows which tensors share memory."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that calls to "
            "`set_()` are not tracked",
            FutureWarning,
        )

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` gets zeros (the default) or None for outputs that received no gradient."""
        self.materialize_grads = value

    def maybe_clear_saved_tensors(self) -> None:
        """Release the saved tensors within `backward`, unless the graph is retained."""
        task = modes.STATE.task
        if task is not None and not task.retain_graph:
            self._saved = None


def bound(
    forward: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], separate: bool
) -> tuple[Any, ...]:
    """Return the arguments of `forward` in order, with defaults, without `ctx`, which it takes unless `separate`."""
    signature = inspect.signature(forward)
    if separate:
        _refuse_keyword_only(signature, args, keywords)
        values = signature.bind(*args, **keywords)
        values.apply_defaults()
        return values.args
    parameters = [each for each in signature.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD][1:]
    names = [parameter.name for parameter in parameters]
    unknown = next((name for name in keywords if name not in names), None)
    if unknown is not None:
        raise TypeError(f"forward() got an unexpected keyword argument '{unknown}'")
    results = list(args)
    for position, parameter in enumerate(parameters[len(args) :], start=len(args)):
        if parameter.name not in keywords and parameter.default is parameter.empty:
            raise TypeError(f"forward() missing required argument: '{parameter.name}' (position {position})")
        results.append(keywords.get(parameter.name, parameter.default))
    return tuple(results)


def _refuse_keyword_only(signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raise an error if a keyword argument cannot be passed by position, because only positional arguments are recorded."""
    for name, parameter in signature.parameters.items():
        if name in keywords and parameter.kind is parameter.KEYWORD_ONLY:
            if innermost((*args, *keywords.values())) is not None:
                raise NotImplementedError(
                    "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
                    f"autograd.Function. Got: {keywords}"
                )
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")


class Error(Node):
    """The history of tensors that cannot be differentiated. Its backward raises an error."""

    __slots__ = ("message",)
    message: str

    def name(self) -> str:
        """Return PyTorch's full name."""
        return "torch::autograd::Error"

    def backward(self, grad: Any, retain_graph: bool, edges: Any) -> tuple[Any, ...]:
        """Raise the error."""
        raise RuntimeError(self.message)

    backward_recorded = backward


def failing(message: str, tensors: Sequence[Any]) -> list[Any]:
    """Return `tensors` with a history whose backward raises RuntimeError with `message`. Other objects stay unchanged."""
    node = object.__new__(Error)
    node.message = message
    start(node, tuple([edge_of(each) if isinstance(each, Tensor) else None for each in tensors]), 2)
    results = [wrap(each._array) if isinstance(each, Tensor) else each for each in tensors]
    made = [(number, each) for number, each in enumerate(results) if isinstance(each, Tensor)]
    node._grad_shape, node._grad_dtype = [None] * len(results), [None] * len(results)
    for number, each in made:
        node._grad_shape[number], node._grad_dtype[number] = each._array.shape, each._array.dtype
        each._edge = (node, number)
    if len(results) == 1:
        node._grad_shape, node._grad_dtype = node._grad_shape[0], node._grad_dtype[0]
    return results


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose computation cannot itself be differentiated."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with modes.switched(grad_enabled=False):
            results = function(ctx, *grads)
        needs = any(isinstance(grad, Tensor) and grad.requires_grad for grad in grads)
        if not modes.is_grad_enabled() or not needs:
            return results
        several = isinstance(results, tuple)
        leaves = [
            wrap(each._array, True) if isinstance(each, Tensor) else each
            for each in (results if several else (results,))
        ]
        marked = failing("trying to differentiate twice a function that was marked with @once_differentiable", leaves)
        return tuple(marked) if several else marked[0]

    return wrapper

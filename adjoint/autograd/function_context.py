"""The `ctx` of custom functions and what it saves, arguments that are given by name, and `once_differentiable`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._runtime.tracebacks import warn
from ..tape import modes
from ..tape.aliases import detached
from ..tape.edges import edge_of
from ..tape.interpreters import innermost
from ..tape.node import Node, start
from ..tape.packing import Packed, pack, shown, without_hooks
from ..tape.saved import released
from ..tape.saved_attributes import SavedTensor
from ..tape.stale_error import stale_error
from ..tape.versions import shared_counter
from ..tensor import Tensor, history, wrap


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


# --- the tensors that a custom function saves ---------------------------------------------------------------------


class SavedVariable(SavedTensor):
    """One tensor given to `save_for_backward`. An output is stored without its history, which is the node itself."""

    __slots__ = ("counter", "output_nr", "tensor", "version")

    def __init__(self, tensor: Tensor, output_nr: int | None) -> None:
        self.output_nr = output_nr
        self.counter = None if output_nr is None else shared_counter(tensor)
        self.version = 0 if tensor._counter is None else tensor._counter[0]
        self.tensor: Any = tensor if self.counter is None else detached(tensor, self.counter)
        if modes.FLAGS.hooked and (hooks := modes.STATE.saved_tensor_hooks):
            edge = edge_of(tensor)
            with without_hooks():
                if output_nr is None:
                    self.tensor = pack(tensor, hooks[-1], edge)
                else:
                    self.tensor = pack(shown(tensor, edge), hooks[-1], None)

    def unpack(self) -> Tensor:
        """Return the tensor that was given, through its hook. Only the node can read an output."""
        if self.output_nr is not None:
            raise RuntimeError("The tensor is an output of the node that has saved it: read it from the node.")
        return self.tensor_for(None)

    def tensor_for(self, node: Any) -> Tensor:
        """Return the tensor as the backward of `node` sees it."""
        tensor = self.tensor
        if type(tensor) is Packed:
            tensor = tensor.tensor()
        elif tensor._counter is not None and int(tensor._counter[0]) != int(self.version):
            raise stale_error(node, tensor._array, tensor._counter, self.version, self.output_nr, tensor._edge)
        if self.counter is None:
            if tensor._base is not None:
                history(tensor)  # a view that `forward` has made may have become ambiguous
            return tensor
        result = detached(tensor, self.counter)
        result._edge = (node, self.output_nr)
        if tensor._extra is not None and tensor._extra.tangents is not None:
            result._own_extra().tangents = tensor._extra.tangents
        return result

    def _held(self) -> Any:
        return self.tensor

    stored = _held

    def _pack(self, saved: Any, hooks: Any) -> None:
        edge = None if self.output_nr is not None else edge_of(saved)
        self.tensor = pack(shown(saved, None), hooks, edge)


class SavedNone(SavedTensor):
    """The None given to `save_for_backward`, as `_raw_saved_tensors` returns it."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def _held(self) -> None:
        """Return None."""

    stored = unpack = _held


def check_tuple(name: str, value: Any) -> None:
    """Raise an error unless `value`, an attribute of a `ctx` that `forward` may assign, is a tuple."""
    if not isinstance(value, tuple):
        raise RuntimeError(
            f"autograd internal error: {name} attribute is expected to be a tuple but is {type(value).__name__}"
        )


def check_saved(values: Any) -> None:
    """Raise an error unless `values`, which `save_for_backward` has received, are tensors or None."""
    if values is None:
        return
    check_tuple("to_save", values)
    for position, value in enumerate(values):
        if not isinstance(value, Tensor) and value is not None:
            raise TypeError(
                f"save_for_backward can only save variables, but argument {position} is of type {type(value).__name__}"
            )


def save(node: Any, outputs: list[Any]) -> None:
    """Store in `node` the values given to `save_for_backward`, some of which may be outputs of the custom function."""
    if node.to_save is None:
        return
    check_tuple("to_save", node.to_save)
    # First, because a hook may raise an error, and an output refers to the node:
    values, node.to_save = node.to_save, None
    saved: list[SavedVariable | None] = []
    for tensor in values:
        if not isinstance(tensor, Tensor):
            check_saved(values)  # raises an error, unless the value is None
            saved.append(None)
            continue
        edge = tensor._edge
        number = edge[1] if type(edge) is tuple and edge[0] is node else None
        if number is None and node.marked_dirty:
            # A view that was changed in place leads to the node through its base.
            number = next((number for number in node.marked_dirty if outputs[number] is tensor), None)
        saved.append(SavedVariable(tensor, number))
    node._saved = saved


CLEARED: Any = type("Cleared", (tuple,), {})()
"""A marker for the saved tensors of a node that have been read once and must not be read again."""


def unpacked(node: Any) -> tuple[Any, ...]:
    """Return the tensors that the node of a custom function has saved. Some functions release the tensors on access."""
    if node._saved is None:
        raise released(node)
    if node._saved is CLEARED:
        raise RuntimeError(
            "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. "
            "Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
        )
    found = tuple([None if saved is None else saved.tensor_for(node) for saved in node._saved])
    if node._forward_cls.clear_saved_tensors_on_access:
        node._saved = CLEARED
    return found

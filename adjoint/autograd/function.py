"""`Function`: operations whose derivative the user writes.

The `ctx` that `forward` and `backward` share is the node itself, so whatever is stored on it lives as long as the graph.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy

from ..tape import modes, views
from ..tape.edges import edge_of
from ..tape.levels import innermost
from ..tape.node import Node, start
from ..tape.saved import Packed, bump, detached, pack, released, shared_counter, stale_error
from ..tensor import LEAF, Tensor, as_array, can_require_grad, make_subclass, wrap
from .conform import as_taken
from .hooks import recording_mode


class SavedVariable:
    """One tensor given to `save_for_backward`; an output is kept without its history, which is the node itself."""

    __slots__ = ("counter", "output_nr", "tensor", "version")

    def __init__(self, tensor: Tensor, output_nr: int | None) -> None:
        self.output_nr = output_nr
        self.counter = shared_counter(tensor)
        self.version = self.counter[0]
        self.tensor: Any = tensor if output_nr is None else detached(tensor, self.counter)
        hooks = modes.STATE.saved_tensor_hooks
        if hooks:
            edge = edge_of(tensor)
            shown_edge = LEAF if isinstance(edge, Tensor) else edge
            self.tensor = pack(tensor, hooks[-1], None if output_nr is not None else edge, shown_edge)

    def unpack(self, node: Node) -> Tensor:
        """The tensor as backward sees it."""
        if type(self.tensor) is Packed:
            tensor = self.tensor.tensor()
        elif self.counter[0] != self.version:
            raise stale_error(node, self.tensor._array, self.counter, self.version, self.output_nr, self.tensor._edge)
        else:
            tensor = self.tensor
        if self.output_nr is None:
            return tensor
        result = detached(tensor, self.counter)
        result._edge = (node, self.output_nr)
        return result

    @property
    def data(self) -> Any:
        """The packed object if hooks are registered, else the tensor."""
        return self.tensor.packed if type(self.tensor) is Packed else self.tensor

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Replace the saved tensor by `pack_hook(tensor)`, and read it back through `unpack_hook`."""
        if type(self.tensor) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only "
                "one pair of hooks is allowed at a time."
            )
        edge = None if self.output_nr is not None else edge_of(self.tensor)
        self.tensor = pack(self.tensor, (pack_hook, unpack_hook), edge, None)


class FunctionCtx:
    """What `ctx` offers to `forward`, `setup_context` and `backward`."""

    __slots__ = ("__dict__",)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`, where `ctx.saved_tensors` gives them back."""
        self.to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` has changed in place; they must also be returned."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs that no gradient arrived at."""
        self.materialize_grads = value


class FunctionNode(FunctionCtx, Node):
    """The node of a custom function, and its `ctx`."""

    __slots__ = ()
    runs_undefined = True
    _forward_cls: type[Function]
    to_save: Any = None
    dirty_tensors: Any = ()
    non_differentiable: Any = ()
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()
    _saved: Any = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given, checked for changes since."""
        if self._saved is None:
            raise released(self)
        return tuple(None if saved is None else saved.unpack(self) for saved in self._saved)

    saved_variables = saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise released(self)
        return tuple(self._saved)

    def backward(self, grad: Any, keep: bool) -> tuple[Any, ...]:
        """Call the user's `backward` on tensors, nothing recorded."""
        tensors = [None if item is None else wrap(as_array(item)) for item in grad]
        with recording_mode(False):
            results = self._call(tensors, keep)
        return tuple(None if result is None else result._array for result in results)

    def backward_recorded(self, grad: Any, keep: bool) -> tuple[Any, ...]:
        """Call the user's `backward`, recording what it does."""
        with recording_mode(True):
            return self._call(grad, keep)

    def _call(self, grads: list[Any], keep: bool) -> tuple[Any, ...]:
        if self.materialize_grads:
            described = zip(grads, self.shape, self.dtype, strict=True)
            grads = [
                wrap(numpy.zeros(shape, kind)) if grad is None and shape is not None else grad
                for grad, shape, kind in described
            ]
        results = self._forward_cls.backward(self, *grads)
        if not keep:
            self._saved = None if self._saved else ()
        taken = self._checked(results if isinstance(results, tuple) else (results,))
        return tuple(
            None if result is None or edge is None else as_taken(result, edge, self)
            for result, edge in zip(taken, self.edges, strict=True)
        )

    def _checked(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the tensors among the arguments, one for each edge."""
        name, expected = self.name(), len(self._tensor_inputs)
        if len(results) > expected and all(result is None for result in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
            )
        taken = []
        for index, (result, is_tensor) in enumerate(zip(results, self._tensor_inputs, strict=True)):
            if is_tensor:
                if result is not None and not isinstance(result, Tensor):
                    raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
                taken.append(result)
            elif result is not None:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {index + 1}, but the corresponding "
                    "forward input was not a Variable"
                )
        return tuple(taken)

    _tensor_inputs: tuple[bool, ...] = ()


BackwardCFunction = FunctionNode


class Function:
    """Base class of operations with their own derivative.

    Override `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`, or `forward(*args)`, `setup_context(ctx, inputs,
    output)` and `backward`, all static methods; call the operation with `apply`.

    >>> import adjoint as torch
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    _node_class: type[FunctionNode]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        members = {"__slots__": (), "_forward_cls": cls, "__module__": cls.__module__}
        cls._node_class = type(cls.__name__ + "Backward", (FunctionNode,), members)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Raise: functions are not instantiated and called, but applied by `apply`."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
            "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """Compute the outputs; with `setup_context`, without `ctx` as first argument."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep on `ctx` what `backward` needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs, given those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, given those of the inputs (None for one without)."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run `forward` and record the node."""
        if keywords:
            args = bound(cls, args, keywords)
        if modes.STATE.levels and (level := innermost(args)) is not None:
            return level.apply_function(cls, args)
        return cls.applied(args)[1]

    @classmethod
    def applied(cls, args: tuple[Any, ...], forward: Callable[..., Any] | None = None) -> tuple[Any, Any]:
        """The node (`ctx`), and what `apply` returns; `forward`: what computes the outputs in place of `cls.forward`."""
        node: Any = object.__new__(cls._node_class)
        places = [edge_of(arg) if isinstance(arg, Tensor) else None for arg in args]
        node.needs_input_grad = tuple([edge is not None for edge in places])
        with recording_mode(False):
            if cls.setup_context is Function.setup_context:
                if modes.STATE.transforms:
                    raise _without_setup_context()
                output = cls.forward(node, *args)
            else:
                output = (forward or cls.forward)(*args)
                cls.setup_context(node, args, output)
        recording = any(node.needs_input_grad) and modes.is_grad_enabled()
        node._tensor_inputs = tuple([isinstance(arg, Tensor) for arg in args])
        start(node, tuple([edge for edge, taken in zip(places, node._tensor_inputs, strict=True) if taken]), 1)
        if isinstance(output, list):
            return node, output  # only tuples are taken apart
        several = isinstance(output, tuple)
        outputs = list(output) if several else [output]
        outputs = tie_outputs(cls, node, args, outputs, recording)
        if recording:
            save(node, args, outputs)
        node.to_save = None
        node.dirty_tensors = node.non_differentiable = ()
        return node, tuple(outputs) if several else outputs[0]


def _without_setup_context() -> RuntimeError:
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
        "setup_context staticmethod."
    )


def bound(cls: type[Function], args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of `forward` in order, `ctx` apart."""
    names = list(inspect.signature(cls.forward).parameters.values())
    if cls.setup_context is Function.setup_context:
        names = names[1:]
    values = list(args)
    for position, parameter in enumerate(names[len(args) :], start=len(args)):
        if parameter.name in keywords:
            values.append(keywords.pop(parameter.name))
        elif parameter.default is not parameter.empty:
            values.append(parameter.default)
        else:
            raise TypeError(f"forward() missing required argument: '{parameter.name}' (position {position})")
    if keywords:
        raise TypeError(f"forward() got an unexpected keyword argument '{next(iter(keywords))}'")
    return tuple(values)


def tie_outputs(cls: Any, node: Any, args: tuple[Any, ...], outputs: list[Any], recording: bool) -> list[Any]:
    """Make `node` the history of the outputs; inputs that are returned become views, unless they are marked dirty."""
    dirty = {id(tensor) for tensor in node.dirty_tensors}
    constant = {id(tensor) for tensor in node.non_differentiable}
    inputs = {id(arg): arg for arg in args if isinstance(arg, Tensor)}
    bases = {id(arg if arg._base is None else arg._base) for arg in inputs.values()}
    node.shape, node.dtype = [], []
    for tensor in node.dirty_tensors:
        if id(tensor) not in {id(output) for output in outputs}:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )
    tied = []
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            node.shape.append(None)
            node.dtype.append(None)
            tied.append(output)
            continue
        is_dirty, is_constant = id(output) in dirty, id(output) in constant
        if is_dirty:
            check_dirty(output)
            bump(output, node.name(), 2)
        elif id(output) in inputs:
            output = viewed(output)
        elif recording and output._base is None and type(output._edge) is tuple:
            output = detached(output, shared_counter(output))
        node.shape.append(output._array.shape)
        node.dtype.append(output._array.dtype)
        if recording and not is_constant and can_require_grad(output._array):
            if is_dirty:
                if output._base is not None:
                    views.check_view_creation(output, True)
                views.rebase_history(output, node, 2, number)
            else:
                output._edge = (node, number)
                if output._base is not None:
                    output._view_version = shared_counter(output)[0]
                    if id(output._base) in bases:
                        output._creation = views.CUSTOM
        elif is_constant and not is_dirty:
            output._edge = None
        tied.append(output)
    return tied


def check_dirty(tensor: Tensor) -> None:
    """Raise if autograd does not allow `tensor` to have been changed in place."""
    try:
        views.check_inplace(tensor, "Function")
    except RuntimeError as error:
        raise RuntimeError(str(error).replace("is being used in", "has been used in")) from None


def viewed(tensor: Tensor) -> Tensor:
    """A view of the whole of `tensor`."""
    view = make_subclass(Tensor, tensor._array.view())
    view._base = tensor if tensor._base is None else tensor._base
    view._counter = shared_counter(tensor)
    view._view_version = view._counter[0]
    view._creation = None
    return view


def save(node: Any, args: tuple[Any, ...], outputs: list[Any]) -> None:
    """Store what `save_for_backward` was given."""
    if node.to_save is None:
        return
    numbers = {id(output): number for number, output in enumerate(outputs) if isinstance(output, Tensor)}
    saved: list[SavedVariable | None] = []
    for tensor in node.to_save:
        if tensor is None:
            saved.append(None)
        elif isinstance(tensor, Tensor):
            number = numbers.get(id(tensor))
            output_edge = number is not None and type(tensor._edge) is tuple and tensor._edge[0] is node
            saved.append(SavedVariable(tensor, number if output_edge else None))
        else:
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(saved)} is of type {type(tensor).__name__}"
            )
    node._saved = saved


class _TwiceDifferentiated(Node):
    """The history of the results of a `once_differentiable` backward: differentiating them is an error."""

    __slots__ = ()

    def backward(self, grad: Any, keep: bool) -> tuple[Any, ...]:
        """Refuse."""
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    backward_recorded = backward


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose computation is not itself to be differentiated."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with recording_mode(False):
            results = function(ctx, *grads)
        needs = any(isinstance(grad, Tensor) and grad.requires_grad for grad in grads)
        if not modes.is_grad_enabled() or not needs:
            return results
        edges = tuple(edge_of(grad) if isinstance(grad, Tensor) else None for grad in grads)
        several = isinstance(results, tuple)
        marked = []
        for result in results if several else (results,):
            if isinstance(result, Tensor):
                node = object.__new__(_TwiceDifferentiated)
                start(node, edges, 1)
                result = wrap(result._array)
                node.shape, node.dtype = result._array.shape, result._array.dtype
                result._edge = (node, 0)
            marked.append(result)
        return tuple(marked) if several else marked[0]

    return wrapper


__all__ = ["Function", "FunctionCtx", "once_differentiable"]

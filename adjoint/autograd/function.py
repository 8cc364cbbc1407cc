"""`Function`: operations whose derivative the user writes.

The `ctx` that `forward` and `backward` share is the node itself, so whatever is stored on it lives as long as the graph.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from ..kernels.runtime.lazy_conj import resolved
from ..tape import modes, views
from ..tape.aliases import detached
from ..tape.anomaly import note_end, note_operation, noted_apart
from ..tape.edges import edge_of
from ..tape.interpreters import innermost
from ..tape.node import Node, start
from ..tape.saved import released
from ..tape.torch_function import has_override
from ..tape.versions import bump, mark_inference, shared_counter
from ..tensor import Tensor, can_require_grad, is_recorded, make_subclass, wrap
from .conform import as_taken
from .debug.anomaly_mode import check_nan
from .hook_calls import recording_mode, stop_recording, to_tensor
from .once_differentiable import once_differentiable as once_differentiable
from .saved_variable import SavedNone, SavedVariable


class FunctionCtx:
    """What `ctx` offers to `forward`, `setup_context` and `backward`."""

    __slots__ = ("__dict__",)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`, where `ctx.saved_tensors` gives them back."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `jvp`, where `ctx.saved_for_forward` gives them back."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` has changed in place; they must also be returned."""
        self._check_tensors("mark_dirty can only accept variables, but argument", tensors)
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._check_tensors("mark_non_differentiable only accepts variable arguments, but got", tensors)
        self.non_differentiable = tensors

    @staticmethod
    def _check_tensors(words: str, values: tuple[Any, ...]) -> None:
        wrong = next((value for value in values if not isinstance(value, Tensor)), None)
        if wrong is not None:
            raise RuntimeError(f"{words} {type(wrong).__name__}")

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs that no gradient arrived at."""
        self.materialize_grads = value


class FunctionNode(FunctionCtx, Node):
    """The node of a custom function, and its `ctx`."""

    __slots__ = ()
    runs_undefined = True
    _forward_cls: type[Function]
    to_save: Any = None
    saved_for_forward: Any = None
    in_jvp = False
    dirty_tensors: Any = ()
    non_differentiable: Any = ()
    marked_dirty: tuple[int, ...] = ()
    marked_constant: tuple[int, ...] = ()
    materialize_grads = True
    _materialize_non_diff_grads = True
    needs_input_grad: tuple[bool, ...] = ()
    _saved: Any = ()
    _constant_outputs: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {hex(id(self))}>"

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given, checked for changes since; in `jvp` what `save_for_forward` was."""
        if self.in_jvp:
            kept = self.saved_for_forward if self.saved_for_forward is not None else self.to_save
            if kept is not None:
                return kept
        if self._saved is None:
            raise released(self)
        return tuple([None if saved is None else saved.unpack(self) for saved in self._saved])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise released(self)
        return tuple(SavedNone() if saved is None else saved for saved in self._saved)

    def backward(self, grad: Any, keep: bool, edges: Any) -> tuple[Any, ...]:
        """Call the user's `backward` on tensors, nothing recorded."""
        stop_recording()
        results = self._call([to_tensor(item) for item in grad], keep, edges)
        return tuple([None if result is None else resolved(result._array) for result in results])

    def backward_recorded(self, grad: Any, keep: bool, edges: Any) -> tuple[Any, ...]:
        """Call the user's `backward` as an operation among others, recorded where they are."""
        return self._call(grad, keep, edges)

    def _check_unwanted(self, results: tuple[Any, ...], edges: Any) -> None:
        """Raise, as the engine does for those it takes, if a gradient that nobody needs this time does not fit its input."""
        for result, edge, wanted in zip(results, self.edges, edges, strict=True):
            if result is not None and edge is not None and wanted is None:
                as_taken(result, edge, self)

    def _call(self, grads: list[Any], keep: bool, edges: Any) -> tuple[Any, ...]:
        if self.materialize_grads:
            for number, grad in enumerate(grads):
                if grad is None:
                    grads = self._materialized(grads, number)
                    break
        task = modes.STATE.task
        if task is not None:
            task.node = self
        cls = self._forward_cls
        results = (cls.backward if cls.vjp is Function.vjp else only_vjp(cls))(self, *grads)
        if not keep:
            self._saved = None
        checked = self._checked(results if isinstance(results, tuple) else (results,))
        if modes.ANOMALY.enabled and modes.ANOMALY.check_nan:
            check_nan(self, grads, checked)  # here, because the engine does not see the gradients that nobody needs
            for edge, result in zip(self.edges, checked, strict=True):
                if edge is not None and result is None:
                    note_end(self, edge)
        if edges is not self.edges:
            self._check_unwanted(checked, edges)
        return checked

    def _materialized(self, grads: list[Any], first: int) -> list[Any]:
        """The gradients, zeros in the places of those that are None; none before `first` is."""
        absent = () if self._materialize_non_diff_grads else self._constant_outputs
        grads = list(grads)
        for number in range(first, len(grads)):
            shape = self.shape[number]
            if grads[number] is None and shape is not None and number not in absent:
                grads[number] = wrap(numpy.zeros(shape, self.dtype[number]))
        return grads

    def _checked(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the tensors among the arguments, one for each edge."""
        if len(results) != len(self._tensor_inputs):
            results = self._counted(results)
        checked: list[Tensor | None] = []
        for position, (result, is_tensor) in enumerate(zip(results, self._tensor_inputs), start=1):  # noqa: B905  (of one length)
            if is_tensor:
                if result is not None:
                    if not isinstance(result, Tensor):
                        raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
                    if result._array.dtype.kind == "c":
                        result = taken(result, self.edges[len(checked)], self)
                checked.append(result)
            elif result is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {position}, but the "
                    "corresponding forward input was not a Variable"
                )
        return tuple(checked)

    def _counted(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """As many gradients as there were arguments, if only Nones are too many."""
        expected = len(self._tensor_inputs)
        if len(results) < expected or any(result is not None for result in results[expected:]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
            )
        return results[:expected]

    _tensor_inputs: tuple[bool, ...] = ()


BackwardCFunction = FunctionNode


def _is_setup_context_defined(fn: Callable[..., Any]) -> bool:
    """Whether a class's `setup_context` is its own."""
    return fn is not Function.setup_context


def only_vjp(cls: type[Function]) -> Callable[..., Any]:
    """The `vjp` of a function that has no `backward`, as which it serves."""
    if cls.backward is not Function.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
        )
    return cls.vjp


def taken(grad: Tensor, edge: Any, node: FunctionNode) -> Tensor:
    """A complex gradient as its receiver takes it; for a real input it is an error here, not a matter of course."""
    if edge is None:
        return grad
    result: Tensor = as_taken(grad, edge, node)
    if result._array.dtype.kind != "c":
        raise RuntimeError(
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false."
        )
    return result


class FunctionMeta(type):
    """Gives each custom function the class of its nodes, `<name>Backward`."""

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> None:
        super().__init__(name, bases, members)
        own = {"__slots__": (), "_forward_cls": cls, "__module__": "torch.autograd.function"}
        cls._backward_cls = type(name + "Backward", (FunctionNode,), own)
        cls._argument_count = getattr(getattr(getattr(cls, "forward", None), "__code__", None), "co_argcount", None)


class Function(metaclass=FunctionMeta):
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

    _backward_cls: type[FunctionNode]
    _argument_count: int | None
    generate_vmap_rule = False

    def __init__(self, *args: Any, **keywords: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

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

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """The function of batches: its outputs, and in which of their dimensions the batch lies."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run `forward` and record the node."""
        separate = cls.setup_context is not Function.setup_context
        if keywords or (separate and len(args) != cls._argument_count):
            args = bound(cls, args, keywords, separate)
        if modes.STATE.levels and (level := innermost(args)) is not None:
            return level.apply_function(cls, args)
        if modes.GATE.special and modes.STATE.recorder is not None:
            return modes.STATE.recorder.custom(cls.__name__, cls.applied, args)[1]
        return cls.applied(args)[1]

    @classmethod
    def applied(cls, args: tuple[Any, ...], *computed: Any) -> tuple[Any, Any]:
        """The node (`ctx`), and what `apply` returns; `computed`: the output, where `forward` is not to be called."""
        node: Any = cls._backward_cls()
        edges, needs, tensors = [], [], []
        for arg in args:
            is_tensor = isinstance(arg, Tensor)
            edge = edge_of(arg) if is_tensor else None
            needs.append(edge is not None)
            tensors.append(is_tensor)
            if is_tensor:
                edges.append(edge)
        node.needs_input_grad, node._tensor_inputs = tuple(needs), tuple(tensors)
        was_recording = modes.STATE.grad_enabled
        watched = modes.GATE.special and modes.ANOMALY.enabled
        forward = noted_apart(cls.forward, edges) if watched else cls.forward
        modes.set_grad(False)
        try:
            if cls.setup_context is not Function.setup_context:
                output = computed[0] if computed else forward(*args)
                cls.setup_context(node, args, output)
            else:
                if modes.STATE.transforms:
                    raise without_setup_context()
                output = forward(node, *args)
        finally:
            modes.set_grad(was_recording)
        start(node, tuple(edges), 1)
        if isinstance(output, list):
            return node, output  # only tuples are taken apart
        recording = was_recording and True in needs
        if recording and is_simple(output, node, args):
            node.shape, node.dtype = [output._array.shape], [output._array.dtype]
            output._edge = (node, 0)
            result, outputs = output, [output]
        else:
            several = isinstance(output, tuple)
            outputs = list(output) if several else [output]
            if node.dirty_tensors or node.non_differentiable:
                node.marked_dirty = numbers_of(node.dirty_tensors, outputs)
                node.marked_constant = numbers_of(node.non_differentiable, outputs)
            outputs = tie_outputs(cls, node, args, outputs, recording)
            result = tuple(outputs) if several else outputs[0]
        if recording:
            save(node, outputs)
        if watched:
            made = [each for each in outputs if isinstance(each, Tensor)]
            note_operation(cls.__name__, args, made, any(type(each._edge) is tuple for each in made))
        node.to_save = None
        node.dirty_tensors = node.non_differentiable = ()
        return node, result

    @classmethod
    def applied_with_context(cls, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """A `ctx` for `jvp`, and what `apply` returns."""
        if cls.setup_context is Function.setup_context:
            return cls.applied(args)
        output = cls.apply(*args)
        context: Any = object.__new__(cls._backward_cls)
        context.needs_input_grad = tuple([isinstance(arg, Tensor) and edge_of(arg) is not None for arg in args])
        with recording_mode(False):
            cls.setup_context(context, args, output)
        outputs = output if isinstance(output, tuple) else (output,)
        context.marked_dirty = numbers_of(context.dirty_tensors, outputs)
        context.marked_constant = numbers_of(context.non_differentiable, outputs)
        return context, output


def numbers_of(tensors: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, ...]:
    """Which of `outputs` are among `tensors`."""
    return tuple([number for number, output in enumerate(outputs) if any(output is tensor for tensor in tensors)])


def share_tangents(output: Tensor) -> None:
    """Give what a node has saved of an output the tangents of that output."""
    edge = output._edge
    for saved in edge[0]._saved or () if type(edge) is tuple and isinstance(edge[0], FunctionNode) else ():
        if saved is not None and saved.output_nr == edge[1] and isinstance(saved.tensor, Tensor):
            saved.tensor._own_extra().tangents = output._own_extra().tangents


def without_setup_context() -> RuntimeError:
    """The error for applying a function of the older form within the transforms of functions."""
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
        "setup_context staticmethod."
    )


def bound(cls: type[Function], args: tuple[Any, ...], keywords: dict[str, Any], separate: bool) -> tuple[Any, ...]:
    """The arguments of `forward` in order, `ctx` apart, with defaults filled in; `separate`: it takes no `ctx`."""
    signature = inspect.signature(cls.forward)
    if separate:
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


def is_simple(output: Any, node: Any, args: tuple[Any, ...]) -> bool:
    """Whether the output is one new tensor, of which there is nothing to be seen to but that `node` becomes its history."""
    if type(output) is not Tensor or output._edge is not None or output._base is not None:
        return False
    if node.dirty_tensors or node.non_differentiable or output._array.dtype.kind not in "fc":
        return False
    return id(output) not in map(id, args)


def tie_outputs(cls: Any, node: Any, args: tuple[Any, ...], outputs: list[Any], recording: bool) -> list[Any]:
    """Make `node` the history of the outputs; inputs that are returned become views, unless they are marked dirty.

    Where nothing is recorded of one that requires grad, or it is marked as not differentiable, it is detached.
    """
    dirty = {id(tensor) for tensor in node.dirty_tensors}
    constant = {id(tensor) for tensor in node.non_differentiable}
    inputs = {id(arg): arg for arg in args if isinstance(arg, Tensor)}
    bases = {id(arg if arg._base is None else arg._base) for arg in inputs.values()}
    node.shape, node.dtype = [], []
    returned = {id(output) for output in outputs}
    creation = views.MULTI_OUTPUT if sum(isinstance(output, Tensor) for output in outputs) > 1 else views.CUSTOM
    for tensor in node.dirty_tensors:
        if id(tensor) not in returned:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )
    if not node._materialize_non_diff_grads:
        node._constant_outputs = tuple([number for number, output in enumerate(outputs) if id(output) in constant])
    same: dict[int, Tensor] = {}
    tied = []
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            node.shape.append(None)
            node.dtype.append(None)
            tied.append(output)
            continue
        earlier = same.get(id(output))
        if earlier is not None:  # one tensor returned twice stays one, with the place in the graph of the last
            node.shape.append(earlier._array.shape)
            node.dtype.append(earlier._array.dtype)
            if type(earlier._edge) is tuple and earlier._edge[0] is node:
                earlier._edge = (node, number)
            tied.append(earlier)
            continue
        returned_as, is_dirty, is_constant = id(output), id(output) in dirty, id(output) in constant
        if is_dirty:
            bump(output, node.name(), 2)
            if recording:
                check_dirty(output)
        given = id(output) in inputs
        if (recording and given and is_constant and not is_dirty) or (
            not recording and (given or is_dirty) and output.requires_grad
        ):
            output = detached(output, shared_counter(output))
        elif given and not is_dirty:
            output = viewed(output)
        elif recording and not is_dirty and output._base is None and type(output._edge) is tuple:
            output = detached(output, shared_counter(output))
        node.shape.append(output._array.shape)
        node.dtype.append(output._array.dtype)
        if recording and not is_constant and can_require_grad(output._array):
            if is_dirty:
                if output._base is not None:
                    if creation == views.MULTI_OUTPUT:
                        raise RuntimeError(DIRTY_VIEW)
                    views.check_view_creation(output, True)
                else:
                    output._grad = None  # as PyTorch has it here, but not in other changes
                views.rebase_history(output, node, 2, number)
            else:
                output._edge = (node, number)
                if output._base is not None:
                    output._view_version = shared_counter(output)[0]
                    if id(output._base) in bases:
                        output._creation = creation
        elif is_constant and not is_dirty:
            output._edge = None
        if output._base is not None and not is_dirty and not is_recorded(output._edge) and id(output._base) in bases:
            output._creation = views.CUSTOM
        same[returned_as] = output
        tied.append(output)
    return tied


DIRTY_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one "
    "Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using "
    ".clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one "
    "doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the "
    "forum https://discuss.pytorch.org/ if you need help to do this change."
)


def check_dirty(tensor: Tensor) -> None:
    """Raise if autograd does not allow `tensor` to have been changed in place."""
    if tensor.requires_grad and not is_recorded(tensor._edge):
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    views.check_history(tensor)


def viewed(tensor: Tensor) -> Tensor:
    """A view of the whole of `tensor`."""
    if hasattr(tensor, "without_history"):  # an example of a batch
        view = tensor.without_history()
    else:
        view = make_subclass(type(tensor) if has_override(tensor) else Tensor, tensor._array.view())
    if tensor.is_inference():
        mark_inference(view)
        return view
    view._base = tensor if tensor._base is None else tensor._base
    view._counter = shared_counter(tensor)
    view._view_version = view._counter[0]
    view._creation = None
    return view


def save(node: Any, outputs: list[Any]) -> None:
    """Store what `save_for_backward` was given."""
    if node.to_save is None:
        return
    saved: list[SavedVariable | None] = []
    for tensor in node.to_save:
        if tensor is None:
            saved.append(None)
        elif isinstance(tensor, Tensor):
            edge = tensor._edge
            number = edge[1] if type(edge) is tuple and edge[0] is node else None
            if (
                number is None and node.marked_dirty
            ):  # a view that was changed in place leads to the node through its base
                number = next((number for number in node.marked_dirty if outputs[number] is tensor), None)
            saved.append(SavedVariable(tensor, number))
        else:
            raise TypeError(
                f"save_for_backward can only save variables, but argument {len(saved)} is of type {type(tensor).__name__}"
            )
    node._saved = saved


class InplaceFunction(Function):
    """A function that may change its input in place; it only keeps whether it does. Kept for older code."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """A function of nested tuples, lists and dicts of tensors, which may also return such.

    Override `forward_extended(ctx, *args)` and `backward_extended(ctx, *grad_outputs)`; the gradients that the latter is
    given have the structure of the outputs, those that it returns that of the arguments.

    >>> import adjoint as torch
    >>> class Swap(torch.autograd.function.NestedIOFunction):
    ...     @staticmethod
    ...     def forward_extended(ctx, pair):
    ...         return {"first": pair[1] * 2, "second": pair[0] * 3}
    ...     @staticmethod
    ...     def backward_extended(ctx, grads):
    ...         return (grads["second"] * 3, grads["first"] * 2)
    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> Swap.apply((x, y))["first"].sum().backward()
    >>> y.grad
    tensor([2., 2.])
    """

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run `forward_extended` and record the node."""
        tensors: list[Any] = []
        outputs: list[Any] = []
        flat = super().apply(taken_apart(args, tensors), outputs, *tensors, **keywords)
        return put_together(outputs[0], iter(flat))

    @staticmethod
    def forward(ctx: Any, structure: Any, outputs: list[Any], *tensors: Any) -> Any:
        """Call `forward_extended` with the arguments put together, and take apart what it returns."""
        flat: list[Any] = []
        result = ctx._forward_cls.forward_extended(ctx, *put_together(structure, iter(tensors)))
        outputs.append(taken_apart(result, flat))
        ctx._nested_output = outputs[0]
        return tuple(flat)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call `backward_extended` with the gradients put together, and take apart what it returns."""
        flat: list[Any] = []
        taken_apart(ctx._forward_cls.backward_extended(ctx, put_together(ctx._nested_output, iter(grads))), flat)
        return (None, None, *flat)

    @staticmethod
    def forward_extended(ctx: Any, *args: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError

    @staticmethod
    def backward_extended(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments, given those of the outputs."""
        raise NotImplementedError


class _Place:
    """Stands for a tensor in a structure that it was taken out of."""


_PLACE = _Place()


def taken_apart(value: Any, tensors: list[Any]) -> Any:
    """`value` with places for its tensors (and Nones), which are added to `tensors`."""
    if value is None or isinstance(value, Tensor):
        tensors.append(value)
        return _PLACE
    if isinstance(value, (list, tuple)):
        return type(value)(taken_apart(item, tensors) for item in value)
    if isinstance(value, dict):
        return type(value)((key, taken_apart(item, tensors)) for key, item in value.items())
    return value


def put_together(structure: Any, tensors: Iterator[Any]) -> Any:
    """`structure` with its places filled by the next of `tensors`."""
    if structure is _PLACE:
        return next(tensors)
    if isinstance(structure, (list, tuple)):
        return type(structure)(put_together(item, tensors) for item in structure)
    if isinstance(structure, dict):
        return type(structure)((key, put_together(item, tensors)) for key, item in structure.items())
    return structure


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

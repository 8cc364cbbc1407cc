"""`Function`: operations with a derivative that the user writes. Their `ctx` is the node itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._runtime.tracebacks import ending_at_caller, shorten, warn
from ..kernels.runtime.lazy_conj import materialize
from ..tape import modes
from ..tape.anomaly import note_end, note_operation, without_cuts
from ..tape.edges import edge_of
from ..tape.interpreters import innermost
from ..tape.node import NOWHERE, Node, start
from ..tape.saved import released
from ..tensor import Tensor
from .anomaly_mode import check_nan
from .function_context import CLEARED, FunctionCtx, SavedNone, bound, save, unpacked
from .function_context import once_differentiable as once_differentiable
from .function_outputs import check_unwanted, checked_grads, is_simple, materialized, numbers_of, tie_outputs
from .hook_calls import stop_recording, to_tensor

if TYPE_CHECKING:
    from ..torch_names.nested_function import InplaceFunction, NestedIOFunction


class FunctionNode(FunctionCtx, Node):
    """The node of a custom function, which is also the function's `ctx`."""

    __slots__ = ()
    runs_undefined = takes_stand_ins = True
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
    _is_pure_view = False
    needs_input_grad: tuple[bool, ...] = ()
    _saved: Any = ()
    _constant_outputs: tuple[int, ...] = ()
    _tensor_inputs: tuple[bool, ...] = ()

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {hex(id(self))}>"

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`, or to `save_for_forward` in `jvp`, checked for later changes."""
        return (self.saved_for_forward or ()) if self.in_jvp else unpacked(self)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._saved is None:
            raise released(self)
        return tuple(SavedNone() if saved is None else saved for saved in self._saved)

    def has_own_context(self) -> bool:
        """Whether the function has a `setup_context`."""
        return self._forward_cls.setup_context is not Function.setup_context

    def backward(self, grad: Any, retain_graph: bool, edges: Any) -> tuple[Any, ...]:
        """Call the user's `backward` on tensors, without recording."""
        stop_recording()
        grads = [to_tensor(item) for item in grad] if type(grad) is list else [to_tensor(grad)]
        results = self._call(grads, retain_graph, edges)
        return tuple([None if result is None else materialize(result._array) for result in results])

    def backward_recorded(self, grad: Any, retain_graph: bool, edges: Any) -> tuple[Any, ...]:
        """Call the user's `backward` like any other operation, which is recorded if recording is on."""
        return self._call(grad if type(grad) is list else [grad], retain_graph, edges)

    def _call(self, grads: list[Any], retain_graph: bool, edges: Any) -> tuple[Any, ...]:
        if self.materialize_grads:
            for grad in grads:
                if grad is None:
                    grads = materialized(self, grads)
                    break
        cls = self._forward_cls
        function = cls.backward if cls.vjp is Function.vjp else only_vjp(cls)
        results = function(self, list(grads)) if cls.boxed_grads_call else function(self, *grads)
        if not retain_graph and self._saved is not CLEARED:
            self._saved = None
        checked = checked_grads(self, results if isinstance(results, tuple) else (results,))
        if modes.ANOMALY.enabled and modes.ANOMALY.check_nan:
            check_nan(self, grads, checked)  # here, because the engine does not see gradients that are not needed
            for edge, result in zip(self._edges, checked, strict=True):
                if edge is not None and result is None:
                    note_end(self, edge)
        if edges is not self._edges:
            check_unwanted(self, checked, edges)
        return checked


BackwardCFunction = FunctionNode


def _is_setup_context_defined(fn: Callable[..., Any]) -> bool:
    """Return whether a class defines its own `setup_context`."""
    return fn is not Function.setup_context


def only_vjp(cls: type[Function]) -> Callable[..., Any]:
    """Return the `vjp` of a function without `backward`, to use in place of `backward`."""
    if cls.backward is not Function.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
        )
    return cls.vjp


class FunctionMeta(type):
    """The metaclass of custom functions. It creates the class of their nodes, `<name>Backward`."""

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> None:
        super().__init__(name, bases, members)
        own = {"__slots__": (), "_forward_cls": cls, "__module__": "torch.autograd.function"}
        cls._backward_cls = type(name + "Backward", (FunctionNode,), own)
        cls._generated_cls: type[FunctionNode] | None = None
        cls._argument_count = getattr(getattr(getattr(cls, "forward", None), "__code__", None), "co_argcount", None)


class Function(metaclass=FunctionMeta):
    """The base class of operations with their own derivative.

    Override `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`, or `forward(*args)`, `setup_context(ctx, inputs,
    output)` and `backward`. All are static methods. Call the operation with `apply`. With `boxed_grads_call = True`,
    `backward` receives one list of gradients, which it may empty. With `clear_saved_tensors_on_access = True`,
    `backward` may read `ctx.saved_tensors` only once.

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
    is_of_one_level = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    def __init__(self, *args: Any, **keywords: Any) -> None:
        warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    @ending_at_caller
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Raise an error, because the operation is called with `apply`, and a `Function` is never instantiated."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
            "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """Compute the outputs. With `setup_context`, the first argument is not `ctx`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Store on `ctx` the values that `backward` needs."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **keywords: Any) -> Any:
        """Map `ctx` and the gradients of the outputs to the gradients of the inputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(*args: Any, **keywords: Any) -> Any:
        """Map `ctx` and the tangents of the inputs (None for an input without a tangent) to the tangents of the outputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(*args: Any, **keywords: Any) -> Any:
        """Compute the function for `info`, `in_dims` and batched inputs.

        Return its outputs and the batch dimension of each output.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Run `forward` and record the node."""
        try:
            separate = cls.setup_context is not Function.setup_context
            if keywords or (separate and len(args) != cls._argument_count):
                args = bound(cls.forward, args, keywords, separate)
            if modes.FLAGS.special:
                if modes.STATE.interpreters and (interpreter := innermost(args)) is not None:
                    return interpreter.apply_function(cls, args)
                if modes.STATE.recorder is not None:
                    return modes.STATE.recorder.custom(cls.__name__, cls.applied, args)[1]
            return cls.applied(args)[1]
        except Exception as error:
            shorten(error)
            raise

    @classmethod
    def applied(cls, args: tuple[Any, ...], *computed: Any) -> tuple[Any, Any]:
        """Return the node (`ctx`) and the result of `apply`. `computed` is the output if `forward` must not be called."""
        here = modes.STATE.__dict__
        node: Any = (
            cls._class_in_transform() if here["transforms"] and here["transforms"][-1].records else cls._backward_cls
        )()
        edges, needs, tensors = [], [], []
        for arg in args:
            is_tensor = isinstance(arg, Tensor)
            edge = edge_of(arg) if is_tensor else None
            needs.append(edge is not None)
            tensors.append(is_tensor)
            if is_tensor:
                edges.append(None if edge is NOWHERE else edge)
        node.needs_input_grad, node._tensor_inputs = tuple(needs), tuple(tensors)
        was_recording, was_forward = here["grad_enabled"], here["forward_enabled"]
        watched = modes.FLAGS.special and modes.ANOMALY.enabled
        forward = without_cuts(cls.forward, edges) if watched else cls.forward
        here["forward_enabled"] = False
        modes.set_grad(False)
        try:
            if cls.setup_context is not Function.setup_context:
                output = computed[0] if computed else forward(*args)
                cls.setup_context(node, args, output)
            else:
                if modes.STATE.transforms and not cls.is_of_one_level:
                    raise without_setup_context()
                output = forward(node, *args)
        finally:
            here["forward_enabled"] = was_forward
            modes.set_grad(was_recording)
        start(node, tuple(edges), 1)
        recording = was_recording and True in needs
        if recording and is_simple(output, node, args):
            node._grad_shape, node._grad_dtype = output._array.shape, output._array.dtype
            output._edge = (node, 0)
            result, outputs = output, [output]
        else:
            several = isinstance(output, tuple)  # a list is one output, and no tensor
            outputs = tie_outputs(node, args, list(output) if several else [output], recording)
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
    def _class_in_transform(cls) -> type[FunctionNode]:
        """Return the class of nodes that a transform in reverse mode records, with PyTorch's name for it."""
        if cls._generated_cls is None:
            own = {"__slots__": (), "__module__": "torch.autograd.function"}
            name = cls._backward_cls.__name__.removesuffix("Backward") + "GeneratedBackward"
            cls._generated_cls = type(name, (cls._backward_cls,), own)
        return cls._generated_cls

    @classmethod
    def applied_with_context(cls, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return a `ctx` for `jvp`, and the result of `apply`."""
        if cls.setup_context is Function.setup_context:
            return cls.applied(args)
        output = cls.apply(*args)
        context: Any = object.__new__(cls._backward_cls)
        context.needs_input_grad = tuple([isinstance(arg, Tensor) and edge_of(arg) is not None for arg in args])
        with modes.switched(grad_enabled=False, forward_enabled=False):
            cls.setup_context(context, args, output)
        outputs = output if isinstance(output, tuple) else (output,)
        context.marked_dirty = numbers_of(context.dirty_tensors, outputs)
        context.marked_constant = numbers_of(context.non_differentiable, outputs)
        return context, output


class _SingleLevelFunction(Function):
    """A function that rules of higher-order operators apply at the level of the innermost transform. It may use `ctx`."""

    is_of_one_level = True

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Apply the function, without the rules of transforms for custom functions."""
        return cls.applied(args)[1]


def without_setup_context() -> RuntimeError:
    """Return the error for calling a function without `setup_context` inside a function transform."""
    return RuntimeError(
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
        "setup_context staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
    )


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

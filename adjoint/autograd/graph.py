"""`adjoint.autograd.graph`: inspection of the graph, and hooks that pack and unpack saved tensors."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from .._runtime.tracebacks import duplicate
from .._runtime.uninterrupted import uninterrupted
from ..aten.calls import call_of_operator
from ..aten.overloads import OpOverload
from ..tape import mode_switches, modes, node
from ..tape.hook_handles import RemovableHandle as RemovableHandle
from ..tape.interpreters import Handler, tensors_in
from ..tape.versions import bump
from ..tensor import Tensor
from .grad_mode import Decorating
from .gradient_edge import GradientEdge, get_gradient_edge
from .graph_task import current_node, current_task_id
from .multi_grad import register_multi_grad_hook
from .mutation import allow_mutation_on_saved_tensors

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "current_node",
    "current_task_id",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


def _abstract(name: str) -> Any:
    """Return a method or property of nodes as an abstract method of their public base class."""
    defined = vars(node.Node).get(name) or vars(node.NodeInterface)[name]
    if isinstance(defined, property):
        return property(abc.abstractmethod(duplicate(defined.fget)))  # type: ignore[arg-type]
    return abc.abstractmethod(duplicate(defined))


if TYPE_CHECKING:
    from ..tape.node import Node
else:
    _interface = (
        "_input_metadata _register_hook_dict _sequence_nr metadata name next_functions register_hook register_prehook"
    )
    Node = abc.ABCMeta("Node", (), {"__module__": __name__, **{name: _abstract(name) for name in _interface.split()}})
    Node.__doc__ = """The abstract base class of all nodes. `isinstance(tensor.grad_fn, Node)` is true. It cannot be instantiated.

    >>> import adjoint as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> y = x * 3
    >>> y.grad_fn.name()
    'MulBackward0'
    >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0] * 10, None))
    >>> y.backward()
    >>> x.grad
    tensor(30.)
    """
    Node.register(node.Node)


class saved_tensors_hooks:
    """A context manager that passes saved tensors through `pack_hook`, and back through `unpack_hook`.

    `pack_hook(tensor)` may return any object. `unpack_hook(packed)` must return a tensor with the same value. The
    innermost pair applies. The hooks can save tensors to disk, compress them, or count the memory of a graph.

    Raises:
        RuntimeError: if a pack hook changes its tensor in place.
        TypeError: if an unpack hook does not return a tensor.

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
        if not all(map(callable, (self.pack_hook, self.unpack_hook))):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types are "
                "supported:\n    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\n"
                f"Invoked with: {self.pack_hook!r}, {self.unpack_hook!r}"
            )
        mode_switches.push_saved_tensor_hooks((self.pack_hook, self.unpack_hook))

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        mode_switches.pop_saved_tensor_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A context manager that moves saved tensors to CPU memory, and moves them back when they are needed.

    All tensors are in CPU memory already. The saved tensors are therefore aliases on the same memory, or copies with
    `pin_memory`.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            return tensor.device, tensor.detach().clone() if pin_memory else tensor.cpu()

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks(Decorating):
    """A context manager and decorator in which using saved-tensor hooks raises RuntimeError with `error_message`."""

    _given = ("error_message",)

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        if modes.STATE.saved_tensor_hooks:
            raise RuntimeError(self.error_message)
        self.previous = modes.STATE.hooks_disabled
        modes.STATE.hooks_disabled = self.error_message

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes.STATE.hooks_disabled = self.previous


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a change of the memory of `tensor` (or of each of several tensors) that autograd has not detected.

    Backward then refuses to use values that were saved before the change.

    >>> import adjoint as torch
    >>> x = torch.ones(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    if isinstance(tensor, Tensor):
        tensor = (tensor,)
    elif not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for item in tensor:
        if not isinstance(item, Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        bump(item, "increment_version")


def region_activation_memory_budget(budget: float) -> AbstractContextManager[None]:
    """Raise RuntimeError, because no region of code is being compiled here."""
    raise RuntimeError(
        "torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile region; it has no "
        "effect in eager mode."
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted for compatibility with PyTorch, because a CPU has no streams."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted for compatibility with PyTorch, because a CPU has no streams."""


def surroundings() -> mode_switches.Surroundings:
    """Return the conditions under which this code runs, so that a recomputation can run under the same conditions."""
    return mode_switches.Surroundings(without=mode_switches.OF_OBSERVERS)


class ResultCache(Protocol):
    """The interface of a cache for `caching_results`, from which operators request their results, below recording."""

    def result(self, op: OpOverload, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Return the result of `op` on `args`: call `compute()`, or return a stored result."""

    def made(self, outputs: Sequence[Tensor]) -> None:
        """Receive the tensors that were created from the latest result."""


class caching_results(Handler):
    """A context manager that sets the cache between the operators of this thread and their kernels."""

    def __init__(self, result_cache: ResultCache) -> None:
        self.result_cache = result_cache

    def __enter__(self) -> caching_results:
        self.outer = modes.STATE.result_cache
        modes.put({"result_cache": self})
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes.put({"result_cache": self.outer})

    def handle(self, call: Any, proceed: Callable[[], Any]) -> Any:
        """Let the computing step use this cache, and pass the created tensors to the cache. Views and changes do not use it."""
        if call.op.view or call.in_place:
            return proceed()
        call.cache, call.stepwise = self, True
        result = proceed()
        self.made(call.outputs)
        return result

    def compute(self, op: Any, args: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Compute through this cache. Operators inside the computation use the enclosing cache."""

        def further() -> Any:
            return compute() if self.outer is None else self.outer.compute(op, args, compute)

        overload, given, _ = call_of_operator(op, args)
        return self.result_cache.result(overload, given, further)

    def call(self, overload: OpOverload, kernel: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Return the result of an operator that a program has defined. The operators inside use no cache."""

        def compute() -> Any:
            modes.put({"result_cache": self.outer})
            try:
                if self.outer is not None:
                    return self.outer.call(overload, kernel, args, keywords)
                return kernel(*args, **keywords)
            finally:
                modes.put({"result_cache": self})

        result = self.result_cache.result(overload, args, compute)
        several = isinstance(result, (list, tuple))
        results = result if several else (result,)
        self.result_cache.made(tensors_in(results))
        aliases = [each.detach() if isinstance(each, Tensor) else each for each in results]
        return type(result)(aliases) if several else aliases[0]

    def made(self, outputs: list[Tensor]) -> None:
        """Pass the new tensors to all caches."""
        self.result_cache.made(outputs)
        if self.outer is not None:
            self.outer.made(outputs)

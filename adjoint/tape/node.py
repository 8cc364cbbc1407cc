"""The nodes of the graph and the edges between them.

An edge says where the gradient of an input goes: `None` (nowhere), `(node, output_nr)` for the output of
another operation, or the leaf tensor itself. A leaf stands for its `AccumulateGrad` node, which is made
only when somebody looks (`next_functions`, `get_gradient_edge`), so recording and backward never pay for it.
"""

from __future__ import annotations

import re
import threading
import weakref
from itertools import count
from types import CodeType
from typing import Any, ClassVar, NamedTuple

import numpy

from ..device import device as device_class
from ..dtypes import dtype, from_numpy
from ..late_bound import LATE
from ..tensor import Tensor, as_array, wrap
from . import origin
from .hook_handles import NodeHooks, RemovableHandle
from .modes import ANOMALY, FLAGS, is_grad_enabled

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)

next_sequence = count().__next__


class InputMetadata(NamedTuple):
    """What a gradient arriving at a node looks like."""

    shape: list[int]
    dtype: dtype
    device: device_class = device_class("cpu")
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False

    def __repr__(self) -> str:
        return f"<torch._C._autograd._InputMetadata object at {hex(id(self))}>"


class Node:
    """One recorded operation: what its derivative needs, and where the gradients of its inputs go.

    `edges` has one edge for each input that may need a gradient; `shape` and `dtype` describe the output
    (lists of them, for nodes of several outputs); `code` and `lasti` are the instruction of the user's code
    that made the node.
    """

    __slots__ = (
        "__weakref__",
        "_ends",
        "_metadata",
        "code",
        "dtype",
        "edges",
        "hooks",
        "lasti",
        "sequence",
        "shape",
    )

    edges: tuple[Any, ...]
    sequence: int
    shape: Any
    dtype: Any
    hooks: NodeHooks | None
    code: CodeType
    lasti: int
    operator: ClassVar[Any]  # of the nodes of operators
    grad_count: ClassVar[int | None] = None
    """How many gradients there are: one for each output, but for last ones that have none; None for as many as outputs."""
    renumbered: ClassVar[bool] = False
    """Whether any node has been given another sequence number than that of its making."""
    runs_undefined: ClassVar[bool] = False
    is_nowhere: ClassVar[bool] = False
    saved_names: ClassVar[tuple[str, ...]] = ()
    saved_tensor_names: ClassVar[tuple[str, ...]] = ()
    saved_list_names: ClassVar[tuple[str, ...]] = ()
    input_slots: ClassVar[tuple[str, ...]] = ()
    result_slots: ClassVar[tuple[tuple[str, int, bool], ...]] = ()
    saved_display: ClassVar[dict[str, Any]] = {}

    def name(self) -> str:
        """The node's name, as printed in `grad_fn=<...>`."""
        return type(self).__name__

    def operation(self) -> str:
        """The operation in error messages: the node's name without `Backward0`."""
        return re.sub(r"Backward0?$", "", re.sub(r"Backward(?=[1-9]\d*$)", "", self.name()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One `(node, output_nr)` for each input; `(None, 0)` for an input that needs no gradient."""
        functions = tuple([function_of(edge) for edge in self.edges])
        # Somebody may put a hook on an `AccumulateGrad` and forget it: it lives for as long as what leads to it.
        self._ends: Any = [function for function, _ in functions if isinstance(function, AccumulateGrad)]
        return functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's own notes on this node."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[Any, Any] = {}
            return self._metadata

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """Shape and dtype of the gradients this node takes, one entry for each output of the operation."""
        shapes = self.shape[: self.grad_count] if type(self.shape) is list else [self.shape]
        dtypes = self.dtype if type(self.dtype) is list else [self.dtype]
        return tuple(
            InputMetadata(list(shape or ()), from_numpy(kind or numpy.dtype("f4")))
            for shape, kind in zip(shapes, dtypes, strict=False)
        )

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, number: int) -> None:
        """Set the number by which backward chooses among the nodes whose gradients are complete: the highest runs first."""
        if not isinstance(number, int):
            raise TypeError("an integer is required")
        if number < 0:
            raise OverflowError("can't convert negative int to unsigned")
        if number >> 64:
            raise OverflowError("int too big to convert")
        self.sequence = number
        Node.renumbered = True

    @property
    def requires_grad(self) -> bool:
        """True: what a node made required grad."""
        return True

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def _register_hook_dict(self, hooks: dict[int, Any]) -> None:
        own_hooks(self).add_dict(hooks)

    def register_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node has run; a returned tuple replaces `grad_inputs`."""
        return own_hooks(self).register("post", hook)

    def register_prehook(self, hook: Any) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs; a returned tuple replaces them."""
        return own_hooks(self).register("pre", hook)

    def backward(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Map the gradient of the output (a list, for several outputs) to one gradient for each edge.

        Arrays in, arrays out. Unless `keep`, what was saved is let go. `edges` are the node's, with None in the place of
        those whose gradient nobody needs this time.
        """
        raise NotImplementedError

    def backward_recorded(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same on tensors: the computation is itself recorded (`create_graph=True`)."""
        raise NotImplementedError

    def __call__(self, *grads: Any, **names: Any) -> Any:
        """Run this node alone on tensors, as calling `tensor.grad_fn(grad)` does."""
        self._check_call(grads, names)
        if not self.runs_undefined and all(grad is None for grad in grads):
            return None if len(self.edges) == 1 else (None,) * len(self.edges)
        if is_grad_enabled():
            grad = list(grads) if type(self.shape) is list else grads[0]
            results = self.backward_recorded(grad, True, self.edges)
        else:
            arrays = [None if grad is None else grad._array for grad in grads]
            raw = self.backward(arrays if type(self.shape) is list else arrays[0], True, self.edges)
            results = tuple(None if array is None else wrap(as_array(array)) for array in raw)
        return results[0] if len(results) == 1 else results

    def _check_call(self, grads: tuple[Any, ...], names: dict[str, Any]) -> None:
        """Raise unless there is one gradient for each output."""
        if names:
            raise TypeError("keyword arguments are not supported")
        expected = len(self.shape) if type(self.shape) is list else 1
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
        for position, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"argument {position} is not a Variable")

    def describe_origin(self) -> str:
        """The user's line that made this node."""
        try:
            return origin.describe(self.code, self.lasti)
        except AttributeError:
            return "an unknown line"


class Nowhere(Node):
    """Where the gradients of a view go that was made, of a tensor that requires grad, while nothing was recorded: nowhere.

    The view requires grad as its base does, and so does what is computed from it, but it has neither history nor `.grad`.
    One node serves all such views: no gradient has its shape, and the engine drops those that come.
    """

    __slots__ = ()
    is_nowhere = True

    def __init__(self) -> None:
        self.edges = ()
        self.hooks = None
        self.sequence = next_sequence()
        self.shape = self.dtype = None


NOWHERE = (Nowhere(), 0)
"""The edge of a view made while nothing was recorded."""


class AccumulateGrad(Node):
    """The end of the graph: adds the arriving gradient to the `.grad` of the leaf `variable`."""

    __slots__ = ("variable",)
    __module__ = "builtins"  # as PyTorch shows its node classes

    def name(self) -> str:
        """PyTorch's full name."""
        return "torch::autograd::AccumulateGrad"

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self.edges = ()
        self.hooks = None
        self.sequence = (1 << 64) - 1
        self.shape = variable._array.shape
        self.dtype = variable._array.dtype

    def __call__(self, *grads: Any, **names: Any) -> Any:
        """Accumulate a gradient."""
        return LATE.run_accumulate_grad(self, *grads, **names)


def own_hooks(node: Node) -> NodeHooks:
    """The hooks of `node`, made on first use."""
    if node.is_nowhere:
        return NodeHooks()  # which nobody will run
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


_accumulator_lock = threading.Lock()


def accumulator_of(leaf: Tensor) -> AccumulateGrad:
    """The `AccumulateGrad` of `leaf`: one object for as long as somebody holds it.

    The leaf refers to it weakly and it to the leaf strongly, so the pair is no cycle.
    """
    with _accumulator_lock:
        extra = leaf._own_extra()
        node = extra.accumulator() if extra.accumulator is not None else None
        if node is None:
            node = AccumulateGrad(leaf)
            extra.accumulator = weakref.ref(node)
        return node


def live_accumulator(leaf: Tensor) -> AccumulateGrad | None:
    """The `AccumulateGrad` of `leaf` if somebody holds it."""
    extra = leaf._extra
    return extra.accumulator() if extra is not None and extra.accumulator is not None else None


def function_of(edge: Any) -> tuple[Node | None, int]:
    """An edge as `next_functions` shows it."""
    if edge is None or (type(edge) is tuple and edge[0].is_nowhere):
        return (None, 0)
    return edge if type(edge) is tuple else (accumulator_of(edge), 0)


def start(node: Node, edges: tuple[Any, ...], depth: int) -> None:
    """Fill in what every node has; `depth` counts the frames between the caller and the user's call."""
    node.edges = tuple([None if edge is NOWHERE else edge for edge in edges])
    node.hooks = None
    node.sequence = next_sequence()
    frame = origin.getframe(depth + 1)
    if frame.f_globals is not FLAGS.user:
        frame = origin.nearest_user_frame(frame)
    node.code = frame.f_code
    node.lasti = frame.f_lasti
    if ANOMALY.enabled:
        LATE.note_node(node)
        for end, _ in node.next_functions:
            if isinstance(end, AccumulateGrad) and "traceback_" not in end.metadata:
                end.metadata["traceback_"] = node.metadata["traceback_"]


def explain(error: Exception, node: Node) -> None:
    """Note on `error` which operation's backward failed, and the user's line that recorded it."""
    note = f"in the backward of {node.name()}, recorded at {node.describe_origin()}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)

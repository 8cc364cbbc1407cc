"""The nodes of the graph and the edges between them.

An edge is the destination of the gradient of an input: `None` (nowhere), `(node, output_nr)` for the output of another
operation, or the leaf tensor itself. A leaf represents its `AccumulateGrad` node. That node is created only on request
(`next_functions`, `get_gradient_edge`), so recording and backward do not pay for it.
"""

from __future__ import annotations

import re
import weakref
from types import CodeType
from typing import Any, ClassVar

from .._runtime.forks import lock_across_forks
from .._runtime.late_bound import LATE
from .._runtime.sequence import sequence_numbers
from ..tensor import Tensor
from . import origin
from .hook_handles import NodeHooks, RemovableHandle
from .modes import ANOMALY, FLAGS, STATE
from .node_interface import NodeInterface

FREED_MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class Node(NodeInterface):
    """One recorded operation: the saved values that its derivative needs, and the edges of its inputs.

    `_edges` contains one edge for each input that may need a gradient. `_grad_shape` and `_grad_dtype` describe the output
    (as lists if there are several). `_code` and `_lasti` identify the instruction of user code that created the node.
    """

    __slots__ = tuple("__weakref__ _code _edges _ends _grad_dtype _grad_shape _hooks _lasti".split())

    _hooks: NodeHooks | None
    _code: CodeType
    _lasti: int
    operator: ClassVar[Any]  # only of nodes of operators
    is_nowhere: ClassVar[bool] = False
    saved_names: ClassVar[tuple[str, ...]] = ()
    saved_tensor_names: ClassVar[tuple[str, ...]] = ()
    saved_list_names: ClassVar[tuple[str, ...]] = ()
    input_slots: ClassVar[tuple[str, ...]] = ()
    result_slots: ClassVar[tuple[tuple[str, int, bool], ...]] = ()
    saved_display: ClassVar[dict[str, Any]] = {}

    def name(self) -> str:
        """Return the name printed in `grad_fn=<...>`. A few nodes have the name of a class of PyTorch in C++."""
        name = type(self).__name__
        in_cpp = name in ("AccumulateGrad", "CopyBackwards", "Error", "NotImplemented")
        return f"torch::autograd::{name}" if in_cpp else name

    def _operation(self) -> str:
        """Return the name of the operation for error messages: the node's name without `Backward0`."""
        return re.sub(r"Backward0?$", "", re.sub(r"Backward(?=[1-9]\d*$)", "", self.name()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One `(node, output_nr)` for each input, or `(None, 0)` for an input that needs no gradient."""
        functions = tuple([function_of(edge) for edge in self._edges])
        # An `AccumulateGrad` with hooks must live as long as the nodes that lead to it.
        self._ends: Any = [function for function, _ in functions if isinstance(function, AccumulateGrad)]
        return functions

    def _register_hook_dict(self, hooks: dict[int, Any]) -> None:
        own_hooks(self).post.append(hooks)  # the owner of the dictionary may change it later

    def register_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node has run. A returned tuple replaces `grad_inputs`."""
        return own_hooks(self).register("post", hook)

    def register_prehook(self, hook: Any) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs. A returned tuple replaces the gradients."""
        return own_hooks(self).register("pre", hook)

    def backward(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Map the gradient of the output (a list for several outputs) to one gradient for each edge.

        Gradients are arrays. Saved values are released unless `retain_graph`. `edges` are the edges of the node, with None for
        edges whose gradient is not needed in this backward.
        """
        raise NotImplementedError

    def backward_recorded(self, grad: Any, retain_graph: bool, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Compute the same gradients as `backward`, on tensors. The computation is itself recorded (`create_graph=True`)."""
        raise NotImplementedError

    def describe_origin(self) -> str:
        """Return the line of the user's code that created this node."""
        try:
            return origin.describe(self._code, self._lasti)
        except AttributeError:
            return "an unknown line"


class Nowhere(Node):
    """The history of views that were created with recording off. They require grad, but their gradient goes nowhere."""

    __slots__ = ()
    is_nowhere = True

    def __init__(self) -> None:
        self._edges = ()
        self._hooks = None
        self._sequence = next(sequence_numbers)
        self._grad_shape = self._grad_dtype = None


NOWHERE = (Nowhere(), 0)
"""The edge of a view that was created with recording off."""


class AccumulateGrad(Node):
    """The end of the graph. It adds the incoming gradient to the `.grad` of the leaf `variable`."""

    __slots__ = ("variable",)
    __module__ = "builtins"  # as PyTorch shows its node classes

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self._edges = ()
        self._hooks = None
        self._sequence = (1 << 64) - 1
        self._grad_shape = variable._array.shape
        self._grad_dtype = variable._array.dtype

    def __call__(self, *grads: Any, **names: Any) -> Any:
        """Accumulate a gradient."""
        return LATE.run_accumulate_grad(self, *grads, **names)


def own_hooks(node: Node) -> NodeHooks:
    """Return the hooks of `node`. Create the record on first use."""
    if node.is_nowhere:
        return NodeHooks()  # a record whose hooks never run
    if node._hooks is None:
        node._hooks = NodeHooks()
    return node._hooks


_accumulator_lock = lock_across_forks()


def accumulator_of(leaf: Tensor) -> AccumulateGrad:
    """Return the `AccumulateGrad` of `leaf`. The leaf refers to it weakly, so there is no reference cycle."""
    with _accumulator_lock:
        node = live_accumulator(leaf)
        if node is None:
            node = AccumulateGrad(leaf)
            leaf._own_extra().accumulator = weakref.ref(node)
        return node


def live_accumulator(leaf: Tensor) -> AccumulateGrad | None:
    """Return the `AccumulateGrad` of `leaf`, if it exists."""
    extra = leaf._extra
    return extra.accumulator() if extra is not None and extra.accumulator is not None else None


def function_of(edge: Any) -> tuple[Node | None, int]:
    """Convert an edge to the form of `next_functions`."""
    if edge is None or (type(edge) is tuple and edge[0].is_nowhere):
        return (None, 0)
    return edge if type(edge) is tuple else (accumulator_of(edge), 0)


def start(node: Node, edges: tuple[Any, ...], depth: int) -> None:
    """Set the attributes that every node has. `depth` is the number of frames between the caller and the user's call."""
    node._edges = edges
    node._hooks = None
    node._sequence = next(sequence_numbers)
    frame = origin.getframe(depth + 1)
    code = frame.f_code
    if code.co_filename is not FLAGS.file:
        frame = origin.nearest_user_frame(frame)
        code = frame.f_code
    node._code = code
    node._lasti = frame.f_lasti
    if ANOMALY.enabled:
        note_node(node)


def note_node(node: Node) -> None:
    """Store the stack of the user's calls with a node, and with the ends of the graph that it leads to."""
    import traceback

    node.metadata["traceback_"] = traceback.format_stack(origin.user_frame(1))
    task = STATE.task
    if task is not None and task.node is not None:
        node.metadata["parent_"] = task.node
    for end, _ in node.next_functions:
        if isinstance(end, AccumulateGrad) and "traceback_" not in end.metadata:
            end.metadata["traceback_"] = node.metadata["traceback_"]

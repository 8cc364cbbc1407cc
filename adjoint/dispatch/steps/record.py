"""The steps that record a call: edges, the node, and the hooks on what it saves."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ...kernels.runtime.narrow_array import Narrow
from ...kernels.runtime.sparse_array import SparseArray
from ...tape import modes
from ...tape.edges import current_edge, edge_of
from ...tape.node import NOWHERE, start
from ...tape.packing import pack_saved
from ...tensor import LEAF, Tensor, can_require_grad
from ..declaration import ARRAYS, Operator
from ..plan import Call, Step
from ..source import block
from ..sparse_layouts import node_class_on_tensors
from .record_lines import (
    can_require_grad_if,
    edge_lines,
    is_recorded_if,
    recorded_lines,
    unrecorded_lines,
)


class Edges(Step):
    """Find where gradients go, and whether the call is recorded."""

    def run(self, call: Call) -> None:
        """Find the edges of the arguments."""
        find_edges(self.op, call)

    def lines(self, leave: str) -> list[str]:
        """The same; of an operator that returns views, also the base, with its edge."""
        base = [
            "base = input._base",
            "if base is None:",
            "    base, creation, edge_0 = input, None, input._edge",
            "else:",
            "    creation, edge_0 = input._creation, current_edge(input)",
            "counter = input._counter",
            "if counter is None:",
            "    counter = shared_counter(input)",
        ]
        return [*(base if self.op.view else []), *(edge_lines(self.op) if self.op.differentiable else [])]

    def __str__(self) -> str:
        return f"edges      of {', '.join(self.op.differentiable) or 'nothing'}"


class Record(Step):
    """Make the node: the history of the results."""

    def run(self, call: Call) -> None:
        """Make it if there is an edge, and gradients are enabled."""
        if call.recording:
            record(self.op, call, self.plan.arrays.on_tensors)

    def lines(self, leave: str) -> list[str]:
        """The same; the user's frame is most often as many frames above as the plan says."""
        op = self.op
        recorded, unrecorded = recorded_lines(op, self.plan.caller), unrecorded_lines(op)
        conditions = [is_recorded_if(op), "" if op.several else can_require_grad_if(op, "array")]
        lines = block(f"if {' and '.join(filter(None, conditions))}:", recorded)
        return [*lines, *(block("else:", unrecorded) if unrecorded else [])]

    def __str__(self) -> str:
        op = self.op
        saved = ", ".join([*op.saved_inputs, *op.saved_results, *op.saved_values])
        return f"record     {op.node_name}{f', which saves {saved}' if saved else ''}"


class Pack(Step):
    """Pass what the node saves to the saved-tensor hooks, if there are any."""

    def run(self, call: Call) -> None:
        """Call the hooks."""
        if call.recording:
            pack(call)

    def lines(self, leave: str) -> list[str]:
        """None: a node is packed where it is made."""
        return []

    def __str__(self) -> str:
        return "pack       by the saved-tensor hooks, if there are any"


def find_edges(op: Operator, call: Call) -> None:
    """Find the edges of the arguments, and whether the call is recorded."""
    call.edges = edges = wanted_edges(op, call.args)
    for edge in edges:
        if edge is not None:
            call.recording = modes.is_recording() and not (op.view and call.args[0].is_inference())
            break


def wanted_edges(op: Operator, args: Any) -> list[Any]:
    """One edge for each differentiable input (each element, for a sequence)."""
    edges: list[Any] = []
    for position in op.differentiable_positions:
        value = args[position]
        if isinstance(value, Tensor):
            edge = value._edge if value._base is None else current_edge(value)
            edges.append(value if edge is LEAF else edge)
        elif op.kinds[op.names[position]] == ARRAYS:
            edges += [edge_of(item) if isinstance(item, Tensor) else None for item in value]
        else:
            edges.append(None)
    return edges


def record(op: Operator, call: Call, on_tensors: bool = False) -> None:
    """Make the node of a call, and make it the history of the outputs; `on_tensors`: its formulas always run on tensors."""
    outputs = call.outputs
    array = outputs[0]._array
    on_tensors = on_tensors or (type(array) is not ndarray and type(array) in (SparseArray, Narrow))
    call.node = node = started(op, op.node_name, call.args, call.edges, on_tensors)
    if call.several:
        node._grad_shape = [output._array.shape for output in outputs]
        node._grad_dtype = [output._array.dtype for output in outputs]
    else:
        node._grad_shape, node._grad_dtype = array.shape, array.dtype
    if op.saved_results:
        op.saving.results(node, outputs)
    for number, output in enumerate(outputs):
        constant = bool(op.outputs) and op.outputs[number] in op.nondifferentiable_outputs
        if not constant and (output._array.dtype.kind == "f" or can_require_grad(output._array)):
            output._edge = (node, number)


def started(
    op: Operator, name: str, args: Any, edges: list[Any], on_tensors: bool, changed: Tensor | None = None
) -> Any:
    """A node called `name` that has saved its inputs; `changed`: the tensor that the operation is about to change."""
    kind: Any = op.code.node_class(name)
    node = object.__new__(node_class_on_tensors(kind) if on_tensors else kind)
    given = [None if edge is NOWHERE else edge for edge in edges]
    start(node, tuple(given), 3)
    op.saving.inputs(node, given, args, changed)
    return node


def pack(call: Call) -> None:
    """Pass what the node of a call saves to the saved-tensor hooks, if there are any."""
    if modes.STATE.saved_tensor_hooks:
        pack_saved(call.node, call.outputs)

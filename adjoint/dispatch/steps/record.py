"""The steps that record a call: edges, and the node, whose saved values pass the saved-tensor hooks."""

from __future__ import annotations

from functools import partial

from numpy import ndarray

from ...kernels.runtime.narrow_array import Narrow
from ...kernels.runtime.sparse_array import SparseArray
from ...tape import modes
from ...tape.edges import current_edge, edge_of
from ...tape.packing import pack_saved
from ...tensor import LEAF, Tensor, can_require_grad
from ..declaration import ARRAYS, Operator
from ..plan import Call, Plan, Step
from ..source import block
from .promote import with_constants
from .record_lines import can_require_grad_if, edge_lines, is_recorded_if, recorded_lines, unrecorded_lines
from .wrap import make_views


class Edges(Step):
    """Find where gradients go, and whether the call is recorded."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.run = partial(find_edges, plan.op)

    def lines(self, leave: str) -> list[str]:
        """Return the lines for the edges. If the operator returns views, also find the base with its edge."""
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
    """Create the node, which becomes the history of the results, if there is an edge and gradients are enabled."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.run = partial(record, plan.op, plan.arrays.on_tensors)

    def lines(self, leave: str) -> list[str]:
        """Return the lines for the node. Usually the user's frame is as many frames above as the plan specifies."""
        op = self.op
        recorded, unrecorded = recorded_lines(op, self.plan.caller), unrecorded_lines(op)
        conditions = [is_recorded_if(op), "" if op.several else can_require_grad_if(op, "array")]
        lines = block(f"if {' and '.join(filter(None, conditions))}:", recorded)
        return [*lines, *(block("else:", unrecorded) if unrecorded else [])]

    def __str__(self) -> str:
        op = self.op
        saved = ", ".join([*op.saved_inputs, *op.saved_results, *op.saved_values])
        return f"record     {op.node_name}{f', which saves {saved}' if saved else ''}"


def find_edges(op: Operator, call: Call) -> None:
    """Find one edge for each differentiable input (for each element of a sequence), and whether the call is recorded."""
    call.edges = edges = []
    args, recording = call.args, False
    for position in op.differentiable_positions:
        value = args[position]
        if isinstance(value, Tensor):
            edge = value._edge if value._base is None else current_edge(value)
            if edge is not None:
                recording = True
                if edge is LEAF:
                    edge = value
            edges.append(edge)
        elif op.kinds[op.names[position]] == ARRAYS:
            found = [edge_of(item) if isinstance(item, Tensor) else None for item in value]
            recording = recording or any(edge is not None for edge in found)
            edges += found
        else:
            edges.append(None)
    here = modes.STATE
    call.recording = recording and here.grad_enabled and not here.inference and not (op.view and args[0].is_inference())


def record(op: Operator, on_tensors: bool, call: Call, depth: int = 5) -> None:
    """Create the node of a call as the history of its outputs. Its formulas may always run `on_tensors`.

    The user's call is at least `depth` frames above the function that creates the node.
    """
    if not call.recording:
        return
    outputs = call.outputs
    array = outputs[0]._array
    on_tensors = on_tensors or (type(array) is not ndarray and type(array) in (SparseArray, Narrow))
    saving = op.code.saving
    node = saving.started(call, op.node_name, on_tensors, None, depth)
    if not call.several:
        node._grad_shape, node._grad_dtype = array.shape, array.dtype
    else:
        node._grad_shape = [output._array.shape for output in outputs]
        node._grad_dtype = [output._array.dtype for output in outputs]
    if op.saved_results:
        saving.results(node, outputs)
    for number, output in enumerate(outputs):
        constant = op.nondifferentiable_outputs and op.outputs[number] in op.nondifferentiable_outputs
        if not constant and (output._array.dtype.kind == "f" or can_require_grad(output._array)):
            output._edge = (node, number)
    if modes.FLAGS.hooked:
        pack_saved(node, outputs)


def recorded(call: Call, on_tensors: bool = False) -> None:
    """Record a call whose outputs an interpreter has computed, and make views of those of an operator on views."""
    op, args = call.op, call.args
    find_edges(op, call)
    if op.view:
        make_views(op, call)
    if call.recording:
        if op.numbers and not all(isinstance(args[each], Tensor) for each in op.tensor_positions):
            call.args = with_constants(op, args)
        record(op, on_tensors, call, 8)

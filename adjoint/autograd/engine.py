"""The engine. It walks the recorded graph from the roots, and passes every gradient to its receiver.

Nodes are numbered in the order of recording, so in descending order of their numbers all gradients of a node have arrived
before it runs. (If a user has set a sequence number, edges are counted instead.) A leaf accumulates as soon as its last
gradient has arrived. The engine does not recurse, because a graph may be a million nodes deep.

In an ordinary backward gradients are bare arrays. Under `create_graph=True` they are tensors, and operations on them
are recorded. The state is local to the call, so backward may run in many threads, and inside another backward.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ..kernels.runtime.floating import OFF, WARNINGS, restore
from ..kernels.runtime.sparse_array import SparseArray
from ..tape import mode_switches, modes
from ..tape.evaluation import SPECIAL, evaluated, recorded
from ..tape.modes import FLAGS, STATE
from ..tape.node import Node
from ..tape.torch_function import WRAPPERS
from ..tensor import Tensor, ndarray
from .accumulate import accumulate, summed
from .anomaly_mode import check_nan, report
from .graph_task import Capture, GraphTask, by_dependencies, nodes_without_watch
from .hook_calls import explain, finish_leaf, run_node, run_post_hooks, run_tensor_hooks, run_with_hooks
from .shown import Shown
from .validate_grad import as_taken

_by_sequence = attrgetter("_sequence")
FLAGS.engine = globals()


DEEPEST = 40
"""The maximum number of nested backwards in one thread. A deeper backward runs in a new thread, because stacks are limited."""


def run(
    roots: list[Any],
    grads: Any,
    retain_graph: bool,
    create_graph: bool,
    capture: Capture | None,
    accumulating: bool,
    given: Any = None,
) -> Shown | None:
    """Send `grads` (arrays, or tensors under `create_graph`) into the edges `roots`, with NumPy's warnings disabled.

    `grads` is a list, or a dictionary by node. A dictionary contains gradients in the form that the nodes at `roots`
    expect (`plain_root`). If `accumulating`, gradients accumulate into the `.grad` of all leaves, or of the leaves in
    `capture`. Otherwise gradients are stored only in `capture`. `given`: the tensors that contain the arrays in
    `grads`. Return the tensors through which user code sees gradients.
    """
    task = GraphTask()
    task.retain_graph, task.create_graph, task.accumulating = retain_graph, create_graph, accumulating
    task.capture, task.given = capture, given
    state = STATE.__dict__  # of this thread, looked up once
    outer = state["task"]
    if outer is not None:
        task.depth = outer.depth + 1
        if task.depth > DEEPEST:
            return mode_switches.in_another_thread(
                run, roots, grads, retain_graph, create_graph, capture, accumulating, given
            )
    state["task"] = task
    hooks = state["saved_tensor_hooks"]
    token = WARNINGS[OFF]
    try:
        execute(roots, grads, task)
        if task.callbacks is not None:
            task.stop_recording()
            for callback in task.callbacks:  # the list may grow during the loop
                callback()
        return task.shown
    finally:
        state["task"] = outer
        if task.stopped_recording:
            modes.set_grad(True)
        if state["saved_tensor_hooks"] is not hooks:  # a hook has entered modes without leaving them
            modes.put({"saved_tensor_hooks": hooks})
        restore(token)


def execute(roots: list[Any], grads: Any, task: GraphTask) -> None:
    """Discover the graph of `task` and run its nodes."""
    retain_graph, create_graph = task.retain_graph, task.create_graph
    order, uses = task.order, task.uses = discover(roots)
    capture = task.capture
    if capture is not None and len(roots) == 1:
        task.root = roots[0][0] if type(roots[0]) is tuple else roots[0]
    plain = nodes_without_watch(task) if capture is not None or FLAGS.special else None
    needed = task.needed
    buffers: dict[Any, Any] = grads if type(grads) is dict else arrive(roots, grads, task)
    complete: list[Tensor] = []
    for node in order:
        grad = buffers.pop(node, None)
        edges = node._edges
        if needed is not None:
            edges = needed.get(node, edges)
        if grad is None or node._hooks is not None or (plain is not None and node not in plain):
            results = visit(node, grad, task, edges)
            if results is None:
                results = (None,) * len(edges)
        else:
            try:
                kind = type(grad)
                if kind is ndarray or not (create_graph or kind in SPECIAL):
                    results = node.backward(grad, retain_graph, edges)
                elif not create_graph:
                    results = evaluated(node, grad, retain_graph, edges)
                elif WRAPPERS.open or kind is list or type(grad._array) is SparseArray:
                    results = recorded(node, grad, retain_graph, edges)
                else:
                    results = node.backward_recorded(grad, retain_graph, edges)
            except Exception as error:
                explain(error, node)
                raise
            # Unpacking its saved values may have added hooks. As in PyTorch, they do not see the gradients that it received.
            if node._hooks is not None and node._hooks.post:  # type: ignore[unreachable]
                results = run_post_hooks(node, results, [], create_graph, edges)  # type: ignore[unreachable]
        number = 0
        for edge in edges:
            result = results[number]
            number += 1  # noqa: SIM113  (`enumerate` or `zip` costs more than the work on one gradient)
            if type(edge) is tuple:
                if result is not None:
                    target = edge[0]
                    array = result._array if create_graph else result
                    if array.shape != target._grad_shape or array.dtype is not target._grad_dtype:
                        deliver(result, edge, node, buffers)
                    else:
                        buffers[target] = summed(buffers[target], result) if target in buffers else result
            elif edge is not None:
                place = id(edge)  # `hash` of a tensor is a call of Python
                if result is not None:
                    own = edge._array
                    array = result._array if create_graph else result
                    if array.shape != own.shape or array.dtype is not own.dtype:
                        deliver(result, edge, node, buffers)
                    else:
                        buffers[place] = summed(buffers[place], result) if place in buffers else result
                further = uses[place]
                if further:
                    uses[place] = further - 1
                elif place in buffers or edge._extra is not None:
                    complete.append(edge)
        if complete:
            grad = result = results = array = None  # accumulation counts the references to a gradient
            for leaf in complete:
                if leaf._extra is not None or FLAGS.special:
                    finish_leaf(leaf, buffers, task)
                elif capture is None or (task.accumulating and id(leaf) in capture.leaves):
                    accumulate(leaf, buffers.pop(id(leaf)), create_graph)
                elif id(leaf) in capture.leaves:
                    capture.leaves[id(leaf)] = buffers.pop(id(leaf))
            complete.clear()


def arrive(roots: list[Any], grads: list[Any], task: GraphTask) -> dict[Any, Any]:
    """Deliver the caller's gradients to the nodes at `roots`. Leaves at the roots are finished immediately."""
    buffers: dict[Any, Any] = {}
    for edge, grad in zip(roots, grads, strict=True):
        if edge is not None and grad is not None:
            deliver(grad, edge, None, buffers)
    for edge in [edge for edge in roots if edge is not None and type(edge) is not tuple]:
        if task.uses[id(edge)]:
            task.uses[id(edge)] -= 1
        elif id(edge) in buffers:
            finish_leaf(edge, buffers, task)
    return buffers


def visit(node: Node, grad: Any, task: GraphTask, edges: tuple[Any, ...]) -> Any:
    """Run a node in an unusual case. Return None if the node does not run. `edges`: the edges that need gradients."""
    if grad is None:
        if not node.runs_undefined and node._hooks is None:
            return None
        grad = [None] * len(node._grad_shape) if type(node._grad_shape) is list else None
    task.node = node
    capture = task.capture
    if capture is None or task.needed is None:
        runs, wanted = True, None
    else:
        runs, wanted = node in task.needed, capture.outputs.get(node)
        if not runs and wanted is None and node is not task.root:
            return None
    if wanted is not None and runs:
        store(grad, wanted)  # before hooks if the node also runs, otherwise after hooks, as in PyTorch
    try:
        hooks = node._hooks
        if hooks is not None and (hooks.tensor or hooks.retained):
            grad = run_tensor_hooks(node, grad, task.create_graph)
        if not runs:
            store(grad, wanted or {})
            return None
        run = run_with_hooks if hooks is not None and (hooks.pre or hooks.post) else run_node
        recorder = STATE.recorder
        if recorder is None:
            results = run(node, grad, task.retain_graph, task.create_graph, edges)
        else:
            results = recorder.backward(node, run, grad, task.retain_graph, task.create_graph, edges)
        if modes.ANOMALY.enabled and modes.ANOMALY.check_nan:
            check_nan(node, grad, results)
        if run is run_node and node._hooks is not None and node._hooks.post:
            results = run_post_hooks(node, results, [], task.create_graph, edges)
    except Exception:
        if modes.ANOMALY.enabled:
            report(node)
        raise
    return results


def store(grad: Any, wanted: dict[int, Any]) -> None:
    """Store the requested gradients of a node's outputs."""
    for number in wanted:
        wanted[number] = grad[number] if type(grad) is list else grad


def discover(roots: list[Any]) -> tuple[list[Node], dict[int, int]]:
    """Find the nodes reachable from the roots, the latest first. Count the edges to each leaf (by `id`), minus one."""
    seen: dict[Node, None] = {}  # a dictionary is faster than a set here
    uses: dict[int, int] = {}
    for edge in roots:
        if type(edge) is tuple:
            seen[edge[0]] = None
        elif edge is not None:
            uses[id(edge)] = uses.get(id(edge), -1) + 1
    order = [*seen]
    for node in order:  # the list grows during the loop
        for edge in node._edges:
            if type(edge) is tuple:
                target = edge[0]
                if target not in seen:
                    seen[target] = None
                    order.append(target)
            elif edge is not None:
                uses[id(edge)] = uses.get(id(edge), -1) + 1
    if len(order) > 1:
        if Node.renumbered:
            order = by_dependencies(roots, order)
        else:
            order.sort(key=_by_sequence, reverse=True)
    return order, uses


def deliver(grad: Any, edge: Any, source: Node | None, buffers: dict[Any, Any]) -> None:
    """Add `grad`, in the form that the receiver at the end of `edge` requires, to its earlier gradients."""
    target, number = edge if type(edge) is tuple else (edge, None)
    if number is not None and target.is_nowhere:
        return
    grad = as_taken(grad, edge, source)
    key = id(target) if number is None else target
    held = buffers.get(key)
    if number is not None and type(target._grad_shape) is list:
        if held is None:
            held = buffers[key] = [None] * len(target._grad_shape)
        held[number] = grad if held[number] is None else summed(held[number], grad)
    else:
        buffers[key] = grad if held is None else summed(held, grad)

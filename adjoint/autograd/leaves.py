"""Finishing leaves that need more than accumulation: the leaf has hooks, or its gradient is requested or recorded."""

from __future__ import annotations

from typing import Any

from .._runtime.extra import OWN
from ..tape import modes
from ..tape.modes import FLAGS, STATE
from ..tape.node import accumulator_of, live_accumulator
from ..tensor import Tensor
from .accumulate import accumulate
from .anomaly_mode import report
from .graph_task import GraphTask
from .hook_calls import run_accumulator, run_leaf_hooks, run_post_accumulate_hooks
from .validate_grad import validate_grad


def finish_leaf(leaf: Tensor, buffers: dict[Any, Any], task: GraphTask) -> None:
    """Finish `leaf`, whose gradients are complete: run its hooks, then accumulate or capture.

    If the leaf has only post-accumulation hooks, the gradient has no other reference, so its array becomes `.grad`.
    """
    extra, place = leaf._extra, id(leaf)
    if extra is not None and not extra.hooks and extra.grad_dtype is OWN and not FLAGS.special and place in buffers:
        node = live_accumulator(leaf)
        if (node is None or node._hooks is None) and task.accumulates(leaf):
            accumulate(leaf, buffers.pop(place), task.create_graph)
            run_post_accumulate_hooks(leaf)
            return
    try:
        take_to_leaf(leaf, buffers.pop(place, None), task)
    except Exception:
        if modes.ANOMALY.enabled:
            report(leaf)
        raise


def take_to_leaf(leaf: Tensor, grad: Any, task: GraphTask) -> None:
    """Run the hooks of `leaf` and accumulate, or capture. `grad` is None if all gradients were None."""
    capture = task.capture
    if capture is not None and id(leaf) not in capture.leaves and leaf is not task.root:
        return
    extra = leaf._extra
    if extra is not None and extra.grad_dtype is not OWN and grad is not None:
        grad = validate_grad(grad, grad.shape, leaf._array.dtype, None, leaf)
    if extra is not None and extra.hooks:
        grad = run_leaf_hooks(leaf, grad, task.create_graph)
    if capture is not None and (id(leaf) not in capture.leaves or not task.accumulating):
        if id(leaf) in capture.leaves:
            capture.leaves[id(leaf)] = grad
        return
    if FLAGS.special and STATE.recorder is not None:
        STATE.recorder.backward(accumulator_of(leaf), lambda node, grad: add_to_leaf(leaf, grad, task), grad)
    else:
        add_to_leaf(leaf, grad, task)


def add_to_leaf(leaf: Tensor, grad: Any, task: GraphTask) -> None:
    """Add `grad` to the `.grad` of a leaf in an unusual case."""
    node = live_accumulator(leaf)
    if node is not None and node._hooks is not None:
        run_accumulator(node, grad, task.create_graph)
    else:
        if grad is not None:
            accumulate(leaf, grad, task.create_graph)
        extra = leaf._extra
        if extra is not None and extra.post_hooks:
            run_post_accumulate_hooks(leaf)

"""Evaluation of the formulas of a node on gradients of any kind, on tensors if elements are stored elsewhere."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ..kernels.runtime.lazy_conj import LazyConjNeg
from ..kernels.runtime.meta_array import Meta
from ..kernels.runtime.narrow_array import Narrow
from ..kernels.runtime.sparse_array import SparseArray
from ..tensor import Tensor, as_array, wrap
from .modes import STATE, switched
from .torch_function import WRAPPERS, DisableTorchFunction

STAND_INS = frozenset((SparseArray, Narrow, LazyConjNeg, Meta))
"""The types of arrays whose elements are stored elsewhere."""

SPECIAL = STAND_INS | {list}
"""The types of gradients that need `evaluated`. They include `list`, because one item may be a stand-in."""


def evaluated(node: Any, grad: Any, retain_graph: bool, edges: Any) -> tuple[Any, ...]:
    """Return the result of `node.backward` for a gradient that is not a plain array (or for a list of gradients)."""
    given = grad if type(grad) is list else (grad,)
    if node.takes_stand_ins or STAND_INS.isdisjoint(map(type, given)):
        results: tuple[Any, ...] = node.backward(grad, retain_graph, edges)
        return results
    return on_tensors(node, grad, retain_graph, edges)


def on_tensors(node: Any, grad: Any, retain_graph: bool, edges: Any) -> tuple[Any, ...]:
    """Run unrecorded formulas on tensors made from arrays, and return their results as arrays."""
    with switched(grad_enabled=False):
        given = (
            [None if item is None else wrap(as_array(item)) for item in grad]
            if type(grad) is list
            else wrap(as_array(grad))
        )
        results = recorded(node, given, retain_graph, edges)
    return tuple([result._array if isinstance(result, Tensor) else result for result in results])


def recorded(node: Any, grad: Any, retain_graph: bool, edges: Any) -> Any:
    """Run `node.backward_recorded(grad, retain_graph, edges)` without overrides, except in custom functions."""
    if node.runs_undefined:  # only custom functions have `runs_undefined`
        return node.backward_recorded(grad, retain_graph, edges)
    before = STATE.dense_if_refused
    STATE.dense_if_refused = before or (not node.takes_stand_ins and is_sparse(grad))
    try:
        with DisableTorchFunction() if WRAPPERS.open else nullcontext():
            return node.backward_recorded(grad, retain_graph, edges)
    finally:
        STATE.dense_if_refused = before


def is_sparse(grad: Any) -> bool:
    """Return whether a gradient tensor, or one gradient in a list, is sparse."""
    given = grad if type(grad) is list else (grad,)
    return any(item is not None and type(item._array) is SparseArray for item in given)

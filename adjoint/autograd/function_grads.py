"""The gradients that the `backward` of a custom function receives and returns: filled in and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from ..tensor import Tensor, wrap
from .validate_grad import as_taken

if TYPE_CHECKING:
    from .function import FunctionNode


def materialized(node: FunctionNode, grads: list[Any]) -> list[Any]:
    """Replace None among the gradients by zeros."""
    absent = () if node._materialize_non_diff_grads else node._constant_outputs
    completed = list(grads)
    several = type(node._grad_shape) is list
    shapes, dtypes = (node._grad_shape, node._grad_dtype) if several else ([node._grad_shape], [node._grad_dtype])
    for number, (grad, shape, dtype) in enumerate(zip(grads, shapes, dtypes, strict=True)):
        if grad is None and shape is not None and number not in absent:
            completed[number] = wrap(numpy.zeros(shape, dtype))
    return completed


def checked_grads(node: FunctionNode, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check the gradients of the tensor arguments; return one for each edge."""
    if len(results) != len(node._tensor_inputs):
        results = counted(node, results)
    checked: list[Tensor | None] = []
    position = 0
    for result, is_tensor in zip(results, node._tensor_inputs):  # noqa: B905  (of equal length)
        position += 1  # noqa: SIM113
        if is_tensor:
            if result is not None:
                if not isinstance(result, Tensor):
                    raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
                if result._array.dtype.kind in "cW":
                    result = taken(result, node._edges[len(checked)], node)
            checked.append(result)
        elif result is not None:
            raise RuntimeError(
                f"function {node.name()} returned a gradient different than None at position {position}, but the "
                "corresponding forward input was not a Variable"
            )
    return tuple(checked)


def counted(node: FunctionNode, results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check the number of gradients: one for each argument; further ones must be None."""
    expected = len(node._tensor_inputs)
    if len(results) < expected or any(result is not None for result in results[expected:]):
        raise RuntimeError(
            f"function {node.name()} returned an incorrect number of gradients (expected {expected}, got {len(results)})"
        )
    return results[:expected]


def taken(grad: Tensor, edge: Any, node: FunctionNode) -> Tensor:
    """A complex gradient in the form that its receiver takes; a complex gradient of a real input is an error here."""
    if edge is None:
        return grad
    result: Tensor = as_taken(grad, edge, node)
    if result._array.dtype.kind not in "cW":
        raise RuntimeError(
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got false."
        )
    return result


def check_unwanted(node: FunctionNode, results: tuple[Any, ...], edges: Any) -> None:
    """Raise if a gradient that is not needed does not fit its input, as the engine does for needed gradients."""
    for result, edge, wanted in zip(results, node._edges, edges, strict=True):
        if result is not None and edge is not None and wanted is None:
            as_taken(result, edge, node)

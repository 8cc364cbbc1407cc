"""Converting a gradient to the form that its receiver requires: its shape (by summing broadcast dimensions) and its dtype."""

from __future__ import annotations

from typing import Any

from .._runtime.extra import OWN, form_for
from ..dispatch.decorators import tensors as tensor_operators
from ..dtypes import from_numpy
from ..kernels.reduce.reduction import sum_to_shape
from ..kernels.runtime.floating import unwarned
from ..kernels.runtime.shapes import can_expand
from ..kernels.runtime.sparse_array import SparseArray
from ..kernels.sparse.layouts import to_dense
from ..tape.node import Node
from ..tensor import Tensor, as_array, ndarray


def validate_grad(grad: Any, shape: Any, dtype: Any, source: Node | None, edge: Any = None) -> Any:
    """Return `grad` summed over broadcast dimensions and cast to the dtype of its receiver."""
    recorded = isinstance(grad, Tensor)
    array = grad._array if recorded else grad
    if isinstance(edge, Tensor) and edge._extra is not None and edge._extra.grad_dtype is not OWN:
        wanted = edge._extra.grad_dtype
        dtype = array.dtype if wanted is None else wanted.numpy
    if array.shape != shape:
        if type(array) is SparseArray:
            array = to_dense(array)
            grad = grad.to_dense() if recorded else array
        if array.shape[1:] != shape and not can_expand(shape, array.shape):
            name = source.name() if source is not None else "backward"
            index = next((i for i, each in enumerate(source._edges if source else ()) if each is edge), 0)
            raise RuntimeError(
                f"Function {name} returned an invalid gradient at index {index} - got "
                f"{list(array.shape)} but expected shape compatible with {list(shape)}"
            )
        grad = tensor_operators.sum_to_size(grad, shape) if recorded else sum_to_shape(as_array(grad), shape)
        array = grad._array if recorded else grad
    if array.dtype != dtype:
        if array.dtype.kind in "cW" and dtype.kind not in "cW":
            grad = tensor_operators.real(grad) if recorded else as_array(grad).real
            if recorded and grad._array.dtype == dtype:
                return grad
        if recorded:
            return tensor_operators.to_dtype(grad, from_numpy(dtype))
        with unwarned():
            return grad.astype(dtype)
    return grad


def as_taken(grad: Any, edge: Any, source: Node | None) -> Any:
    """Return `grad` in the form that the receiver at `edge` requires."""
    if type(edge) is not tuple:
        if edge._extra is None and type(grad) is ndarray:
            own = edge._array
            if grad.dtype is own.dtype and grad.shape[1:] == own.shape:  # usually the bias of rows
                return sum_to_shape(grad, own.shape)
        return validate_grad(grad, *form_for(edge, source), source, edge)
    node, number = edge
    several = type(node._grad_shape) is list
    shape, dtype = (
        (node._grad_shape[number], node._grad_dtype[number]) if several else (node._grad_shape, node._grad_dtype)
    )
    return validate_grad(grad, shape, dtype, source, edge)

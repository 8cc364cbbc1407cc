"""Sparse tensors in files: their parts are tensors, which are checked as those that a program gives."""

from collections.abc import Callable
from typing import Any

import numpy

from ..device import layout
from ..first_use import import_late
from ..kernels.runtime.sparse_array import Coordinates
from ..tensor import Tensor, wrap
from .limits import shown

__all__ = ["rebuild_sparse", "reduce_sparse"]


def reduce_sparse(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and the arguments that represent a sparse tensor in a file."""
    array: Any = tensor._array
    parts = array.parts
    values = wrap(parts.values)
    if isinstance(parts, Coordinates):
        return rebuild_sparse, (tensor.layout, (wrap(parts.indices), values, tensor.shape, parts.coalesced))
    return rebuild_sparse, (tensor.layout, (wrap(parts.starts), wrap(parts.places), values, tensor.shape))


def rebuild_sparse(kind: Any, data: Any) -> Tensor:
    """`torch._utils._rebuild_sparse_tensor`: a tensor of its parts."""
    if not isinstance(kind, layout) or not isinstance(data, tuple) or not 3 <= len(data) <= 4:
        raise TypeError(f"expected a layout and the parts of a tensor, got {shown(kind)} and {shown(data)}")
    made = import_late("adjoint.operators.sparse.creation")
    if repr(kind) == "torch.sparse_coo":
        indices, values, size = _tensors(data[:2]) + (data[2],)
        result: Tensor = made.sparse_coo_tensor(indices, values, size)
        rows: Any = result._array
        rows.parts.coalesced = len(data) == 4 and data[3] is True and _is_sorted(rows.parts.indices)
        return result
    if repr(kind) == "torch.strided" or len(data) != 4:
        raise TypeError(f"expected a sparse layout and its parts, got {shown(kind)}")
    rebuilt: Tensor = made.sparse_compressed_tensor(*_tensors(data[:3]), data[3], layout=kind)
    return rebuilt


def _tensors(parts: Any) -> Any:
    for part in parts:
        if not isinstance(part, Tensor):
            raise TypeError(f"expected a tensor, got {shown(part)}")
    return tuple(parts)


def _is_sorted(indices: Any) -> bool:
    """Whether the columns are in order, and no two are equal."""
    order = numpy.lexsort(indices[::-1]) if len(indices) else numpy.arange(indices.shape[1])
    ordered = indices[:, order]
    return bool((order == numpy.arange(len(order))).all() and (ordered[:, 1:] != ordered[:, :-1]).any(0).all())

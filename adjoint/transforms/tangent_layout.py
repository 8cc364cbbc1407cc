"""The memory layout of tangents equals the layout of their primals, so that views and in-place changes match."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ..device import strided
from ..dispatch.declaration import Operator
from ..dispatch.decorators import tensors as operators
from ..kernels.memory import storage
from ..kernels.runtime.addresses import may_share_memory
from ..operators.memory.storage_views import lazily
from ..tensor import Tensor, lazy_bits


def with_own_memory(tangent: Tensor, output: Tensor, given: dict[str, Any], operator: Operator) -> Tensor:
    """Return a tangent of a result. Copy the tangent if it has other strides or shares memory with a tangent in `given`.

    A result has separate memory for views and in-place changes, so its tangent needs separate memory too.
    """
    if operator.view:
        return tangent
    array, strides = tangent._array, output._array.strides
    if 0 in strides and array.size > 1:  # not the layout of elements in separate memory
        return tangent.clone()
    if array.strides == strides:
        tensors = [item for each in given.values() for item in (each if isinstance(each, list) else (each,))]
        if not any(item is not None and may_share_memory(array, item._array) for item in tensors):
            return tangent
        tangent = tangent.clone()
    return laid_out_like(tangent, output)


def window(whole: Tensor, base: Tensor, view: Tensor) -> Tensor:
    """Return the part of `whole`, which has the layout of `base`, at the position of `view` in `base`."""
    scale = 1
    whole = lazily(whole, lazy_bits(base))
    if base._array.dtype.kind in "cW" and view._array.dtype.kind not in "cW":
        whole, scale = operators.view_as_real(whole), 2
    offset = storage.storage_offset(view._array) - scale * storage.storage_offset(base._array)
    part = whole.as_strided(view.shape, view.stride(), offset + whole.storage_offset())
    return lazily(part, lazy_bits(view))


def laid_out_like(tangent: Tensor, primal: Tensor) -> Tensor:
    """Return `tangent` with the strides of `primal`, so that views match, unless elements of `primal` share memory."""
    array, own = primal._array, tangent._array
    if type(array) is type(own) is ndarray and array.strides == own.strides and _place(primal) == _place(tangent):
        return tangent
    if not primal.layout is tangent.layout is strided:
        return pending_like(tangent, primal)
    if storage.overlaps(primal.shape, primal.stride()):
        return pending_like(tangent, primal)
    if tangent.stride() == primal.stride() and _place(tangent) == _place(primal):
        return pending_like(tangent, primal)
    return empty_like(primal, tangent).copy_(tangent)


def empty_like(primal: Tensor, tangent: Tensor, dtype: Any = None) -> Any:
    """Return memory for a tangent with the layout and lazy bits of `primal`, and zeros in the rest of its storage."""
    offset, length = _place(primal)
    if length == primal._array.size:
        made = tangent.new_empty_strided(primal.shape, primal.stride(), dtype=dtype)
    else:
        made = tangent.new_zeros(length, dtype=dtype).as_strided(primal.shape, primal.stride(), offset)
    return lazily(made, lazy_bits(primal))


def _place(tensor: Tensor) -> tuple[int, int]:
    """Return the position of a tensor in its storage, and the number of elements of the storage."""
    array = tensor._array
    return storage.storage_offset(array), storage.owner(array).nbytes // array.itemsize


def pending_like(tangent: Tensor, primal: Tensor) -> Tensor:
    """Return `tangent` with the same lazy conjugation and negation as `primal`."""
    if type(primal._array) is type(tangent._array) is ndarray:
        return tangent
    if (dense := primal.layout is strided) != (tangent.layout is strided):
        return tangent.to_dense() if dense else tangent.sparse_mask(primal)
    if (bits := lazy_bits(primal)) == lazy_bits(tangent):
        return tangent
    return lazily(lazily(tangent, bits).clone(), bits)

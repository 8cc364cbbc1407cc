"""The memory layout of tangents equals the layout of their primals, so that views and in-place changes match.

The tangents that the `jvp` of a custom `Function` returns are checked.
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ..autograd.function import FunctionNode
from ..device import strided
from ..dispatch.declaration import Operator
from ..dispatch.decorators import tensors as operators
from ..kernels.memory import storage
from ..kernels.runtime.addresses import may_share_memory
from ..operators.memory.storage_views import lazily
from ..tensor import Tensor, lazy_bits


def with_own_memory(tangent: Tensor, output: Tensor, given: dict[str, Any], operator: Operator) -> Tensor:
    """Return a tangent of a result in the layout of the result and in separate memory, except for views."""
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


# --- tangents that the `jvp` of a custom `Function` returns ------------------------------------------------------


def checked_tangents(returned: Any, count: int) -> tuple[Tensor | None, ...]:
    """Return the result of a `jvp` as a tuple of `count` tangents. Raise RuntimeError for any other result."""
    tangents: tuple[Any, ...] = returned if isinstance(returned, tuple) else (returned,)
    for number, tangent in enumerate(tangents):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}.")
    if len(tangents) != count:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {count} but got {len(tangents)})"
        )
    return tangents


def check_changed(given: Tensor | None, version: int | None, tangent: Tensor | None) -> None:
    """Raise an error unless `jvp` has changed and returned the tangent `given`, as `forward` has done with the input."""
    if given is None or given._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
            "input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input "
            "inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def is_view_of_dual(output: Tensor, tangent: Tensor, args: tuple[Any, ...], given: list[Any]) -> bool:
    """Return whether an output is a view of an input with a tangent, of which its tangent must then be a view."""
    if output._base is None:
        return False
    found = False
    for arg, direction in zip(args, given, strict=True):
        if (
            not isinstance(arg, Tensor)
            or direction is None
            or output._base is not (arg if arg._base is None else arg._base)
        ):
            continue
        if tangent._base is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            )
        if tangent._base is not (direction if direction._base is None else direction._base):
            of = "the given grad input" if direction._base is None else "the same base as the given grad input"
            raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of {of}.")
        found = True
    return found


def check_layout(view: Tensor, tangent: Tensor) -> None:
    """Raise an error unless `tangent` has the layout of `view`, so that in-place changes reach the same elements."""
    if tangent.stride() != view.stride():
        raise RuntimeError(
            "Expected the output of forward differentiable view operations to have the tangent have the same layout as primal. "
            f"The strides of the view are {list(view.stride())} and those of its tangent {list(tangent.stride())}."
        )


def share_tangents(output: Tensor) -> None:
    """Give the saved form of an output the tangents of that output."""
    edge = output._edge
    for saved in edge[0]._saved or () if type(edge) is tuple and isinstance(edge[0], FunctionNode) else ():
        if saved is not None and saved.output_nr == edge[1] and isinstance(saved.tensor, Tensor):
            saved.tensor._own_extra().tangents = output._own_extra().tangents

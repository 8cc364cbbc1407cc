"""Operators on tensors of the device `meta`: results are on `meta` too; their shapes are found by computing with zeros.

Operators whose results depend on elements, not only on shapes, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy
from numpy import ndarray

from ..device import cpu, meta
from ..kernels.linalg import LinAlgError
from ..kernels.runtime.meta_array import Meta, Unread, in_place_of, zeros
from ..kernels.runtime.narrow_array import Narrow, is_narrow
from ..kernels.runtime.shapes import broadcast_shapes
from ..kernels.runtime.sparse_array import SparseArray
from ..tape.interpreters import tensors_in
from ..tape.torch_dispatch import DISPATCHING, dispatching_types
from ..tensor import Tensor
from .declaration import Operator
from .operands import given_arrays

_SPECIAL = frozenset((Meta, SparseArray))


def special_class(args: Iterable[Any]) -> type | None:
    """`Meta`, `SparseArray` or `Narrow`, if one of the tensors among arguments has such an array; else None.

    `Tensor`, if the class of one of them takes operators over (`__torch_dispatch__`).
    """
    found = None
    for value in args:  # tests what `tensors_in` finds, without the cost of a generator
        if isinstance(value, Tensor):
            if type(value) in DISPATCHING and dispatching_types((value,)):
                return Tensor
            if type(value._array) is not ndarray:
                found = found or _class_of(value._array)
        elif isinstance(value, (list, tuple)):
            for item in tensors_in((value,)):
                if type(item) in DISPATCHING and dispatching_types((item,)):
                    return Tensor
                if type(item._array) is not ndarray:
                    found = found or _class_of(item._array)
    return found


def _class_of(array: Any) -> type | None:
    kind = type(array)
    if kind is Unread:  # of a batch: no interpreter has taken it, so that this thread runs outside of its `vmap`
        raise Unread.error(Unread.refusal)
    return kind if kind in _SPECIAL else Narrow if is_narrow(array.dtype) else None


def has_meta(args: Iterable[Any]) -> bool:
    """Whether one of the tensors among arguments is on `meta`, or of a class that takes operators over."""
    return special_class(args) in (Meta, Tensor)


def check_places(op: Operator, args: Iterable[Any]) -> None:
    """Raise unless all tensors are on `meta`, except zero-dimensional ones, or if the operator needs elements."""
    tensors = list(tensors_in(args))
    if op.function_name.startswith("index"):  # the indices may have elements
        tensors, indices = tensors[:1], tensors[1:]
        if any(index._array.dtype == bool and index.is_meta for index in indices):
            raise _depends_on_elements("nonzero")
    expected = next((tensor for tensor in tensors if tensor._array.ndim), tensors[0]).device
    for tensor in tensors:
        if tensor.device != expected and (tensor._array.ndim or expected != meta):
            raise RuntimeError(f"Tensor on device {tensor.device} is not on the expected device {expected}!")
    if op.shape_of_elements:
        raise _depends_on_elements(op.function_name)


def _depends_on_elements(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"aten::{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered. "
        "The shape of its result depends on elements, and there are none."
    )


def computed(op: Operator, arrays: list[Any], compute: Callable[[Operator, list[Any]], Any]) -> Any:
    """The results of `op` on zeros; where these are refused, on identity matrices, or on ones."""
    for made in (zeros, _identity):
        try:
            return compute(op, with_elements(arrays, made))
        except (LinAlgError, RuntimeError, ZeroDivisionError):  # a wrong shape is refused again
            pass
    return compute(op, with_elements(arrays, _ones))


def with_elements(arrays: Iterable[Any], made: Callable[[Any], Any]) -> list[Any]:
    """The arguments, and those in lists, as `made` of them."""
    return [
        [made(item) for item in value]
        if isinstance(value, (list, tuple)) and any(type(item) is Meta for item in value)
        else made(value)
        for value in arrays
    ]


def _identity(array: Any) -> Any:
    if type(array) is not Meta or array.ndim < 2:
        return zeros(array)
    return numpy.broadcast_to(numpy.eye(*array.shape[-2:], dtype=array.dtype), array.shape)


def _ones(array: Any) -> Any:
    return numpy.broadcast_to(numpy.ones((), array.dtype), array.shape) if type(array) is Meta else array


def on_meta(op: Operator, results: Iterable[Any]) -> list[Any]:
    """The results of `computed`, on `meta`."""
    return [result.view(Meta) if op.view else in_place_of(result) for result in results]


def put(results: list[Any], out: Tensor) -> Tensor:
    """Give `out`, which must be on `meta`, the shape of the result."""
    if type(out._array) is not Meta:
        raise Meta.error(Meta.refusal)
    if out._array.shape != results[0].shape:
        out._array = results[0]
    return out


def check_change(op: Operator, args: Any, arrays: list[Any]) -> None:
    """Raise if the first of `args` or the new value is on `meta`, and the change is impossible."""
    target = args[0]
    if not op.copies:
        check_places(op, args)
    elif type(target._array) is not Meta:
        raise Meta.error(Meta.refusal)
    shape = target._array.shape
    if op.operands or op.copies:
        broadcast = broadcast_shapes(*(array.shape for array in given_arrays(op, arrays)))
        if broadcast != shape:
            raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(broadcast)}")


def place_like(tensor: Tensor, device: Any) -> Any:
    """The device of a tensor that is created like another one, if no `device` is given."""
    return device if device is not None else meta if type(tensor._array) is Meta else cpu

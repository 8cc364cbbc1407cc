"""New tensors with the shape and dtype of an existing tensor, or only with its dtype."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import numpy
from numpy import ndarray

from ...codegen.backend import NUMPY
from ...device import sparse_coo
from ...dispatch.arguments import require
from ...dispatch.decorators import public
from ...dispatch.meta import place_like
from ...dispatch.sequential import data_array, is_overridden
from ...kernels.create import creation as kernels
from ...kernels.create.data import array_from_data
from ...kernels.memory import copying
from ...kernels.runtime.meta_array import Meta
from ...kernels.runtime.sparse_array import SparseArray
from ...tape import modes
from ...tensor import Tensor, wrap
from ..memory.conversion import allocator, checked_dtype
from .creation import (
    checked_shape,
    empty_strided,
    fill_number,
    leaf,
    shape_of,
    warn_of_copy,
)


def empty_array_like(input: Any, function: str, dtype: Any, memory_format: Any, device: Any) -> Any:
    """Return an uninitialized array on `device` like the array of the tensor `input`."""
    require("Tensor", input, function, "input", 1)
    kind = checked_dtype(dtype, function)
    make = allocator(place_like(input, device), numpy.empty)
    return copying.empty_like(input._array, None if kind is None else kind.numpy, memory_format, make)


def sparse_like(input: Any, dtype: Any, layout: Any, requires_grad: Any, device: Any, fill: Any) -> Tensor | None:
    """Return a copy of the sparse tensor `input` after `fill` has changed it. Return None if the result is not sparse."""
    if not isinstance(input, Tensor) or type(input._array) is not SparseArray:
        return None
    if layout is not None and layout is not input.layout:
        if input.is_sparse:
            return None
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {input._array.words} but you requested "
            f"{str(layout)[6:].title().replace('_Coo', '').replace('_', '')})"
        )
    copy = input.detach().to(input.dtype if dtype is None else dtype, copy=True)
    return leaf(fill(copy)._array, requires_grad, device)


def _of_no_elements(copy):
    """Return a sparse tensor without elements, or a compressed tensor with the places of its elements."""
    return copy.zero_() if copy.layout is sparse_coo else copy


def _filled_like(name, value, on_arrays, doc):
    fill = methodcaller("fill_", value) if value else methodcaller("zero_") if value == 0 else _of_no_elements

    def create(
        input=None,
        *,
        dtype=None,
        layout=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        memory_format=None,
        x=None,
    ):
        plain = type(input) is Tensor and type(input._array) is ndarray and input._array.dtype.isbuiltin == 1
        plain = plain and pin_memory is requires_grad is False and not modes.FLAGS.special
        if plain and dtype is layout is device is memory_format is None:
            array = copying.empty_like(input._array)
            if value is None:
                copying.uninitialized(array)
            else:
                array.fill(value)
            return wrap(array)
        if type(input) is not Tensor and hasattr(input, "made_like"):
            return input.made_like(lambda each: create(each, dtype=dtype, requires_grad=requires_grad))
        input = input if x is None else x
        made = sparse_like(input, dtype, layout, requires_grad, device, fill)
        if made is not None:
            return made
        array = empty_array_like(input, name, dtype, memory_format, device)
        if type(array) is Meta:
            pass
        elif value == 0 and array.dtype.isbuiltin != 1:
            copying.zero_(array)
        elif value is not None or layout is not None:  # a sparse layout stores nothing
            array.fill(value or 0)
        else:
            copying.uninitialized(array)
        return leaf(array, requires_grad, place_like(input, device), pin_memory, layout)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return public(on_arrays=on_arrays)(create)


zeros_like = _filled_like("zeros_like", 0, kernels.zeros_like, "Zeros of the shape and dtype of `input`.")
ones_like = _filled_like("ones_like", 1, kernels.ones_like, "Ones of the shape and dtype of `input`.")
empty_like = _filled_like("empty_like", None, kernels.empty_like, "An uninitialised tensor like `input`.")


@public(on_arrays=kernels.full_like)
def full_like(
    input,
    fill_value,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    memory_format=None,
):
    """A tensor with the shape and dtype of `input`, filled with `fill_value`."""
    if type(input) is not Tensor and hasattr(input, "made_like"):
        return input.made_like(lambda each: full_like(each, fill_value, dtype=dtype, requires_grad=requires_grad))
    made = sparse_like(input, dtype, layout, requires_grad, device, methodcaller("fill_", fill_value))
    if made is not None:
        return made
    array = empty_array_like(input, "full_like", dtype, memory_format, device)
    copying.filled_with(array, fill_number(fill_value, "full_like", 2))
    return leaf(array, requires_grad, place_like(input, device), pin_memory, layout)


def _new_filled(name, make_array, doc):
    def create(input, *sizes, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        kind = checked_dtype(dtype, name) or input.dtype
        device = place_like(input, device)
        make = make_array if layout is None or name != "new_empty" else numpy.zeros
        return leaf(
            allocator(device, make)(shape_of(sizes, size, name), kind.numpy), requires_grad, device, pin_memory, layout
        )

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return public(namespace=None, method=True)(create)


new_zeros = _new_filled(
    "new_zeros", numpy.zeros, "Zeros of the given size, of this tensor's dtype unless told otherwise."
)
new_ones = _new_filled(
    "new_ones", copying.array_of, "Ones of the given size, of this tensor's dtype unless told otherwise."
)
new_empty = _new_filled(
    "new_empty", NUMPY.allocate, "An uninitialised tensor of the given size and this tensor's dtype."
)


@public(namespace=None, method=True)
def new_full(input, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor of the given size and this tensor's dtype, filled with `fill_value`."""
    kind = checked_dtype(dtype, "new_full") or input.dtype
    array = allocator(place_like(input, device))(checked_shape(size, "new_full"), kind.numpy)
    copying.filled_with(array, fill_number(fill_value, "new_full", 2))
    return leaf(array, requires_grad, place_like(input, device), pin_memory, layout)


@public(namespace=None, method=True)
def new_empty_strided(input, size, stride, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """An uninitialized tensor of the given size and strides, with this tensor's dtype unless another is given."""
    kind = checked_dtype(dtype, "new_empty_strided") or input.dtype
    return empty_strided(size, stride, dtype=kind, device=place_like(input, device), requires_grad=requires_grad)


@public(namespace=None, method=True)
def new_tensor(input, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor with a copy of `data`, with this tensor's dtype unless another is given."""
    if isinstance(data, Tensor):
        warn_of_copy("tensor.new_tensor", data)
    kind = checked_dtype(dtype, "new_tensor") or input.dtype
    if is_overridden(data):
        return data.detach().to(place_like(input, device), kind, copy=True).requires_grad_(requires_grad)
    array = array_from_data(data, kind, data_array)
    return leaf(array, requires_grad, place_like(input, device), pin_memory, layout)

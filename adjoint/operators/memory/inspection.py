"""Queries about tensors: their kind, their identity, and the dtypes of results."""

from __future__ import annotations

from typing import Any

import numpy

from ... import dtypes
from ...dispatch.arguments import invalid_arguments, require
from ...dispatch.decorators import public
from ...dispatch.numpy_names import with_numpy_names
from ...dispatch.sequential import is_readable, read_array, sequential_fallback
from ...dtypes import Rank, promote
from ...kernels.math import comparison
from ...kernels.memory.storages import UntypedStorage
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.lazy_conj import materialize
from ...kernels.runtime.narrow_array import is_narrow, widened
from ...kernels.runtime.shapes import broadcast_shapes
from ...kernels.runtime.sparse_array import SparseArray
from ...tape.versions import shared_counter
from ...tensor import Tensor, wrap

# --- of what kind ---------------------------------------------------------------------------------------------


@public()
def is_tensor(obj, /):
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


@public()
def is_storage(obj, /):
    """Whether `obj` is a storage."""
    return isinstance(obj, UntypedStorage)


def _function_of(name, on_arrays=None):
    """Return a function that calls the method `name` of a tensor. `on_arrays` is its form for formulas on arrays."""
    method = getattr(Tensor, name)

    def function(input=None, *, x=None):
        input = x if input is None else input
        require("Tensor", input, name, "input", 1)
        return method(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = method.__doc__
    return public(on_arrays=on_arrays)(function)


for _name in (
    "is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference", "numel", "resolve_neg",
):  # fmt: skip
    _function_of(_name)
_function_of("resolve_conj", materialize)


@public()
def typename(obj, /):
    """The name of a tensor's legacy type, such as `torch.FloatTensor`.

    For other objects, the result is the name of the class.

    >>> import adjoint as torch
    >>> torch.typename(torch.ones(2))
    'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None) or "builtins"
    if module.split(".")[0] == "adjoint":  # for users, names of the top level belong to no other module
        parts = module.split(".")[1:]
        module = ".".join(["torch", *parts]) if parts and parts[0] in ("nn", "optim", "utils", "autograd") else "torch"
    return named.__qualname__ if module == "builtins" else f"{module}.{named.__qualname__}"


@public()
def get_device(input):
    """The device number of `input`, which is -1 for the CPU."""
    return input.get_device()


@public(method=True)
def is_distributed(input):
    """Always False, because every tensor is in one process."""
    return False


@public(method=True)
def is_nonzero(input):
    """Whether the only element of the tensor is not zero.

    Raises:
        RuntimeError: if the tensor does not have exactly one element.
    """
    return bool(input.detach())


# --- the same -------------------------------------------------------------------------------------------------


@public(method=True)
def is_same_size(input, other):
    """Whether both tensors have the same shape."""
    require("Tensor", other, "is_same_size", "other", 2)
    return input._array.shape == other._array.shape


@public(namespace=None, method=True)
def is_set_to(input, tensor):
    """Whether both tensors have the same memory, shape and strides."""
    first, second = input._array, tensor._array
    if not tensor.untyped_storage().nbytes():
        return False
    return (first.shape, first.strides, type(first), input.data_ptr()) == (
        second.shape,
        second.strides,
        type(second),
        tensor.data_ptr(),
    )


@public(method=True)
def equal(input=None, other=None, **names):
    """Whether both tensors have the same shape and elements.

    >>> import adjoint as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    if names:
        return with_numpy_names(equal, names, input, other)
    if type(input) is not Tensor or type(other) is not Tensor:
        require("Tensor", input, "equal", "input", 1)
        require("Tensor", other, "equal", "other", 2)
    first, second = input._array, other._array
    plain = type(first) is numpy.ndarray is type(second)
    if plain and first.shape == second.shape and 0 < first.size <= _FEW:
        return b"\0" not in numpy.equal(first, second).tobytes()
    for each in (input, other):
        if type(each._array) is SparseArray:
            raise NotImplementedError(
                f"Could not run 'aten::equal' with arguments from the '{each._array.words}CPU' backend."
            )
    if not plain and not is_readable(input, other):
        raise RuntimeError("Batching rule not implemented for aten::equal. We could not generate a fallback.")
    if first.shape != second.shape:
        return False
    if not plain and is_narrow(first.dtype):
        if input.dtype.is_complex:
            raise refuse("equal_cpu", first)
        first, second = widened(first), widened(second)
    same = numpy.equal(first, second)
    if not plain or not same.size:
        return bool(same.all())
    return same.item(same.argmin())  # takes less time than `all`


_FEW = 1 << 12
"""The maximum number of truth values that are searched as bytes."""


@public(method=True)
@sequential_fallback
def isclose(input=None, other=None, rtol=1e-05, atol=1e-08, equal_nan: bool = False, **names):
    """Whether elements differ by at most `atol + rtol * abs(other)`.

    With `equal_nan`, NaN is close to NaN.

    >>> import adjoint as torch
    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    if names:
        return with_numpy_names(isclose, names, input, other, rtol, atol, equal_nan)
    require("Tensor", input, "isclose", "input", 1)
    require("Tensor", other, "isclose", "other", 2)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.scalar_type} did not match {other.dtype.scalar_type}")
    for place, (name, value) in enumerate((("rtol", rtol), ("atol", atol)), 3):
        if isinstance(value, Tensor) and value.requires_grad:
            raise TypeError(f"isclose(): argument '{name}' (position {place}) must be float, not Tensor")
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    broadcast_shapes(input._array.shape, other._array.shape)
    if not is_readable(input, other):
        return input == other
    result = wrap(comparison.isclose(input._array, other._array, rtol, atol, equal_nan))
    inexact = input.dtype.is_floating_point or input.dtype.is_complex
    # PyTorch adds these conditions in place.
    shared_counter(result)[0] = (equal_nan and inexact) + (rtol != 0 or atol != 0)
    return result


@public(method=True)
def allclose(input=None, other=None, rtol=1e-05, atol=1e-08, equal_nan: bool = False, **names):
    """Whether `isclose` holds for all elements."""
    close = isclose(input, other, rtol, atol, equal_nan, **names)
    if is_readable(close):
        return bool(read_array(close).all())
    if close.is_meta:
        return close.all().item()  # raises the error
    raise RuntimeError(
        "vmap over torch.allclose isn't supported yet. The elements of the batch may differ in whether they are close: use "
        "isclose."
    )


# --- dtypes ---------------------------------------------------------------------------------------------------


@public(
    forms=(
        "Tensor tensor, Tensor other",
        "Number scalar, Tensor tensor",
        "Tensor tensor, Number other",
        "Number scalar1, Number scalar2",
    )
)
def result_type(tensor1, tensor2):
    """The dtype of the result of an operation on two tensors, or on a tensor and a number.

    >>> import adjoint as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.5)
    torch.float32
    """
    return promote((_operand(tensor1, tensor1, tensor2), _operand(tensor2, tensor1, tensor2)))


def _operand(value: Any, *operands: Any) -> tuple[dtypes.dtype, int]:
    if isinstance(value, Tensor):
        return value.dtype, Rank.DIMENSIONED if value._array.ndim else Rank.ZERO_DIM
    if isinstance(value, (int, float, complex, numpy.number, numpy.bool_)):
        return dtypes.scalar_dtype(value), Rank.SCALAR
    raise invalid_arguments("result_type", *operands)

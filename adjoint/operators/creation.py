"""New tensors: from data, filled with a number, spaced between two numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from .. import dtypes
from ..kernels import copying, storage
from ..kernels import creation as kernels
from ..tape import modes
from ..tensor import LEAF, Tensor, can_require_grad, tensor_array, wrap
from .build import arrays, public, tensors
from .copying import check_device
from .dispatch import store
from ..tape.saved import bump


def leaf(array: Any, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A new leaf on `array` itself.

    Raises:
        RuntimeError: if it is to require grad and cannot.
    """
    if device is not None:
        check_device(device)
    tensor = wrap(array)
    if requires_grad:
        if not can_require_grad(array):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        tensor._edge = LEAF
    if modes.GATE.special and modes.STATE.inference:
        tensor._own_extra().inference = True
    return tensor


# --- from data ------------------------------------------------------------------------------------------------


@public()
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor holding a copy of `data`: a number, nested sequences of numbers, a NumPy array or a tensor.

    Integers give int64, floats the default dtype, NumPy arrays keep theirs.

    >>> import adjoint as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    return leaf(kernels.array_from_data(data, dtype, tensor_array), requires_grad, device)


@public()
def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor, without a copy where it is a tensor or a NumPy array of the dtype asked for."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, numpy.ndarray) and (dtype is None or dtype.numpy == data.dtype):
        return from_numpy(data)
    return leaf(kernels.array_from_data(data, dtype, tensor_array), False, device)


@public()
def from_numpy(ndarray, /):
    """A tensor on the memory of a NumPy array: a change of one changes the other.

    >>> import adjoint as torch, numpy
    >>> array = numpy.zeros(2)
    >>> torch.from_numpy(array)[0] = 7
    >>> array
    array([7., 0.])
    """
    if not isinstance(ndarray, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.from_numpy(ndarray.dtype)
    return leaf(storage.adopt(ndarray))


# --- filled with a number -------------------------------------------------------------------------------------


def shape_of(size: tuple[Any, ...], function: str) -> tuple[int, ...]:
    """Sizes given one by one or as one sequence."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    for position, length in enumerate(size):
        if type(length) is not int:
            if not hasattr(length, "__index__"):
                raise TypeError(
                    f"{function}(): argument 'size' (position {position + 1}) must be tuple of ints, not {type(length).__name__}"
                )
            size = tuple(length.__index__() for length in size)
            break
        if length < 0:
            raise RuntimeError(f"{function}: Dimension size must be non-negative.")
    return size


def _numpy_dtype(dtype, out=None):
    if out is not None and dtype is None:
        return out._array.dtype
    return (dtypes.get_default_dtype() if dtype is None else dtype).numpy


def finished(function: str, array: Any, out: Any, requires_grad: bool, device: Any) -> Tensor:
    """`array` as a new leaf, or written to `out`."""
    if out is None:
        return leaf(array, requires_grad, device)
    store(array, out)
    bump(out, function, depth=3)
    return out


def _filled(name, make, doc):
    def create(*size, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, **names):
        size = shape_of(size or (names["size"],), name)
        return finished(name, make(size, _numpy_dtype(dtype, out)), out, requires_grad, device)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return public()(create)


zeros = _filled("zeros", numpy.zeros, "A tensor of zeros of the given size.")
ones = _filled("ones", numpy.ones, "A tensor of ones of the given size.")
empty = _filled("empty", numpy.empty, "An uninitialised tensor of the given size.")


@public()
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor of the given size of which every element is `fill_value`."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if dtype is None and out is None:
        dtype = dtypes.scalar_dtype(fill_value)
    array = numpy.full(shape_of((size,), "full"), fill_value, _numpy_dtype(dtype, out))
    return finished("full", array, out, requires_grad, device)


def _array_like(input, fill, dtype, memory_format):
    array = copying.empty_like(input._array, None if dtype is None else dtype.numpy, memory_format)
    if fill is not None:
        array.fill(fill)
    return array


@public(on_arrays=lambda array: numpy.zeros(array.shape, array.dtype))
def zeros_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None):
    """Zeros of the shape and dtype of `input`."""
    return leaf(_array_like(input, 0, dtype, memory_format), requires_grad, device)


@public(on_arrays=lambda array: numpy.ones(array.shape, array.dtype))
def ones_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None):
    """Ones of the shape and dtype of `input`."""
    return leaf(_array_like(input, 1, dtype, memory_format), requires_grad, device)


@public(on_arrays=lambda array: numpy.empty(array.shape, array.dtype))
def empty_like(input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None):
    """An uninitialised tensor of the shape and dtype of `input`."""
    return leaf(_array_like(input, None, dtype, memory_format), requires_grad, device)


@public(on_arrays=lambda array, value: numpy.full(array.shape, value, array.dtype))
def full_like(
    input, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None
):
    """A tensor of the shape and dtype of `input` of which every element is `fill_value`."""
    fill_value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return leaf(_array_like(input, fill_value, dtype, memory_format), requires_grad, device)


@public(namespace=None, method=("new_zeros",))
def new_zeros(input, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **names):
    """Zeros of the given size, of this tensor's dtype unless told otherwise."""
    size = shape_of(size or (names["size"],), "new_zeros")
    return leaf(numpy.zeros(size, (dtype or input.dtype).numpy), requires_grad, device)


@public(namespace=None, method=("new_ones",))
def new_ones(input, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **names):
    """Ones of the given size, of this tensor's dtype unless told otherwise."""
    size = shape_of(size or (names["size"],), "new_ones")
    return leaf(numpy.ones(size, (dtype or input.dtype).numpy), requires_grad, device)


# --- spaced ---------------------------------------------------------------------------------------------------


@public()
def arange(*bounds, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, **names):
    """The numbers from `start` (0) to before `end` in steps of `step` (1).

    >>> import adjoint as torch
    >>> torch.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    order = ("end",) if len(bounds) + len(names) == 1 else ("start", "end", "step")
    given = {**dict(zip(order, bounds, strict=False)), **names}
    start, end, step = (
        value.item() if isinstance(value, Tensor) else value for value in (given.get("start", 0), given["end"], given.get("step", 1))
    )
    if dtype is None:
        if out is not None:
            dtype = out.dtype
        else:
            is_float = any(isinstance(value, (float, numpy.floating)) for value in (start, end, step))
            dtype = dtypes.get_default_dtype() if is_float else dtypes.int64
    return finished("arange", kernels.arange(start, end, step, dtype), out, requires_grad, device)

"""New tensors: from data, from existing memory, or filled with a number."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy

from ... import dtypes
from ..._runtime.first_use import import_late
from ..._runtime.tracebacks import shorten, warn
from ...device import cpu, strided
from ...dispatch.arguments import fits, is_of_type, require, wrong_type
from ...dispatch.decorators import public
from ...dispatch.out import check_overlap, store
from ...dispatch.sequential import data_array, is_overridden
from ...dispatch.signatures import type_name
from ...interchange import tensor_array
from ...kernels.create.data import array_from_data, check_array
from ...kernels.memory import copying, storage, storages
from ...kernels.memory.bounds import in_words_of_pytorch, whole
from ...kernels.runtime.meta_array import Meta, in_place_of
from ...kernels.runtime.scalar import scalar_array
from ...tape import mode_switches, modes
from ...tape.anomaly import BY_DEFINITION, note_cut
from ...tape.inference_tensors import mark_inference
from ...tape.interpreters import within_batches
from ...tape.versions import bump
from ...tensor import LEAF, Tensor, wrap
from ..memory.conversion import allocator, checked_dtype, is_meta, on_meta
from ..shape.view import checked_sizes

# --- what every constructor takes -----------------------------------------------------------------------------


def leaf(
    array: Any, requires_grad: bool | None = False, device: Any = None, pin_memory: bool = False, layout: Any = None
) -> Tensor:
    """Return a new leaf with the memory of `array`. Raise an error if it cannot require grad, or be on the device."""
    if on_meta(device):
        array = in_place_of(array)
    if pin_memory:
        _refuse_pinned_memory()
    if layout is not None and layout is not strided:
        array = import_late("adjoint.kernels.sparse.layouts").made_in_layout(array, repr(layout).removeprefix("torch."))
    tensor = wrap(array)
    if requires_grad is not False:
        check_requires_grad(requires_grad, array.dtype)
        tensor._edge = LEAF if requires_grad else None
    if modes.FLAGS.special:
        if modes.STATE.capture is not None:
            modes.STATE.capture.constant(array, tensor if requires_grad else None)
        if modes.STATE.inference:
            mark_inference(tensor)
        return within_batches(tensor)
    return tensor


def _refuse_pinned_memory() -> None:
    raise RuntimeError(
        "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this system."
    )


def check_requires_grad(requires_grad: Any, dtype: Any) -> None:
    """Raise an error unless a tensor of NumPy's `dtype` can require grad as requested."""
    if requires_grad is not True and requires_grad is not False and requires_grad is not None:
        raise TypeError(f"argument 'requires_grad' must be bool, not {type_name(requires_grad)}")
    kind = dtypes.from_numpy(dtype)
    if requires_grad and not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")


def check_request(
    function: str,
    dtype: Any,
    out: Any,
    requires_grad: Any = False,
    device: Any = None,
    pin_memory: Any = False,
    layout: Any = None,
) -> None:
    """Raise the errors of `write_out` and `leaf` before elements are computed."""
    if device is not None and device is not cpu:
        is_meta(device)
    if pin_memory:
        _refuse_pinned_memory()
    if requires_grad is not False:
        check_requires_grad(requires_grad, dtype)
    if layout is not None and not isinstance(layout, type(strided)):
        raise TypeError(f"{function}(): argument 'layout' must be torch.layout, not {type_name(layout)}")
    if out is not None:
        _check_out(function, out)


def shape_of(sizes: Any, size: Any, function: str) -> tuple[int, ...]:
    """Return the shape given as separate sizes, as one sequence, or as the keyword `size`."""
    if sizes and size is None:
        for length in sizes:
            if type(length) is not int or length < 0:
                break
        else:
            return sizes
    if size is not None:
        return checked_shape(size, function, None)
    if not sizes:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    if isinstance(sizes[0], (tuple, list)):
        if len(sizes) > 1:
            raise TypeError(f"{function}() takes 1 positional argument but {len(sizes)} were given")
        return checked_shape(sizes[0], function)
    return checked_shape(sizes, function, one_by_one=True)


def checked_shape(size: Any, function: str, position: int | None = 1, *, one_by_one: bool = False) -> tuple[int, ...]:
    """Return sizes as a tuple of ints. Errors name the position (None for a keyword), unless sizes are given `one_by_one`."""
    if isinstance(size, (tuple, list)):
        for length in size:
            if type(length) is not int or length < 0:
                break
        else:
            return tuple(size)
    shape = checked_sizes(size, function, "size", position, one_by_one=one_by_one)
    for length in shape:
        if length < 0:
            words = f"Trying to create tensor with negative dimension {length}: {list(shape)}"
            raise RuntimeError(_OF_NEGATIVE_SIZES.get(function, words))
    return shape


_OF_NEGATIVE_SIZES = {
    "zeros": "zeros: Dimension size must be non-negative.",
    "resize_": "numel: integer multiplication overflow",
}
"""The errors for negative sizes of functions that have errors of their own."""


def result_dtype(function: str, dtype: Any, out: Any) -> Any:
    """Return the dtype of a new tensor: the given dtype, the dtype of `out`, or None for the default."""
    dtype = checked_dtype(dtype, function)
    if out is None:
        return dtype
    require("Tensor", out, function, "out")
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_type} does not match dtype of out parameter ({out.dtype.scalar_type})")
    return out.dtype


def made(
    function: str,
    shape: tuple[int, ...],
    kind: dtypes.dtype,
    make: Any,
    out: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    pin_memory: bool = False,
    layout: Any = None,
) -> Tensor:
    """Return a new leaf with the elements `make(shape, dtype)`, or write them to `out`. On `meta`, compute no elements."""
    if out is device is layout is None and pin_memory is requires_grad is False and not modes.FLAGS.special:
        return wrap(make(shape, kind.numpy))
    check_request(function, kind.numpy, out, requires_grad, device, pin_memory, layout)
    if out is None:
        return leaf(allocator(device, make)(shape, kind.numpy), requires_grad, device, pin_memory, layout)
    write_out(function, make(shape, kind.numpy), out)
    return out.requires_grad_() if requires_grad else out


def write_out(function: str, array: Any, out: Tensor) -> None:
    """Write `array` to the tensor given as `out=`."""
    _check_out(function, out)
    if array.shape != out._array.shape:
        out._array = copying.convert(array, out._array.dtype)
    else:
        store(array, out)
    bump(out, function, depth=4)


def _check_out(function: str, out: Tensor) -> None:
    if modes.is_grad_enabled() and out.requires_grad:
        raise RuntimeError(
            f"aten::{function}(): functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad."
        )
    check_overlap(out)


# --- from data ------------------------------------------------------------------------------------------------


def warn_of_copy(name: str, data: Tensor) -> None:
    """Warn that a constructor copies a given tensor without its history."""
    if modes.ANOMALY.enabled:
        note_cut(name, BY_DEFINITION, [data], [])
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor)."
    )


@public(retried=False)
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with a copy of `data`, which is a number, nested sequences of numbers, a NumPy array or a tensor.

    Integers give int64, and floats give the default dtype. NumPy arrays, NumPy scalars and tensors keep their dtype.

    Raises:
        ValueError: for ragged sequences.
        TypeError, RuntimeError: if a value is not a number, or does not fit into `dtype`.

    >>> import adjoint as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    try:
        if isinstance(data, Tensor):
            warn_of_copy("torch.tensor", data)
        dtype = checked_dtype(dtype, "tensor")
        if is_overridden(data):
            return data.detach().to(device, dtype, copy=True).requires_grad_(requires_grad)
        if hasattr(data, "without_history"):  # a tensor with a batch dimension
            copy = data.without_history(copy=True)
            return copy if dtype is None else copy.to(dtype)
        if isinstance(data, storages.StorageBase):
            return leaf(data.elements_of(dtype), requires_grad, device)
        return leaf(array_from_data(data, dtype, data_array), requires_grad, device, pin_memory)
    except Exception as error:
        shorten(error)
        raise


@public()
def as_tensor(data, *, dtype=None, device=None):
    """Return `data` as a tensor, without a copy if it is a tensor or a NumPy array of the requested dtype."""
    dtype = checked_dtype(dtype, "as_tensor")
    if isinstance(data, Tensor):
        place = mode_switches.current_place() if device is None else device
        return data if place is None and dtype is None else data.to(place, dtype)
    if isinstance(data, numpy.ndarray) and (dtype is None or dtype.numpy == data.dtype):
        return leaf(_on_numpy_memory(data), False, device)
    if hasattr(data, "__dlpack__") and not isinstance(data, (numpy.ndarray, numpy.generic)):
        return from_dlpack(data).to(device or cpu, dtype)
    return tensor(data, dtype=dtype, device=device)


@public()
def asarray(obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool | None = None):
    """Convert `obj` to a tensor, without a copy if possible. `copy=True` forces a copy, and `copy=False` forbids it.

    Raises:
        ValueError: if `copy` is False and a copy is needed.
        RuntimeError: if `copy` is False and `obj` is a NumPy scalar.
    """
    dtype = checked_dtype(dtype, "asarray")
    result = _shared(obj, dtype)
    if result is None:
        if copy is False and isinstance(obj, numpy.generic):
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return leaf(array_from_data(obj, dtype, data_array), bool(requires_grad), device)
    if isinstance(obj, Tensor) and requires_grad is None and obj.requires_grad:
        warn(
            "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
            "requires_grad=False explicitly to get the old behavior and silence this warning."
        )
        requires_grad = True
    converted = dtype is not None and dtype is not result.dtype
    if converted and copy is False:
        raise ValueError(
            f"can't alias tensor with dtype '{result.dtype.scalar_type}' into dtype '{dtype.scalar_type}'."
        )
    if not requires_grad and result.requires_grad:
        result = result.detach()
    if converted:
        result = result.to(dtype)
    elif copy:
        result = result.clone()
    if requires_grad and not result.requires_grad:
        result = leaf(result._array, True, device)
    return result


def _shared(obj, dtype):
    """Return a tensor that shares the memory of `obj`, or None if `obj` has no memory to share."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, numpy.ndarray):
        return from_numpy(obj)
    if isinstance(obj, (int, float, complex, list, tuple, numpy.generic)):
        return None
    if isinstance(obj, storages.StorageBase):
        return wrap(obj.elements_of(dtype))
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())


# --- from memory ----------------------------------------------------------------------------------------------


@public()
def from_numpy(ndarray, /):
    """A tensor that shares the memory of a NumPy array. Changes of the tensor also change the array.

    >>> import adjoint as torch, numpy
    >>> array = numpy.zeros(2)
    >>> _ = torch.from_numpy(array).fill_(7)
    >>> array
    array([7., 7.])
    """
    if not isinstance(ndarray, numpy.ndarray):
        kind = type(ndarray)
        name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
        raise TypeError(f"expected np.ndarray (got {name})")
    return leaf(_on_numpy_memory(ndarray), device=cpu)


def _on_numpy_memory(array):
    """Use the memory of a NumPy array for a tensor. Warn if the memory is read-only."""
    check_array(array)
    if not array.flags.writeable:
        _warn_of_reading("NumPy array", "array")
    return storage.adopt(array)


def _warn_of_reading(source, name):
    warn(
        f"The given {source} is not writable, and adjoint does not support non-writable tensors. Operations that "
        f"change the tensor in place will fail. You may want to copy the {name} to protect its data or make it "
        "writable before converting it to a tensor."
    )


@public()
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A one-dimensional tensor that shares the memory of an object with a buffer (`bytearray`, `array.array`, `mmap`).

    The tensor has `count` elements (-1: all), starting at byte `offset`.

    Raises:
        ValueError: if the buffer is too small, or `buffer` is not a buffer.
    """
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size = checked_dtype(dtype, "frombuffer").itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
                f"size ({size})"
            )
        count = (length - offset) // size
    elif offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    array = numpy.frombuffer(buffer, numpy.uint8, count * size, offset)
    if not array.flags.writeable:
        _warn_of_reading("buffer", "buffer")
    return leaf(storage.adopt(array.view(checked_dtype(dtype, "frombuffer").numpy)), requires_grad, cpu)


@public()
def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """A tensor of the first `size` elements of a file, mapped into memory.

    With `shared`, changes are written to the file. The file is created or extended if necessary.

    Raises:
        RuntimeError: if the file cannot be opened, or is too short.

    >>> import adjoint as torch, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     torch.from_file(file.name, shared=True, size=3).fill_(2).sum().item()
    6.0
    """
    if not isinstance(filename, PathLike):
        require("Str", filename, "from_file", "filename", 1)
    kind = (checked_dtype(dtype, "from_file") or dtypes.get_default_dtype()).numpy
    content = storages.mapped_bytes(filename, bool(shared), size * kind.itemsize)
    return leaf(content.view(kind), requires_grad, device, pin_memory, layout)


@public()
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor that shares the memory of a DLPack capsule, or of an object with a `__dlpack__` method, such as an array.

    >>> import adjoint as torch
    >>> torch.from_dlpack(torch.ones(2, dtype=torch.bfloat16))
    tensor([1., 1.], dtype=torch.bfloat16)
    """
    if type(ext_tensor).__name__ == "PyCapsule" and '"dltensor' in repr(ext_tensor):  # unread
        array = storage.array_in(ext_tensor)
        return leaf(array.copy() if copy else storage.adopt(array), False, device)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    if isinstance(ext_tensor, Tensor) and ext_tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if isinstance(ext_tensor, Tensor) and ext_tensor.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    array = tensor_array(ext_tensor) if isinstance(ext_tensor, Tensor) else storage.shared_array(ext_tensor)
    return leaf(array.copy() if copy else storage.adopt(array), False, device)


# --- filled with a number -------------------------------------------------------------------------------------


def _filled(name, make, doc):
    def create(
        *sizes, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
    ):
        try:
            kind = None if dtype is None and out is None else result_dtype(name, dtype, out)
            kind = kind or dtypes.get_default_dtype()
            shape = shape_of(sizes, size, name)
            try:
                return made(name, shape, kind, make, out, requires_grad, device, pin_memory, layout)
            except (ValueError, MemoryError) as error:
                raise in_words_of_pytorch(error) or error from None
        except Exception as error:
            shorten(error)
            raise

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return public(retried=False)(create)


zeros = _filled(
    "zeros",
    numpy.zeros,
    """A tensor of zeros; the size is given number by number or as a sequence.

    >>> import adjoint as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """,
)


ones = _filled("ones", copying.array_of, "A tensor of ones; the size is given number by number or as a sequence.")


@public()
def empty(
    *sizes,
    size=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    memory_format=None,
):
    """An uninitialized tensor of the given size."""
    shape = shape_of(sizes, size, "empty")
    kind = result_dtype("empty", dtype, out) or dtypes.get_default_dtype()
    if out is not None:
        if out._array.shape != shape:
            write_out("empty", numpy.empty(shape, kind.numpy), out)
        return out.requires_grad_() if requires_grad else out
    make = allocator(device, copying.ordered_empty)
    array = copying.uninitialized(make(shape, kind.numpy, copying.order_of(memory_format, len(shape))))
    if layout is not None and layout is not strided:
        array[...] = 0  # sparse layouts store nothing
    return leaf(array, requires_grad, device, pin_memory, layout)


@public()
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """An uninitialized tensor whose dimensions have the order `physical_layout` in memory, the slowest dimension first."""
    size, order = checked_shape(size, "empty_permuted"), tuple(physical_layout)
    if len(size) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for position, dim in enumerate(order):
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim} at index "
                f"{position}).  NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(order)) < len(order):
        raise RuntimeError("Duplicate dim not allowed")
    kind = checked_dtype(dtype, "empty_permuted") or dtypes.get_default_dtype()
    array = allocator(device, copying.ordered_empty)(size, kind.numpy, order)
    return leaf(copying.uninitialized(array), requires_grad, device, pin_memory, layout)


@public()
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """An uninitialized tensor of the given size and strides. Strides are counted in elements."""
    size = checked_shape(size, "empty_strided")
    if not is_of_type(stride, "Ints") or not all(map(fits, stride)):
        raise wrong_type("empty_strided", "stride", " (position 2)", "Ints", stride)
    stride = tuple(map(whole, stride))
    kind = checked_dtype(dtype, "empty_strided") or dtypes.get_default_dtype()
    if on_meta(device):
        return leaf(storage.without_elements(size, kind.numpy, stride).view(Meta), requires_grad, device)
    array = copying.strided_empty(size, stride, kind.numpy)
    return leaf(copying.uninitialized(array), requires_grad, device, pin_memory, layout)


def fill_number(value, function, position):
    """Return `value`, a number or a zero-dimensional tensor, as a Python number."""
    require("Number", value, function, "fill_value", position)
    return value.item() if isinstance(value, Tensor) else value


@public()
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor of the given size filled with `fill_value`. The type of `fill_value` determines the default dtype.

    >>> import adjoint as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    kind = result_dtype("full", dtype, out)
    shape = checked_shape(size, "full")
    if kind is None and isinstance(fill_value, Tensor) and fill_value._array.ndim == 0:
        kind = fill_value.dtype
    number = fill_value if type(fill_value) in (float, int) else fill_number(fill_value, "full", 2)
    kind = kind or dtypes.scalar_dtype(number)
    make = partial(copying.array_of, value=number)
    return made("full", shape, kind, make, out, requires_grad, device, pin_memory, layout)


@public()
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A zero-dimensional tensor of the default dtype, unless another dtype is given."""
    kind = checked_dtype(dtype, "scalar_tensor") or dtypes.get_default_dtype()
    return leaf(scalar_array(s, kind), requires_grad, device, pin_memory)

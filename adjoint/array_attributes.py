"""The attributes of tensors that depend only on their arrays and not on the graph: shape, strides, dtype, device."""

from __future__ import annotations

from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar

import numpy

from . import dtypes
from ._runtime.tracebacks import ending_at_caller, shorten
from .device import LAYOUTS, Size, cpu, device, layout, memory_format, meta, sparse_coo, strided
from .kernels.memory import storage as storages
from .kernels.runtime.lazy_conj import CONJ, NEG, lazy_bits_of
from .kernels.runtime.meta_array import Meta, check_copy
from .kernels.runtime.shapes import require_dims
from .kernels.runtime.sparse_array import SparseArray

new_size = tuple.__new__
_Kind = TypeVar("_Kind")


def wrap_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front. A zero-dimensional tensor is treated as one-dimensional."""
    limit = ndim or 1
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim + limit if dim < 0 else dim


def takes_data(tensor: Any, value: Any) -> bool:
    """Return whether `tensor.data = value` is possible: devices are equal, and both are dense, COO, or compressed."""
    layouts = {tensor.layout, value.layout}
    return bool(tensor.device == value.device and (len(layouts) == 1 or layouts.isdisjoint((strided, sparse_coo))))


def require_data(tensor: Any, value: Any, tensor_class: Any) -> None:
    """Raise an error unless `tensor.data = value` is possible."""
    if not isinstance(value, tensor_class):
        from ._runtime.type_names import type_name

        raise TypeError(f"Variable data has to be a tensor, but got {type_name(type(value))}")
    if not takes_data(tensor, value):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    if tensor.requires_grad and not (value.is_floating_point() or value.is_complex()):
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")


def _always_false() -> property:
    """An attribute that is always False because it concerns another device or layout."""
    return property(
        lambda self: False,
        doc="Whether the tensor is on a device, or in a layout, that the library does not have: False.",
    )


def methods_of_tensor(kind: type[_Kind]) -> type[_Kind]:
    """Make the functions of `kind`, a base class of `Tensor`, appear as methods of `Tensor` in errors and pickles."""
    for function in vars(kind).values():
        while type(function) is FunctionType:
            function.__module__, function.__qualname__ = "adjoint", f"Tensor.{function.__name__}"
            function = getattr(function, "__wrapped__", None)
    return kind


@methods_of_tensor
class ArrayAttributes:
    """The attributes and methods of tensors that depend only on their arrays."""

    __slots__ = ()
    _array: numpy.ndarray[Any, Any]
    _move_to_shared_memory: ClassVar[Any]

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.from_numpy(self._array.dtype)

    @property
    def device(self) -> device:
        """The device of the elements. A tensor on `meta` has no elements."""
        return meta if type(self._array) is Meta else cpu

    @property
    def layout(self) -> layout:
        """The layout of the elements: `strided` or a sparse layout."""
        array = self._array
        return LAYOUTS[array.parts.layout] if type(array) is SparseArray else strided

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return new_size(Size, self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def is_cpu(self) -> bool:
        """Whether the elements are in CPU memory. This is true except on `meta`."""
        return type(self._array) is not Meta

    @property
    def is_meta(self) -> bool:
        """Whether the tensor has only shape, strides and dtype, but no elements."""
        return type(self._array) is Meta

    is_cuda, is_xpu, is_mps, is_xla, is_hpu, is_ipu, is_maia, is_mtia = (_always_false() for _ in range(8))
    is_vulkan, is_mkldnn, is_quantized, is_nested = (_always_false() for _ in range(4))

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is `sparse_coo`."""
        array = self._array
        return type(array) is SparseArray and bool(array.parts.layout == "sparse_coo")

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is `sparse_csr`."""
        array = self._array
        return type(array) is SparseArray and bool(array.parts.layout == "sparse_csr")

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements.

        Raises:
            RuntimeError: if the layout is `sparse_coo`.
        """
        if self.is_sparse:
            raise RuntimeError(
                "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of "
                "the indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() by "
                "element_size()"
            )
        return self._array.nbytes

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of dimension `dim`."""
        try:
            if dim is None:
                return new_size(Size, self._array.shape)
            if not self._array.ndim:
                require_dims(self._array, dim)
            return self._array.shape[wrap_dim(dim, self._array.ndim)]
        except Exception as error:
            if type(error) is TypeError:
                error.args = (f"size(): argument 'dim' (position 1) must be int, not {type(dim).__name__}",)
            shorten(error)
            raise

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    nelement = numel

    def element_size(self) -> int:
        """The number of bytes of one element."""
        return self._array.itemsize

    @ending_at_caller
    def stride(self, dim: int | None = None) -> Any:
        """The distance, in elements, between neighbouring elements along each dimension, or along `dim`."""
        array = self._array
        if type(array) is SparseArray and array.parts.layout != "sparse_coo":
            raise RuntimeError(f"Sparse {array.words.removeprefix('Sparse').upper()} tensors do not have strides")
        if dim is not None and not hasattr(dim, "__index__"):
            raise TypeError(f"stride(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
        steps = storages.element_strides(array)
        if dim is not None and not array.ndim:
            require_dims(array, dim)
        return steps if dim is None else steps[wrap_dim(dim, array.ndim)]

    def storage_offset(self) -> int:
        """The position, in elements, of the first element in the storage."""
        return storages.storage_offset(self._array)

    def data_ptr(self) -> int:
        """The address of the first element."""
        array = self._array
        if type(array) is SparseArray:
            raise SparseArray.error(SparseArray.refusal)
        return int(array.ctypes.data) if array.size and type(array) is not Meta else 0

    @ending_at_caller
    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        """Whether the memory of the elements has row-major order (or the order of `memory_format`)."""
        array = self._array
        if type(array) is SparseArray:
            if array.parts.layout != "sparse_coo":
                raise RuntimeError(
                    f"Sparse {array.words.removeprefix('Sparse').upper()} tensors do not have is_contiguous"
                )
            return False
        return storages.is_contiguous(array, memory_format)

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating-point type."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype includes negative numbers."""
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        """Whether conjugation is lazy. The memory then contains the conjugates of the values."""
        return bool(lazy_bits_of(self._array) & CONJ)

    def is_neg(self) -> bool:
        """Whether negation is lazy, for example of the imaginary part of a lazy conjugate."""
        return bool(lazy_bits_of(self._array) & NEG)

    def is_shared(self) -> bool:
        """Whether the memory is shared between processes."""
        return storages.is_shared(self._array)

    def share_memory_(self) -> Self:
        """Move the memory into shared memory, unless it is already shared.

        Views and other tensors that share this memory also move.

        NumPy arrays that were obtained from the tensor stay on the old memory.
        """
        storages.root_of(self._array)  # refuses sparse tensors
        self._move_to_shared_memory()
        return self

    def is_pinned(self) -> bool:
        """Return False, because page-locked memory does not exist without a GPU."""
        return False

    def get_device(self) -> int:
        """The device index. It is -1 on the CPU."""
        return -1

    def cpu(self, *, memory_format: Any = None) -> Self:
        """The tensor itself, or a copy in another `memory_format`, because it is on the CPU.

        On `meta` it raises an error, because the tensor has no elements to copy.
        """
        check_copy(self._array)
        tensor: Any = self
        return tensor if memory_format is None else tensor.to(memory_format=memory_format)

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """The dimensions in the order of their strides, the largest stride first.

        Args:
            ambiguity_check: whether to raise an error if more than one order is possible. It may also be a list of
            memory formats. One of these formats must match.

        Raises:
            RuntimeError: if the order is ambiguous.
            TypeError: if `ambiguity_check` is neither a bool nor a list of memory formats.
        """
        if type(self._array) is SparseArray:
            raise AttributeError(
                f"Can't get dim order on sparse type: torch.sparse.{self.dtype.scalar_type}Tensor Use Tensor.to_dense() to "
                "convert to a dense tensor first."
            )
        steps = storages.element_strides(self._array)
        if ambiguity_check is not False:
            formats = ambiguity_check if isinstance(ambiguity_check, list) else []
            if ambiguity_check is not True and not all(isinstance(each, memory_format) for each in formats or [None]):
                raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
            if 0 in steps:
                raise RuntimeError("The tensor does not have unique dim order.")
            if 1 in self._array.shape and sum(self.is_contiguous(memory_format=each) for each in formats) != 1:
                raise RuntimeError(
                    "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
                )
        return tuple(sorted(range(self._array.ndim), key=lambda dim: (-steps[dim], dim)))

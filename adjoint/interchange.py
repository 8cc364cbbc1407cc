"""Tensors as numbers of Python, arrays of NumPy, storages, and as what the DLPack protocol passes to other libraries."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from .array_attributes import ArrayAttributes, methods_of_tensor
from .kernels.memory import storage as storages
from .kernels.runtime.lazy_conj import LazyConjNeg, materialize
from .kernels.runtime.meta_array import check_item, check_numpy
from .late_bound import LATE


class DLDeviceType(enum.IntEnum):
    """The kinds of devices that the DLPack protocol knows and tensors may be on."""

    kDLCPU = 1


@methods_of_tensor
class Interchange(ArrayAttributes):
    """The methods of tensors that give their elements to others."""

    __slots__ = ()
    if TYPE_CHECKING:  # what `Tensor` defines

        @property
        def requires_grad(self) -> bool:
            """Whether operations on this tensor are recorded."""

        def _put_array(self, seen: ndarray[Any, Any], array: ndarray[Any, Any]) -> None: ...

    def item(self) -> Any:
        """The only element, as a Python number."""
        array = self._array
        if array.size != 1:
            raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
        if type(array) is not ndarray:
            check_item(array)
        number = array.item()
        return number if type(number) in storages.PYTHON_NUMBERS else storages.to_python(array.reshape(()))

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for a zero-dimensional tensor."""
        return storages.to_python(self._array)

    def numpy(self, *, force: bool = False) -> ndarray[Any, Any]:
        """The array itself, sharing memory. Of a tensor that requires grad only with `force` or under `no_grad`."""
        if self.requires_grad and not force and LATE.is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        array = self._array
        check_numpy(array)
        if isinstance(array, LazyConjNeg) and not force:
            what, name = ("conjugate", "conj") if self.is_conj() else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {what} bit set. Use tensor.resolve_{name}().numpy() instead."
            )
        return materialize(array)

    def untyped_storage(self) -> storages.UntypedStorage:
        """The bytes this tensor is a window on, shared with its views."""
        array = self._array
        return storages.UntypedStorage(storages.root_of(array), array, self._put_array)

    def storage(self) -> storages.TypedStorage:
        """The storage seen as elements of this tensor's dtype."""
        array = self._array
        return storages.TypedStorage(storages.root_of(array), array.dtype, array, self._put_array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self.is_conj():
            raise BufferError("Can't export tensors with the conjugate bit set")
        return materialize(self._array).__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[enum.IntEnum, int]:
        kind, number = self._array.__dlpack_device__()
        return DLDeviceType(kind), number

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    def __bool__(self) -> bool:
        array = self._array
        if array.size != 1:
            if array.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        check_item(array)
        return bool(array.reshape(()))

    def __int__(self) -> int:
        return int(self._only_number("int64_t"))

    def __float__(self) -> float:
        return float(self._only_number("double"))

    def __complex__(self) -> complex:
        return complex(self._only_number(None))

    def _only_number(self, real: str | None) -> Any:
        """The only element; for a `real` C++ type, one without an imaginary part."""
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        number = self.item()
        if real is not None and type(number) is complex:
            if number.imag != 0:
                raise RuntimeError(f"value cannot be converted to type {real} without overflow")
            return number.real
        return number

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

"""Conversion of tensors to Python numbers, NumPy arrays and storages, and to other libraries by the DLPack protocol."""

from __future__ import annotations

import enum
import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from numpy import ndarray

from . import dtypes
from ._runtime.first_use import import_late
from ._runtime.tracebacks import ending_at_caller, shorten, warn
from .array_attributes import ArrayAttributes, methods_of_tensor
from .kernels.memory import storage as storages
from .kernels.memory.storage import PYTHON_NUMBERS
from .kernels.memory.storages import UntypedStorage
from .kernels.runtime.lazy_conj import LazyConjNeg, materialize
from .kernels.runtime.meta_array import Unread, check_item, check_numpy
from .kernels.runtime.narrow_array import plain
from .kernels.runtime.sparse_array import SparseArray

if TYPE_CHECKING:
    from .kernels.memory.legacy_storages import TypedStorage


class DLDeviceType(enum.IntEnum):
    """The device types of the DLPack protocol. Tensors are on `kDLCPU`.

    >>> import adjoint as torch
    >>> torch.zeros(2).__dlpack_device__()[0].name
    'kDLCPU'
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


@functools.cache
def _warn_of_lost_history() -> None:
    warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first."
    )


@methods_of_tensor
class Interchange(ArrayAttributes):
    """The methods of tensors that export their elements."""

    __slots__ = ()
    _array_namespace: ClassVar[Any]
    if TYPE_CHECKING:  # defined by `Tensor`

        @property
        def requires_grad(self) -> bool:
            """Whether operations on this tensor are recorded."""

        def _put_array(self, seen: ndarray[Any, Any], array: ndarray[Any, Any]) -> None: ...

    def __hash__(self) -> int:
        return id(self)

    def item(self) -> int | float:
        """The only element, as a Python number."""
        try:
            array = self._array
            if array.size != 1:
                raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
            if type(array) is not ndarray:
                check_item(array)
            number = array.item()
            return number if type(number) in PYTHON_NUMBERS else storages.to_python(array.reshape(()))
        except Exception as error:
            shorten(error)
            raise

    @ending_at_caller
    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers, or as a number for a zero-dimensional tensor."""
        return storages.to_python(self._array)

    @ending_at_caller
    def numpy(self, *, force: bool = False) -> ndarray[Any, Any]:
        """The array itself.

        It shares memory with the tensor. For a tensor that requires grad, this requires `force` or `no_grad`.
        """
        if type(force) is not bool:
            raise TypeError(f"numpy(): argument 'force' must be bool, not {type(force).__name__}")
        if self.requires_grad and not force:
            from .tape.modes import is_grad_enabled

            if is_grad_enabled():
                raise RuntimeError(
                    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
                )
        array = self._array
        check_numpy(array)
        if type(array) is SparseArray:
            raise TypeError(f"can't convert {array.words} layout tensor to numpy. Use Tensor.to_dense() first.")
        if isinstance(array, LazyConjNeg) and not force:
            what, name = ("conjugate", "conj") if self.is_conj() else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {what} bit set. Use tensor.resolve_{name}().numpy() instead."
            )
        return plain(materialize(array))

    @ending_at_caller
    def untyped_storage(self) -> UntypedStorage:
        """The storage of this tensor as bytes, shared with its views."""
        array = self._array
        return UntypedStorage.over(storages.root_of(array), array, self._put_array)

    @ending_at_caller
    def storage(self) -> TypedStorage:
        """The storage of this tensor as elements of its dtype."""
        import_late("adjoint.kernels.memory.legacy_storages").warn_of_removal()
        return self._typed_storage()

    def _typed_storage(self) -> TypedStorage:
        """Return the result of `storage` without its warning."""
        array = self._array
        typed: type[TypedStorage] = import_late("adjoint.kernels.memory.legacy_storages").TypedStorage
        return typed.of(storages.root_of(array), array.dtype, array, self._put_array)

    @ending_at_caller
    def storage_type(self) -> Any:
        """Return the storage class of this tensor's dtype, such as `torch.FloatStorage`, or None if there is none."""
        kind = dtypes.from_numpy(self._array.dtype)
        names = import_late("adjoint.kernels.memory.legacy_storages")
        return None if self.is_meta else getattr(names, f"{kind.scalar_type}Storage", None)

    @ending_at_caller
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    @ending_at_caller
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self.is_conj():
            raise BufferError("Can't export tensors with the conjugate bit set")
        if isinstance(self._array, SparseArray):
            raise BufferError("Can't export tensors with layout other than torch.strided")
        if self.is_meta:
            raise BufferError("Cannot pack tensors on meta")
        if stream is not None:
            if not isinstance(stream, int):
                raise TypeError("stream must be ``int`` or ``none``")
            if stream != -1:  # -1 requests no synchronization
                raise AssertionError("stream should be None on cpu.")
        return storages.capsule_of(materialize(self._array), max_version=max_version, dl_device=dl_device, copy=copy)

    @property
    def __cuda_array_interface__(self) -> Any:
        kind = dtypes.from_numpy(self._array.dtype).scalar_type
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: torch.{kind}Tensor If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )

    @ending_at_caller
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        return self._array_namespace(api_version)

    def __dlpack_device__(self) -> tuple[enum.IntEnum, int]:
        if self.is_meta:
            raise ValueError("Unknown device type meta for Dlpack")
        kind, number = self._array.__dlpack_device__()
        return DLDeviceType(kind), number

    @ending_at_caller
    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    @ending_at_caller
    def __bool__(self) -> bool:
        array = self._array
        if array.size != 1:
            if array.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        check_item(array)
        return bool(array.reshape(()))

    @ending_at_caller
    def __int__(self) -> int:
        return int(self._only_number("int64_t"))

    @ending_at_caller
    def __float__(self) -> float:
        if self.requires_grad:
            _warn_of_lost_history()
        return float(self._only_number("double"))

    @ending_at_caller
    def __complex__(self) -> complex:
        if self.requires_grad:
            _warn_of_lost_history()
        return complex(self._only_number(None))

    def _only_number(self, real: str | None) -> Any:
        """Return the only element. `real` is the name of a C++ type that accepts no imaginary part."""
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        number: Any = self.item()
        if real is not None and type(number) is complex:
            if number.imag != 0:
                raise RuntimeError(f"value cannot be converted to type {real} without overflow")
            return number.real
        return number

    @ending_at_caller
    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())


def tensor_array(value: Any) -> Any:
    """Return the array of a tensor, or any other value unchanged."""
    return elements_of(value) if isinstance(value, Interchange) else value


def elements_of(tensor: Interchange) -> Any:
    """Return the elements of a tensor as an array without lazy bits."""
    return tensor.numpy() if type(tensor._array) is Unread else materialize(tensor._array)

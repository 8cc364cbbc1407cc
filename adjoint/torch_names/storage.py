"""`torch.storage`: the memory of tensors. This file contains names, and the switches of the warning of typed storages."""

from typing import Any

from adjoint.dispatch.decorators import PUBLIC
from adjoint.kernels.memory.legacy_storages import (
    _REMOVAL,
    BFloat16Storage,
    BoolStorage,
    ByteStorage,
    CharStorage,
    ComplexDoubleStorage,
    ComplexFloatStorage,
    DoubleStorage,
    FloatStorage,
    HalfStorage,
    IntStorage,
    LongStorage,
    ShortStorage,
    TypedStorage,
)
from adjoint.kernels.memory.legacy_storages import LegacyStorage as _LegacyStorage
from adjoint.kernels.memory.legacy_storages import warn_of_removal as _warn_typed_storage_removal
from adjoint.kernels.memory.storages import UntypedStorage
from adjoint.operators.create.legacy import BY_NAME, ON_CUDA, tensortype

__all__ = [
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
    "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage", "TypedStorage",
    "UntypedStorage", "_LegacyStorage", "_storage_classes", "_tensor_classes", "_warn_typed_storage_removal",
]  # fmt: skip


_tensor_classes = {
    *BY_NAME.values(),
    *ON_CUDA.values(),
    *(each for each in PUBLIC["sparse"].values() if isinstance(each, tensortype)),
}
_storage_classes = {UntypedStorage, TypedStorage, *_LegacyStorage.__subclasses__()}


def _dtype_to_storage_type_map() -> dict[Any, str]:
    """Return the names of the classes of typed storages, by dtype."""
    return {kind._dtype: kind.__name__ for kind in _LegacyStorage.__subclasses__()}


def _storage_type_to_dtype_map() -> dict[str, Any]:
    """Return the dtypes of typed storages, by the names of their classes."""
    return {name: dtype for dtype, name in _dtype_to_storage_type_map().items()}


def _reset_warn_typed_storage_removal() -> None:
    """Let the next use of a typed storage warn again."""
    _REMOVAL["warned"] = False


def _get_always_warn_typed_storage_removal() -> bool:
    """Return whether each use of a typed storage warns."""
    return _REMOVAL["always"]


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    """Choose whether each use of a typed storage warns, or only the first use."""
    _REMOVAL["always"] = bool(always_warn)

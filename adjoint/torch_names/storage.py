"""`torch.storage`: the memory of tensors. This file contains names only."""

from adjoint.kernels.memory.legacy_storages import (
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
)
from adjoint.kernels.memory.legacy_storages import LegacyStorage as _LegacyStorage
from adjoint.kernels.memory.storages import TypedStorage, UntypedStorage

__all__ = [
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
    "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage", "TypedStorage",
    "UntypedStorage", "_LegacyStorage",
]  # fmt: skip

"""`torch.storage`: the memory behind tensors; names, no logic."""

from .kernels.memory.legacy_storages import (
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
from .kernels.memory.legacy_storages import LegacyStorage as _LegacyStorage
from .kernels.memory.storages import TypedStorage, UntypedStorage

__all__ = [
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
    "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage", "TypedStorage",
    "UntypedStorage", "_LegacyStorage",
]  # fmt: skip

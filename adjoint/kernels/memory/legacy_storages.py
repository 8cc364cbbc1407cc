"""`torch.FloatStorage` and similar names: classes that create and recognize a `TypedStorage` of one dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ..._runtime.tracebacks import ending_at_caller
from .storages import TypedStorage, UntypedStorage


class _LegacyKind(type):
    """The metaclass of these classes. The instances of a class are the typed storages of its dtype."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and (cls is LegacyStorage or instance.dtype is cls.dtype)


class LegacyStorage(metaclass=_LegacyKind):
    """The base of `torch.FloatStorage` and the other typed storages.

    >>> import adjoint as torch
    >>> torch.FloatStorage([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """

    @ending_at_caller
    def __new__(cls, *args: Any, wrap_storage: UntypedStorage | None = None, **options: Any) -> Any:
        """Create a storage of a given size, a storage of given values, or a storage on an untyped storage."""
        if cls is LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for name in options:
            raise RuntimeError(cls._refusal(f"Keyword argument '{name}' cannot be specified"))
        if len(args) > 1:
            raise RuntimeError(cls._refusal("Too many positional arguments"))
        if wrap_storage is not None and args:
            raise RuntimeError(cls._refusal("No positional arguments should be given when using 'wrap_storage'"))
        if wrap_storage is not None and type(wrap_storage) is not UntypedStorage:
            raise TypeError(
                cls._refusal(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
            )
        if args and not isinstance(args[0], (int, Sequence)):
            raise TypeError(cls._refusal(f"Argument type not recognized: {type(args[0])}"))
        return TypedStorage(*args, dtype=cls.dtype, wrap_storage=wrap_storage)

    @classmethod
    def _refusal(cls, reason: str) -> str:
        return (
            f"<class 'torch.{cls.__name__}'>.__new__ received an invalid combination of arguments. Expected one of:\n"
            f" * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n{reason}"
        )

    @classmethod
    def from_buffer(cls, *args: Any, **options: Any) -> TypedStorage:
        """Return a copy of the elements of a buffer; see `UntypedStorage.from_buffer`."""
        untyped = UntypedStorage.from_buffer(*args, **{**options, "dtype": cls.dtype})
        return TypedStorage(dtype=cls.dtype, wrap_storage=untyped)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the first `size` elements of a file, mapped into memory; see `UntypedStorage.from_file`."""
        untyped = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(dtype=cls.dtype, wrap_storage=untyped)


def _of(kind: dtypes.dtype) -> Any:
    name = f"{kind.scalar_type}Storage"
    return _LegacyKind(
        name, (LegacyStorage,), {"dtype": kind, "__module__": "adjoint", "__doc__": f"Storages of {kind}."}
    )


BoolStorage = _of(dtypes.bool)
ByteStorage = _of(dtypes.uint8)
CharStorage = _of(dtypes.int8)
ShortStorage = _of(dtypes.int16)
IntStorage = _of(dtypes.int32)
LongStorage = _of(dtypes.int64)
HalfStorage = _of(dtypes.float16)
BFloat16Storage = _of(dtypes.bfloat16)
FloatStorage = _of(dtypes.float32)
DoubleStorage = _of(dtypes.float64)
ComplexFloatStorage = _of(dtypes.complex64)
ComplexDoubleStorage = _of(dtypes.complex128)

"""`TypedStorage`, and `torch.FloatStorage` and similar names: classes that create and recognize one of one dtype."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import wraps
from typing import Any

from ... import dtypes
from ..._runtime.tracebacks import end_methods_at_caller, ending_at_caller, is_ours, warn
from ...dtypes import from_numpy, get_default_dtype
from ..runtime.floating import Array
from .storages import Replace, StorageBase, UntypedStorage, _new_memory

_WRAPPERS = end_methods_at_caller.__code__.co_filename
_REMOVAL = {"warned": False, "always": False}
"""Whether the warning has been given, and whether each use gives it."""


def warn_of_removal() -> None:
    """Warn that typed storages are deprecated, once in a process. Calls by this package do not warn."""
    frame = sys._getframe(1).f_back
    while frame is not None and frame.f_code.co_filename == _WRAPPERS:
        frame = frame.f_back
    if frame is None or is_ours(frame.f_globals) or (_REMOVAL["warned"] and not _REMOVAL["always"]):
        return
    _REMOVAL["warned"] = True
    warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
        "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()"
    )


def _warning(method: Any) -> Any:
    """Return `method` after the warning of `warn_of_removal`."""

    @wraps(method)
    def warned(*args: Any, **options: Any) -> Any:
        warn_of_removal()
        return method(*args, **options)

    return warned


class TypedStorage(UntypedStorage):
    """A storage viewed as elements of one dtype.

    Args:
        size: the number of elements, or a sequence of their values.
        dtype: the dtype, or None for the default dtype.
        wrap_storage: the storage to view in this way, instead of a new storage.
        device: `"cpu"` or `"meta"`.
    """

    def __init__(
        self, *size: Any, dtype: Any = None, wrap_storage: UntypedStorage | None = None, device: Any = None,
        _internal: bool = False,
    ) -> None:  # fmt: skip
        if not _internal:
            warn_of_removal()
        refused = None
        if wrap_storage is not None and not size and dtype is None:
            refused = "Argument 'dtype' must be specified"
        elif wrap_storage is not None and not size and device is not None:
            refused = "Argument 'device' should not be specified when 'wrap_storage' is given"
        dtype = get_default_dtype() if dtype is None else dtype
        _check_arguments("TypedStorage.__init__", _FORMS_OF_TYPED, size, wrap_storage, refused, dtype)
        self.element_kind = dtype.numpy
        if wrap_storage is None:
            self._take(_new_memory("torch.TypedStorage", size[0] if size else 0, self.element_kind), device)
        else:
            self._root, self._seen, self._replace = wrap_storage._root, wrap_storage._seen, wrap_storage._replace

    @classmethod
    def of(cls, root: Array, kind: Any, seen: Array | None = None, replace: Replace | None = None) -> TypedStorage:
        """Return the result of `over`, as a storage of elements of `kind`."""
        storage = cls.over(root, seen, replace)
        storage.element_kind = kind
        return storage

    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements; see `UntypedStorage.resize_`."""
        super().resize_(size if type(size) is not int else size * self.element_size())
        return self

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.element_size()

    def check_kind(self, kind: Any, name: str) -> None:
        """Raise RuntimeError if the elements have another type than `kind`, which is called `name`."""
        if self.element_kind != kind:
            raise RuntimeError(
                f"Expected a Storage of type {name} or an UntypedStorage, but got type "
                f"{from_numpy(self.element_kind).scalar_type} for argument 1 'storage'"
            )

    def untyped(self) -> UntypedStorage:
        """Return the same storage as bytes."""
        return UntypedStorage.over(self._root, self._seen, self._replace)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return from_numpy(self.element_kind)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    def pickle_storage_type(self) -> str:
        """Return the name of storages of this dtype in files, such as "FloatStorage"."""
        return f"{self.dtype.scalar_type}Storage"

    def type(self) -> str:
        """Return the name of the type, such as "torch.FloatStorage"."""
        name = self.pickle_storage_type()
        return f"torch.{name if name in globals() else 'storage.TypedStorage'}"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return super().__getitem__(index)

    def _set(self, place: slice, value: Any, refusal: str) -> None:
        if isinstance(value, StorageBase):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self.elements(self.element_kind)[place] = value

    def _described(self) -> str:
        return f"TypedStorage(dtype={self.dtype}, "

    def _get_legacy_storage_class(self) -> Any:
        return globals().get(self.pickle_storage_type())


TypedStorage._deepcopy = TypedStorage.__deepcopy__  # type: ignore[attr-defined]
for _name in (
    "__getitem__ __setitem__ __len__ bool byte char short int long half bfloat16 float double complex_float complex_double "
    "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz clone copy_ cpu data_ptr element_size fill_ is_pinned is_shared "
    "nbytes pickle_storage_type pin_memory resizable resize_ share_memory_ size to tolist type untyped"
).split():
    setattr(TypedStorage, f"_{_name.removeprefix('__').removesuffix('__')}", getattr(TypedStorage, _name))
    setattr(TypedStorage, _name, _warning(getattr(TypedStorage, _name)))
TypedStorage.is_cuda = property(_warning(lambda self: False))  # type: ignore[assignment]


_FORMS_OF_TYPED = """
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
"""
_FORMS_OF_LEGACY = "\n * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n"


def _check_arguments(call: str, forms: str, size: Any, wrapped: Any, refused: str | None, dtype: Any) -> None:
    """Raise an error unless the arguments create a typed storage. `refused`: what is wrong with the other arguments."""
    error: type[Exception] = RuntimeError
    if refused is None and wrapped is not None and size:
        refused = "No positional arguments should be given when using 'wrap_storage'"
    elif refused is None and len(size) > 1:
        refused = "Too many positional arguments"
    elif refused is None:
        error = TypeError
        if not isinstance(dtype, dtypes.dtype):
            refused = f"Argument 'dtype' must be torch.dtype, not {type(dtype)}"
        elif wrapped is not None and type(wrapped) is not UntypedStorage:
            refused = f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrapped)}"
        elif size and not isinstance(size[0], (int, Sequence)):
            refused = f"Argument type not recognized: {type(size[0])}"
    if refused is not None:
        raise error(f"{call} received an invalid combination of arguments. Expected one of:{forms}{refused}")
    if size and isinstance(size[0], str):
        raise TypeError("new(): invalid data type 'str'")


class _LegacyKind(type):
    """The metaclass of these classes. The instances of a class are the typed storages of its dtype."""

    _dtype: dtypes.dtype

    @property
    def dtype(cls) -> dtypes.dtype:
        """The dtype of the elements."""
        warn_of_removal()
        return cls._dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and (cls is LegacyStorage or instance.dtype is cls._dtype)


class LegacyStorage(metaclass=_LegacyKind):
    """The base of `torch.FloatStorage` and the other typed storages.

    >>> import adjoint as torch
    >>> torch.FloatStorage([1.0, 2.0]).tolist()
    [1.0, 2.0]
    """

    is_cuda = is_hpu = is_sparse = False

    @ending_at_caller
    def __new__(cls, *args: Any, wrap_storage: UntypedStorage | None = None, _internal: bool = False, **no: Any) -> Any:
        """Create a storage of a given size, a storage of given values, or a storage on an untyped storage."""
        if cls is LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for name in no:
            if name not in ("device", "dtype"):
                raise TypeError(f"TypedStorage.__new__() got an unexpected keyword argument '{name}'")
        if not _internal:
            warn_of_removal()
        refused = next((f"Keyword argument '{name}' cannot be specified" for name in no), None)
        call = f"<class 'torch.{cls.__name__}'>.__new__"
        _check_arguments(call, _FORMS_OF_LEGACY, args, wrap_storage, refused, cls._dtype)
        return TypedStorage(*args, dtype=cls._dtype, wrap_storage=wrap_storage, _internal=True)

    @classmethod
    def from_buffer(cls, *args: Any, **options: Any) -> TypedStorage:
        """Return a copy of the elements of a buffer; see `UntypedStorage.from_buffer`."""
        untyped = UntypedStorage.from_buffer(*args, **{**options, "dtype": cls._dtype})
        return TypedStorage(dtype=cls._dtype, wrap_storage=untyped, _internal=True)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return the first `size` elements of a file, mapped into memory; see `UntypedStorage.from_file`."""
        untyped = UntypedStorage.from_file(filename, shared, size * cls._dtype.itemsize)
        return TypedStorage(dtype=cls._dtype, wrap_storage=untyped, _internal=True)


def _of(kind: dtypes.dtype) -> Any:
    name = f"{kind.scalar_type}Storage"
    return _LegacyKind(
        name, (LegacyStorage,), {"_dtype": kind, "__module__": "adjoint", "__doc__": f"Storages of {kind}."}
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

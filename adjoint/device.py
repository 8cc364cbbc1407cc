"""The device and memory layout of tensors (`device`, `layout`, `memory_format`), and `Size`, the type of shapes."""

import operator
import re
from collections.abc import Iterable
from math import prod
from typing import Any, NoReturn, SupportsIndex, overload

from ._runtime.tracebacks import ending_at_caller, shorten
from ._runtime.uninterrupted import uninterrupted

_DEVICE_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_DEVICE_STRING = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?", re.ASCII)

_modes: Any = None
"""The module `tape.modes`, after a device has been entered as a context."""


class device:
    """A device: `device('cpu')`, `device('cuda:1')`, `device('cuda', 1)`.

    Every device of PyTorch can be named and compared. Tensors are either on the CPU or on `meta`, where they have a
    shape but no elements. As a context manager, a device becomes the default device of new tensors.

    Raises:
        RuntimeError: if the string does not name a device.
        TypeError: if the arguments have the wrong types.

    >>> import adjoint as torch
    >>> torch.device('cuda:1')
    device(type='cuda', index=1)
    """

    __module__ = "adjoint"
    __slots__ = ("_index", "_type")
    _type: str
    _index: int | None

    @ending_at_caller
    def __new__(cls, type: "str | int | device", index: int | None = None) -> "device":
        """Parse a string, or return the given device."""
        if isinstance(type, device):
            return type
        if isinstance(type, str):
            return _make(*_parse(type, index))
        if type.__class__ is int:
            if type < 0:
                raise RuntimeError("Device index must not be negative")
            raise RuntimeError("Cannot access accelerator device when none is available.")
        name = type.__class__.__name__
        raise TypeError(
            f"device() received an invalid combination of arguments - got ({name}), but expected one of:\n"
            " * (torch.device device)\n"
            f"      didn't match because some of the arguments have invalid types: (!{name}!)\n"
            " * (str type, int index = -1)\n"
        )

    @property
    def type(self) -> str:
        """The type of device, such as `'cpu'` or `'cuda'`."""
        return self._type

    @property
    def index(self) -> int | None:
        """The index among devices of the same type, or None for the current device."""
        return self._index

    def __enter__(self) -> "device":
        global _modes
        from .tape import modes as _modes  # for `__exit__` too, because an interrupt may arrive during an import

        _modes.put({"places": (*_modes.STATE.places, self)})
        return self

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        _modes.put({"places": _modes.STATE.places[:-1]})

    def __setattr__(self, name: str, value: object) -> NoReturn:
        if name in ("type", "index"):
            raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute '{name}'")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return self._type == other._type and self._index == other._index

    def __hash__(self) -> int:
        return hash((self._type, self._index))

    def __str__(self) -> str:
        return self._type if self._index is None else f"{self._type}:{self._index}"

    def __repr__(self) -> str:
        index = "" if self._index is None else f", index={self._index}"
        return f"device(type={self._type!r}{index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self._type,) if self._index is None else (self._type, self._index))


def _make(type: str, index: int | None) -> device:
    new = object.__new__(device)
    object.__setattr__(new, "_type", type)
    object.__setattr__(new, "_index", index)
    return new


def _parse(text: str, index: object) -> tuple[str, int | None]:
    if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _DEVICE_STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, written = match.groups()
    if kind not in _DEVICE_TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_DEVICE_TYPES)} device type at start of device string: {text}")
    if written is not None:
        if index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {text}")
        if int(written) >= 2**31:
            raise RuntimeError(f"Could not parse device index '{written}' in device string '{text}'")
        return kind, int(written)
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    return kind, index


cpu: device = _make("cpu", None)
meta: device = _make("meta", None)


class _Constant:
    """A named constant. Pickles store the name, so that loading returns the same object."""

    __slots__ = ("_name",)
    _name: str

    def __new__(cls) -> "_Constant":
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    @classmethod
    def _named(cls, name: str) -> Any:
        new = object.__new__(cls)
        new._name = name
        return new

    def __repr__(self) -> str:
        return "torch." + self._name

    def __reduce__(self) -> str:
        return self._name

    def __copy__(self) -> "_Constant":
        return self

    def __deepcopy__(self, memo: object) -> "_Constant":
        return self


class layout(_Constant):
    """The layout of elements: `strided`, or a sparse layout, which stores only some elements."""

    __slots__ = ()


class memory_format(_Constant):
    """The order of dimensions in memory, as an argument of functions that create or copy tensors."""

    __slots__ = ()


strided: layout = layout._named("strided")
sparse_coo: layout = layout._named("sparse_coo")
sparse_csr: layout = layout._named("sparse_csr")
sparse_csc: layout = layout._named("sparse_csc")
sparse_bsr: layout = layout._named("sparse_bsr")
sparse_bsc: layout = layout._named("sparse_bsc")
jagged: layout = layout._named("jagged")

LAYOUTS = {item._name: item for item in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged)}
"""The layouts by name."""

contiguous_format: memory_format = memory_format._named("contiguous_format")
preserve_format: memory_format = memory_format._named("preserve_format")
channels_last: memory_format = memory_format._named("channels_last")
channels_last_3d: memory_format = memory_format._named("channels_last_3d")


class Size(tuple[int, ...]):
    """The shape of a tensor. It is a tuple of ints that remains a `Size` when it is sliced, concatenated or repeated.

    `tuple.__new__(Size, shape)` creates a shape from a tuple of valid ints without checking it again.

    >>> import adjoint as torch
    >>> torch.Size([2, 3])[1:] + (4,)
    torch.Size([3, 4])
    """

    __module__ = "adjoint"
    __slots__ = ()

    def __new__(cls, *iterable: Iterable[SupportsIndex]) -> "Size":
        """Create a shape from `iterable`. Each length must be a whole number."""
        try:
            items = tuple(*iterable)
            for item in items:
                if type(item) is not int:
                    return tuple.__new__(cls, map(_checked_length, range(len(items)), items))
        except Exception as error:
            shorten(error)
            raise
        return tuple.__new__(cls, items)

    def numel(self) -> int:
        """The number of elements in a tensor of this shape."""
        return prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> "Size": ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> "int | Size":
        try:
            item: Any = tuple.__getitem__(self, index)
        except Exception as error:
            shorten(error)
            raise
        return tuple.__new__(Size, item) if type(item) is tuple else item

    def __add__(self, other: Any, /) -> "Size":
        if not isinstance(other, tuple):
            if hasattr(type(other), "__radd__"):
                return NotImplemented
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...], /) -> "Size":
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(other, self))

    def __mul__(self, count: SupportsIndex, /) -> "Size":
        return tuple.__new__(Size, tuple(self) * count)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


def _checked_length(position: int, item: Any) -> int:
    """Convert a length to int. Integer tensors and NumPy integers are accepted, but floats and strings are not."""
    try:
        return int(operator.index(item))
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{_type_name(item)}')") from None


def _type_name(item: object) -> str:
    kind = type(item)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__

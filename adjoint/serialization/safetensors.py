"""The safetensors format: the length of a header, the header in JSON, and the bytes of all tensors.

https://github.com/huggingface/safetensors#format describes it. No part of a file is trusted. Every range is checked
before a tensor is created from it.
"""

import json
import math
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

import numpy

from .. import dtypes
from ..dtypes import dtype
from ..kernels.memory.storage import row_major_steps
from ..kernels.memory.storages import UntypedStorage
from ..tensor import Tensor
from .files import TRUNCATED, read_into, write_all
from .limits import shown
from .storages import Restore
from .tensors import rebuild_tensor_v3

if TYPE_CHECKING:
    from .._runtime.platform import mmap

__all__ = ["named_tensors", "read_safetensors", "write_safetensors"]

_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
_DTYPES = {
    "BOOL": dtypes.bool, "U8": dtypes.uint8, "I8": dtypes.int8, "U16": dtypes.uint16, "I16": dtypes.int16,
    "U32": dtypes.uint32, "I32": dtypes.int32, "U64": dtypes.uint64, "I64": dtypes.int64, "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E5M2": dtypes.float8_e5m2, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32,
    "F64": dtypes.float64, "C64": dtypes.complex64, "F8_E8M0": dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _DTYPES.items()}


def named_tensors(obj: object, what: str) -> dict[str, Tensor]:
    """Return `obj`, which must be a dict of tensors by name.

    Raises:
        TypeError: if it is another object.
    """
    if not isinstance(obj, Mapping):
        raise TypeError(f"{what} holds a dict of tensors by name, not {type(obj).__name__}; save a `state_dict()`")
    for name, tensor in obj.items():
        if type(name) is not str or not isinstance(tensor, Tensor):
            raise TypeError(
                f"{what} holds a dict of tensors by name, not {type(tensor).__name__} under {shown(name)!r}; save a "
                "`state_dict()`"
            )
    return dict(obj)


def write_safetensors(obj: object, file: IO[bytes]) -> None:
    """Write a dict of tensors.

    Each tensor is written completely and row by row, so tensors that share memory no longer share it.

    Raises:
        TypeError: if `obj` is not a dict of tensors, or if the format lacks the dtype of a tensor.
    """
    tensors = named_tensors(obj, "a safetensors file")
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise TypeError(f"a safetensors file cannot hold {name!r} of {tensor.dtype}")
    # Wide elements first, so that each array starts at a multiple of its elements' size.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {_METADATA: {"format": "pt"}}
    end = 0
    for name, tensor in ordered:
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    write_all(file, _LENGTH.pack(len(text)))
    write_all(file, text)
    for _, tensor in ordered:
        write_all(file, _little(numpy.ascontiguousarray(tensor.detach().resolve_conj().resolve_neg().numpy())))


def _little(array: "numpy.ndarray[Any, Any]") -> Any:
    content = array.reshape(-1).view(numpy.uint8)
    if sys.byteorder == "big":
        content = content.copy()
        content.view(f"u{array.real.itemsize}").byteswap(inplace=True)
    return content


def read_safetensors(file: IO[bytes], restore: Restore, memory: "mmap.mmap | None") -> dict[str, Tensor]:
    """Return the tensors in a file by name.

    Args:
        file: the open file, at its start.
        restore: a function that maps storages to their devices.
        memory: the file mapped into memory. The tensors then share this memory.

    Raises:
        RuntimeError: if the file is damaged.
    """
    first = file.tell()
    left = file.seek(0, 2) - first - _LENGTH.size
    file.seek(first)
    length = _LENGTH.unpack(file.read(_LENGTH.size))[0]
    if length > left:
        raise _damaged(f"its header would have {length} bytes. {TRUNCATED}")
    entries = list(_entries(file.read(length), left - length))
    found = {}
    for name, kind, shape, start, end in sorted(entries, key=lambda entry: entry[3]):
        content = numpy.empty(end - start, numpy.uint8)
        position = first + _LENGTH.size + length + start
        if memory is not None and end > start:
            content = numpy.frombuffer(memory, numpy.uint8, end - start, position)
        else:
            file.seek(position)
            read_into(file, content.data, name)
        if sys.byteorder == "big":
            content = content.copy()
            content.view(f"u{kind.to_real().itemsize}").byteswap(inplace=True)
        storage = restore(UntypedStorage.over(content), "cpu")
        found[name] = rebuild_tensor_v3(storage, 0, shape, row_major_steps(shape), False, None, kind)
    return {entry[0]: found[entry[0]] for entry in entries}


def _entries(header: bytes, size: int) -> Iterator[tuple[str, dtype, tuple[int, ...], int, int]]:
    """Return the name, dtype, shape, and range of bytes of each tensor, in the order of the header."""
    try:
        named = json.loads(header.decode(), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise _damaged("its header is not JSON") from error
    if type(named) is not dict:
        raise _damaged("its header is not a table of tensors")
    named.pop(_METADATA, None)
    end = 0
    ranges = [(*_range_of(name, entry), name) for name, entry in named.items()]
    for start, stop, name in sorted(ranges):
        if start != end or stop < start:
            raise _damaged(f"the bytes of {shown(name)!r} do not follow those before them")
        end = stop
    if end > size:
        raise _damaged(TRUNCATED)
    if end < size:
        raise _damaged("it has more bytes than its tensors")
    for name, entry in named.items():
        start, stop = _range_of(name, entry)
        kind = _DTYPES.get(entry.get("dtype")) if type(entry.get("dtype")) is str else None
        shape = entry.get("shape")
        if kind is None:
            raise _damaged(f"{shown(name)!r} has a dtype that is not known, {shown(entry.get('dtype'))!r}")
        if type(shape) is not list or any(type(length) is not int or length < 0 for length in shape):
            raise _damaged(f"{shown(name)!r} has no shape")
        if len(shape) > _MOST_DIMS or math.prod(shape) * kind.itemsize != stop - start:
            raise _damaged(f"the shape of {shown(name)!r} does not fit its bytes")
        yield name, kind, tuple(shape), start, stop


_MOST_DIMS = 64


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) != len(pairs):
        raise ValueError("a name occurs twice")
    return named


def _range_of(name: str, entry: Any) -> tuple[int, int]:
    found = entry.get("data_offsets") if type(entry) is dict else None
    if type(found) is not list or [type(each) for each in found] != [int, int]:
        raise _damaged(f"{shown(name)!r} has no range of bytes")
    return found[0], found[1]


def _damaged(why: str) -> RuntimeError:
    return RuntimeError(f"the safetensors file cannot be read: {why}")

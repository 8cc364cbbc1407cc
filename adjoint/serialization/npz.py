"""NumPy's `.npz` archives as dicts of tensors: one uncompressed `.npy` file for each name."""

import io
import math
import zipfile
from typing import IO, Any

import numpy
from numpy.lib import format as npy

from .. import dtypes
from ..kernels.memory.legacy_storages import TypedStorage
from ..kernels.memory.storage import row_major_steps
from ..tensor import Tensor
from .limits import shown
from .safetensors import named_tensors
from .storages import Restore
from .tensors import rebuild_tensor_v3

__all__ = ["read_npz", "write_npz"]

_ARRAY = ".npy"
_NUMBERS = "biufc"


def write_npz(obj: object, file: IO[bytes]) -> None:
    """Write a dict of tensors that NumPy can read.

    Raises:
        TypeError: if `obj` is not a dict of tensors, or if NumPy lacks the dtype of a tensor.
    """
    arrays = {}
    for name, tensor in named_tensors(obj, "an .npz file").items():
        array = tensor.detach().resolve_conj().resolve_neg().numpy()
        if array.dtype.kind not in _NUMBERS or array.dtype.isbuiltin != 1:
            raise TypeError(f"an .npz file cannot hold {name!r} of {tensor.dtype}; convert it with `float()`")
        arrays[name] = array
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(name + _ARRAY, "w", force_zip64=True) as part:
                npy.write_array(part, array, allow_pickle=False)


def read_npz(file: IO[bytes], restore: Restore) -> dict[str, Tensor]:
    """Return the arrays in an archive as tensors by name.

    Raises:
        RuntimeError: if the archive is damaged or compressed, or if an array does not contain numbers.
    """
    length = file.seek(0, 2)
    found = {}
    with zipfile.ZipFile(file) as archive:
        if sum(info.file_size for info in archive.infolist()) > length:
            raise RuntimeError(
                "the .npz file is compressed, and could unpack to any size; if you trust it, read it with `numpy.load`"
            )
        for info in archive.infolist():
            try:
                content = archive.read(info)
            except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, ValueError, OSError) as error:
                raise RuntimeError(f"the .npz file cannot be read: {error}") from error
            name = info.filename.removesuffix(_ARRAY)
            array = _array(content, name)
            storage = restore(TypedStorage.of(array.reshape(-1), array.dtype), "cpu")
            kind, shape = dtypes.from_numpy(array.dtype), array.shape
            found[name] = rebuild_tensor_v3(storage, 0, shape, row_major_steps(shape), False, None, kind)
    return found


def _array(content: bytes, name: str) -> "numpy.ndarray[Any, Any]":
    """Read the array in an `.npy` file. The header is checked before memory is allocated."""
    file = io.BytesIO(content)
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, column_major, kind = read(file)
    except ValueError as error:
        raise RuntimeError(f"the array {shown(name)!r} of the .npz file cannot be read: {error}") from error
    start = file.tell()
    if kind.kind not in _NUMBERS or kind.newbyteorder("=") not in _KINDS:
        raise RuntimeError(f"the array {shown(name)!r} of the .npz file does not hold numbers that tensors can have")
    if math.prod(shape) * kind.itemsize != len(content) - start:
        raise RuntimeError(f"the shape of the array {shown(name)!r} of the .npz file does not fit its bytes")
    flat = numpy.frombuffer(content, kind, offset=start).astype(kind.newbyteorder("="))
    return numpy.ascontiguousarray(flat.reshape(shape, order="F" if column_major else "C")).reshape(shape)


_KINDS = frozenset(each.numpy for each in vars(dtypes).values() if type(each) is dtypes.dtype)

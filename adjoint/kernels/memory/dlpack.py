"""Arrays in capsules of the DLPack protocol, and out of them: NumPy's own, and elements of dtypes that NumPy does not know.

NumPy puts such elements into a capsule as unsigned integers of their size, and takes them out as such; the type that the
capsule names is exchanged. Zero bytes are copied.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy

from ... import dtypes

Array = Any

_ELEMENTS = {
    "bfloat16": (4, 16, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float4_e2m1fn_x2": (17, 4, 2),
    "complex32": (5, 32, 1),
}
"""How the protocol names them (`DLDataType` in dlpack.h): kind, bits, and how many are together."""

_DTYPES = {elements: getattr(dtypes, name).numpy for name, elements in _ELEMENTS.items()}

_UNSIGNED = 1


def capsule_of(array: Array, **keywords: Any) -> Any:
    """A capsule on the memory of `array`; `keywords` as of `__dlpack__`."""
    kind = dtypes.from_numpy(array.dtype)
    if kind.name not in _ELEMENTS:
        return array.__dlpack__(**keywords)
    capsule = array.view(f"u{kind.itemsize}").__dlpack__(**keywords)
    _elements(capsule)[:] = _ELEMENTS[kind.name]
    return capsule


def shared_array(source: Any) -> Array:
    """An array on the memory of an object that speaks the protocol."""
    try:
        return numpy.from_dlpack(source)
    except (BufferError, RuntimeError):
        return array_in(source.__dlpack__())


def array_in(capsule: Any) -> Array:
    """An array on the memory in a capsule, that can be written to.

    A capsule does not say whether its memory may be written to. NumPy then makes a read-only array, PyTorch an ordinary tensor.
    """
    elements = _elements(capsule)
    found = _DTYPES.get(tuple(elements))
    if found is not None:
        elements[:] = _UNSIGNED, found.itemsize * 8, 1
    taken = numpy.asarray(_Capsule(capsule))
    return taken if found is None else taken.view(found)


def _elements(capsule: Any) -> Any:
    """What the capsule says of its elements, in its own memory: assigning changes it."""
    versioned = '"dltensor_versioned"' in repr(capsule)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = address(capsule, b"dltensor_versioned" if versioned else b"dltensor") + 32 * versioned
    return (ctypes.c_uint8 * 3).from_address(start + 20)  # after the address, the device and the number of dimensions


class _Capsule:
    """A capsule as an object that speaks the protocol, and the memory in it as an array that can be written to."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule
        self._array = numpy.from_dlpack(self)
        self.__array_interface__ = {**self._array.__array_interface__, "data": (self._array.ctypes.data, False)}

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the processor

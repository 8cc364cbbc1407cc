"""Constructors of plain data that a file may call.

Each function accepts only the contents of a pickle of such an object. Python's own constructors would also accept
harmful arguments of a hostile file (`bytearray(10**12)`).
"""

import math
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

import numpy

from .limits import check_keys, equals

if TYPE_CHECKING:
    import argparse

__all__ = [
    "make_bytearray", "make_bytes", "make_complex", "make_counter", "make_defaultdict", "make_deque", "make_frozenset",
    "make_namespace", "make_numpy_array", "make_numpy_array_of_buffer", "make_numpy_dtype", "make_numpy_scalar",
    "make_ordered_dict", "make_range", "make_set", "make_slice", "set_array_state", "set_attributes", "set_dtype_state",
]  # fmt: skip

_FACTORIES = (None, list, dict, set, int, float, str, bool, tuple)
_NUMBERS = "biufc"


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise TypeError(f"these are not the contents of a pickled {what}")


def make_ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    """Create an `OrderedDict` from a list of pairs."""
    _require(type(items) in (list, tuple), "OrderedDict")
    _require(all(type(item) in (list, tuple) and len(item) == 2 for item in items), "OrderedDict")
    check_keys(key for key, _ in items)
    return OrderedDict(items)


def make_counter(counts: Any = ()) -> Counter[Any]:
    """Create a `Counter` from a dict of counts."""
    _require(type(counts) is dict or equals(counts, ()), "Counter")
    return Counter(dict(counts))


def make_set(items: Any = ()) -> set[Any]:
    """Create a set from the items of a list."""
    _require(type(items) in (list, tuple), "set")
    check_keys(items)
    return set(items)


def make_frozenset(items: Any = ()) -> frozenset[Any]:
    """Create a frozenset from the items of a list."""
    _require(type(items) in (list, tuple), "frozenset")
    check_keys(items)
    return frozenset(items)


def make_bytes(text: Any = "", encoding: Any = "latin1") -> bytes:
    """Return `_codecs.encode(text, 'latin1')`, which represents bytes in protocols below 3.

    Without arguments, return `bytes()`.
    """
    _require(type(text) is str and equals(encoding, "latin1", "latin-1"), "bytes")
    return bytes(text, "latin1")


def make_bytearray(content: Any = b"", encoding: Any = "latin1") -> bytearray:
    """Create a bytearray from bytes, or from text in latin1."""
    return bytearray(content if type(content) is bytes else make_bytes(content, encoding))


def make_complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    """Create a complex number from two floats."""
    _require(type(real) in (int, float) and type(imag) in (int, float), "complex")
    return complex(real, imag)


def make_slice(start: Any, stop: Any, step: Any) -> slice:
    """A slice."""
    return slice(start, stop, step)


def make_range(start: Any, stop: Any, step: Any = 1) -> range:
    """Create a range of ints."""
    _require(type(start) is int and type(stop) is int and type(step) is int, "range")
    return range(start, stop, step)


def make_deque(items: Any = (), maxlen: Any = None) -> deque[Any]:
    """Create a deque from the items of a list."""
    _require(type(items) in (list, tuple) and (maxlen is None or type(maxlen) is int), "deque")
    return deque(items, maxlen)


def make_defaultdict(factory: Any = None) -> defaultdict[Any, Any]:
    """Create a defaultdict whose missing items are empty containers or numbers."""
    _require(any(factory is known for known in _FACTORIES), "defaultdict")
    return defaultdict(factory)


def make_namespace() -> "argparse.Namespace":
    """Create an empty `argparse.Namespace`. Its attributes follow as state."""
    from argparse import Namespace

    return Namespace()


def set_attributes(target: Any, state: Any) -> None:
    """Set the pickled attributes in the instance's dictionary."""
    _require(type(state) is dict and all(type(name) is str for name in state), type(target).__name__)
    vars(target).update(state)


def make_numpy_dtype(name: Any, align: Any = False, copy: Any = True) -> "numpy.dtype[Any]":
    """Create a NumPy dtype of numbers from a name such as `'f8'`."""
    _require(type(name) is str and name[:1] in _NUMBERS and name[1:].isdigit(), "NumPy dtype")
    dtype: numpy.dtype[Any] = numpy.dtype(name)
    return dtype


def set_dtype_state(dtype: "numpy.dtype[Any]", state: Any) -> None:
    """Accept the state of a number type in this machine's byte order. The state contains no information."""
    native = ("|", "=", "<" if sys.byteorder == "little" else ">")
    _require(type(state) is tuple and len(state) >= 2 and equals(state[1], *native), "NumPy dtype")


def make_numpy_array(kind: Any, shape: Any, typecode: Any) -> "numpy.ndarray[Any, Any]":
    """Create an empty NumPy array. Its shape and content follow as state."""
    _require(kind is numpy.ndarray and type(shape) is tuple and len(shape) == 1, "NumPy array")
    _require(equals(shape[0], 0), "NumPy array")
    return numpy.empty(0)


def set_array_state(array: "numpy.ndarray[Any, Any]", state: Any) -> None:
    """Set the pickled shape, dtype and bytes of a NumPy array."""
    _require(type(state) is tuple and len(state) == 5, "NumPy array")
    _, shape, dtype, _, content = state
    _require(type(shape) is tuple and all(type(length) is int and length >= 0 for length in shape), "NumPy array")
    _require(isinstance(dtype, numpy.dtype) and dtype.kind in _NUMBERS and type(content) is bytes, "NumPy array")
    _require(len(content) == math.prod(shape) * dtype.itemsize, "NumPy array")  # before NumPy asks for memory
    array.__setstate__(state)


def make_numpy_array_of_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> "numpy.ndarray[Any, Any]":
    """Create a NumPy array from its bytes, as protocol 5 stores it."""
    _require(
        isinstance(content, (bytes, bytearray)) and type(shape) is tuple and equals(order, "C", "F"), "NumPy array"
    )
    _require(isinstance(dtype, numpy.dtype) and dtype.kind in _NUMBERS, "NumPy array")
    return numpy.frombuffer(content, dtype).reshape(shape, order=order)


def make_numpy_scalar(dtype: Any, content: Any) -> Any:
    """Create a NumPy number from its bytes."""
    _require(isinstance(dtype, numpy.dtype) and dtype.kind in _NUMBERS and type(content) is bytes, "NumPy scalar")
    _require(len(content) == dtype.itemsize, "NumPy scalar")
    return numpy.frombuffer(content, dtype)[0]

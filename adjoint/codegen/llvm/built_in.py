"""Machine code as built-in functions of Python, whose calls take a tenth of the time of calls through ctypes."""

from __future__ import annotations

from typing import Any

from ..._runtime.platform import ctypes
from .element_types import f64, i64
from .external import external
from .host import HOST

TAKES_TABLE = 0x80
"""Python's flag `METH_FASTCALL`: the arguments are passed as a table of objects and the number of objects."""

NONE, TRUE, FALSE = id(None), id(True), id(False)
"""The objects that machine code can return."""


class Definition(ctypes.Structure):
    """Python's description of a built-in function (`PyMethodDef`)."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    ]


_definitions: dict[tuple[str, int], Definition] = {}


def defined(name: str, address: int) -> Definition:
    """Return the description of a function, the same in all threads. Python reads it at each call."""
    return _definitions.setdefault((name, address), Definition(name.encode(), address, TAKES_TABLE, None))


def built_in(name: str, address: int, own: Any) -> Any:
    """Return a Python function that calls machine code with the object `own`, a table of arguments, and their number.

    The machine code returns a new reference to an object, or returns 0 after it has raised an error.
    """
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return create(ctypes.addressof(defined(name, address)), own, None)


def function_of_python(name: str, result: Any, *types: Any) -> Any:
    """Return a function of Python's C interface, for kernels."""
    return external(name, lambda: address_of(name), result, *types)


def address_of(name: str) -> int:
    """Return the address of a function of Python's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def define_functions_of_python(*names: str) -> None:
    """Define functions of Python's C interface so that LLVM code can call them."""
    for name in names:
        HOST.define(name, address_of(name))


new_reference = function_of_python("Py_NewRef", i64, i64)
"""Return a new reference to an object."""

float_of = function_of_python("PyFloat_AsDouble", f64, i64)
"""Convert a Python number to a floating-point number."""

new_float = function_of_python("PyFloat_FromDouble", i64, f64)
"""Create a Python number."""

error_raised = function_of_python("PyErr_Occurred", i64)
"""Return 0 if no error has been raised."""

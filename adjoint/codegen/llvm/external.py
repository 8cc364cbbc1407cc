"""Functions that kernels call but do not contain (of the C library, of Python, other kernels), and kernels that Python calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

from ..._runtime.platform import ctypes
from .element_types import NumberType, Pointer, Static, TypeVariable, f64, i64
from .functions import Builtin
from .host import HOST
from .lowering import Lowering
from .values import CompilationError


def external(name: str, find: Callable[[], int], result: Any, *types: Any) -> Any:
    """Declare a function at the address that `find` returns when a kernel that calls it is compiled."""

    def call(lowering: Lowering, *arguments: Any) -> Any:
        if len(arguments) != len(types):
            raise CompilationError(f"{name} takes {len(types)} arguments")
        HOST.define(name, find())
        values = [lowering.as_type(argument, type_) for argument, type_ in zip(arguments, types, strict=True)]
        returned = "void" if result is None else result.text
        lowering.declarations.add(f"declare {returned} @{name}({', '.join([type_.text for type_ in types])})")
        text = f"call {returned} @{name}({', '.join(map(str, values))})"
        if result is None:
            lowering.emit(text)
            return None
        return lowering.value(text, result)

    call.__name__ = name
    return Builtin(call)


def c_function(name: str, result: Any, *types: Any) -> Any:
    """Declare a function of the C library. Other programs that call this function get identical results."""

    def find() -> int:
        try:
            function = getattr(ctypes.CDLL(None), name)
        except (AttributeError, OSError, TypeError) as error:
            raise CompilationError(f"the C library of this system does not show its function {name}") from error
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        return address

    return external(f"adjoint_c_{name}", find, result, *types)


@cache
def apart(kernel: Any, **given: Any) -> Any:
    """Compile a kernel once for these types and static values, so that other kernels can call it."""

    def call(lowering: Lowering, *arguments: Any) -> Any:
        code = kernel.compiled(**given).code
        parameters = get_type_hints(kernel.function)
        result = parameters.pop("return", None)
        hints = [hint for hint in parameters.values() if hint is not Static]
        types = [
            argument.type if hint is Pointer else given[hint.name] if isinstance(hint, TypeVariable) else hint
            for hint, argument in zip(hints, arguments, strict=True)
        ]
        returned = result if isinstance(result, NumberType) else None
        symbol = external(f"adjoint_{code.name}_{code.address:x}", lambda: code.address, returned, *types)
        return symbol.lower(lowering, *arguments)

    call.__name__ = kernel.name
    return Builtin(call)


# --- machine code as built-in functions of Python, whose calls take a tenth of the time of calls through ctypes -----------

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

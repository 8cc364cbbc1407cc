"""Functions that kernels call but do not contain: functions of the C library and separately compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, get_type_hints

from ..._runtime.platform import ctypes
from .element_types import NumberType, Pointer, Static, TypeVariable
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

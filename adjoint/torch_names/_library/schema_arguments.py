"""The arguments of a call according to the schema of an operator: bound to its parameters, checked, and converted.

Operators of programs are called this way. The library's own operators read their arguments themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from adjoint.aten.schemas import Argument, FunctionSchema
from adjoint.device import device, layout, memory_format
from adjoint.dtypes import dtype
from adjoint.random import Generator
from adjoint.tensor import Tensor

_SPOKEN = {"SymInt": "int", "ScalarType": "int", "MemoryFormat": "int", "Layout": "int", "Scalar": "number"}
"""The types that have another name in messages."""


class Arguments(NamedTuple):
    """The arguments of a call, with defaults in place of omitted arguments.

    A kernel is called without defaults: without the positional arguments from `given` on, and without the keywords
    `defaults`.
    """

    positional: list[Any]
    keywords: dict[str, Any]
    given: int
    defaults: frozenset[str] = frozenset()

    def for_kernel(self) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a kernel in the form of PyTorch's dispatcher."""
        keywords = {name: value for name, value in self.keywords.items() if name not in self.defaults}
        return self.positional[: self.given], keywords


def bind(schema: FunctionSchema, args: tuple[Any, ...], names: dict[str, Any]) -> Arguments:
    """Return the arguments of a call, in the order of the schema and with its defaults, or raise the dispatcher's error."""
    arguments = schema.arguments
    positions = sum(not each.kwarg_only for each in arguments)
    if len(args) > positions:
        raise _too_many(schema, positions, len(args), len(args) + len(names))
    left = dict(names)
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    given, defaults = 0, set()
    for place, argument in enumerate(arguments):
        name = argument.name
        default = None if argument.required else argument.whole_default()
        if place < len(args):
            if name in left:
                raise RuntimeError(
                    f"Argument '{name}' specified both as positional and keyword argument. Schema: {schema}"
                )
            value = _converted(schema, place, argument, args[place])
        elif name in left:
            value = _converted(schema, place, argument, left.pop(name))
        elif argument.required:
            raise RuntimeError(f"{schema.name}() is missing value for argument '{name}'. Declaration: {schema}")
        else:
            value = default
        is_default = not argument.required and not isinstance(value, Tensor) and value == default
        if argument.kwarg_only:
            keywords[name] = value
            if is_default:
                defaults.add(name)
        else:
            positional.append(value)
            if not is_default:
                given = len(positional)
    if left:
        unknown = next(iter(left))
        raise RuntimeError(f"Unknown keyword argument '{unknown}' for operator '{schema.name}'. Schema: {schema}")
    return Arguments(positional, keywords, given, frozenset(defaults))


def _too_many(schema: FunctionSchema, positions: int, positional: int, count: int) -> RuntimeError:
    """Return the error for more than `positions` positional arguments: `positional` of `count` arguments."""
    if positions < len(schema.arguments):
        return RuntimeError(
            f"{schema.name}() takes {positions} positional argument(s) but {positional} was/were given.  Declaration: {schema}"
        )
    return RuntimeError(
        f"{schema.name}() expected at most {positions} argument(s) but received {count} argument(s). Declaration: {schema}"
    )


def _converted(schema: FunctionSchema, place: int, argument: Argument, value: Any) -> Any:
    try:
        return _cast(argument.type, argument.whole(value))
    except TypeError as error:
        raise RuntimeError(
            f"{schema.name}() Expected a value of type '{_type_name(argument.type)}' for argument '{argument.name}' but instead "
            f"found type '{type(value).__name__}'.\nPosition: {place}\nValue: {value!r}\nDeclaration: {schema}\n"
            f"Cast error details: {error}"
        ) from None


def _cast(kind: str, value: Any) -> Any:
    """Convert `value` to the type of this name. Return it unchanged if the type is not known."""
    if kind.endswith("?"):
        return None if value is None else _cast(kind[:-1], value)
    if kind.endswith("]"):
        element = kind[: kind.rindex("[")]
        if element == "Tensor":
            if not isinstance(value, (list, tuple)) or not all(isinstance(each, Tensor) for each in value):
                raise _refused(value)
            return list(value)
        try:
            values = value.tolist() if isinstance(value, Tensor) else list(value)
        except TypeError:
            raise _refused(value) from None
        return [_cast(element, each) for each in values]
    if kind == "Tensor":
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"Unable to cast {value!r} to Tensor")
        return value
    return _number(kind, value) if kind in _NUMBERS else _other(kind, value)


_NUMBERS: dict[str, Any] = {
    "int": (int,),
    "SymInt": (int,),
    "float": (int, float),
    "Scalar": (int, float, complex),
    "complex": (int, float, complex),
}


def _number(kind: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise _refused(value)
        value = value.item()
    if isinstance(value, numpy.generic) and kind != "Scalar":
        value = value.item()
    if not isinstance(value, _NUMBERS[kind]):
        raise _refused(value)
    return value if kind == "Scalar" else _NUMBERS[kind][-1](value)


_CLASSES: dict[str, Any] = {
    "str": str,
    "ScalarType": (dtype, int),
    "Layout": (layout, int),
    "MemoryFormat": (memory_format, int),
    "Device": (device, str, int),
    "Generator": Generator,
}


def _other(kind: str, value: Any) -> Any:
    if kind == "bool":
        if not isinstance(value, (int, float, numpy.generic, type(None))):
            raise _refused(value)
        return bool(value)
    known = _CLASSES.get(kind)
    if known is not None and not isinstance(value, known):
        raise _refused(value)
    return value


def _refused(value: Any) -> TypeError:
    return TypeError(f"Unable to cast Python instance of type {type(value)} to C++ type '?'")


def _type_name(kind: str) -> str:
    """Return the name of a type in messages, such as `Optional[List[int]]` for `SymInt[]?`."""
    if kind.endswith("?"):
        return f"Optional[{_type_name(kind[:-1])}]"
    if kind.endswith("]"):
        return f"List[{_type_name(kind[: kind.rindex('[')])}]"
    return _SPOKEN.get(kind, kind)

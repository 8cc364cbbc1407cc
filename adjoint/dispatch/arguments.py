"""The arguments of operators: in their places, of the declared types, or refused in PyTorch's words."""

from __future__ import annotations

from itertools import takewhile
from types import MappingProxyType
from typing import Any

import numpy

from .. import dtypes
from ..tensor import Tensor
from .declaration import Operator
from .signatures import FORMS, TYPE_WORDS, expected, type_name

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""The default of parameters that have none."""

ALIASES = {"x": "self", "a": "self", "x1": "self", "x2": "other", "axis": "dim", "keepdims": "keepdim"}
"""NumPy's names for parameters."""

NUMBERS = frozenset((int, float, bool, complex))


def bind(op: Operator, args: tuple[Any, ...], names: Any = MappingProxyType({})) -> tuple[Any, ...]:
    """Put keyword aliases in their places; raise for what is missing or of the wrong type."""
    values = list(args)
    for name, value in names.items():
        if value is not MISSING:
            values[op.names.index(ALIASES[name])] = value
    for value in values:
        if value is MISSING:
            raise missing_arguments(op, values)
    for position, name in op.typed:
        values[position] = checked(op, name, position, values)
    return tuple(values)


def missing_arguments(op: Operator, values: list[Any]) -> TypeError:
    """The error for a call in which some of the arguments are not given."""
    if op.function_name in FORMS:
        return invalid_arguments(op.function_name, *takewhile(lambda value: value is not MISSING, values))
    missing = [f'"{"input" if n == "self" else n}"' for n, v in zip(op.names, values, strict=True) if v is MISSING]
    plural = "s" if len(missing) == 1 else ""  # sic
    return TypeError(
        f"{op.function_name}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}"
    )


def checked(op: Operator, name: str, position: int, values: list[Any]) -> Any:
    """The argument at `position` if it is of its parameter's declared type, lists as tuples.

    None is as good where it is the default.
    """
    value, kind = values[position], op.types[name]
    if is_of_type(value, kind):
        if kind in ("Number", "Float") and isinstance(value, Tensor):
            return value.item()
        if kind == "Int" and not fits(value):
            raise ValueError("Overflow when unpacking long long")
        if kind != "Ints" or all(map(fits, value)):
            return tuple(value) if type(value) is list else value
    if value is None and op.defaults.get(name, MISSING) is None:
        return None
    if op.overloaded and position == len(op.tensors):
        raise invalid_arguments(op.function_name, *values[: position + 1])
    where = "" if name in op.keyword_only else f" (position {position + (not op.method)})"
    raise wrong_type(op.function_name, name, where, kind, value)


def fits(number: Any) -> bool:
    """Whether an integer is one of 64 bits, as all but Python's own are."""
    return type(number) is not int or -(2**63) <= number < 2**63


def wrong_type(function: str, name: str, where: str, kind: str, value: Any) -> TypeError:
    """The error for an argument that is not what a parameter declared as `kind` takes; `where` tells its position."""
    if kind != "Ints" or not isinstance(value, (tuple, list)):
        return TypeError(f"{function}(): argument '{name}'{where} must be {TYPE_WORDS[kind]}, not {type_name(value)}")
    wrong = next(index for index, item in enumerate(value) if not (is_of_type(item, "Int") and fits(item)))
    found = type_name(value[wrong])
    if is_of_type(value[wrong], "Int"):
        why = "Overflow when unpacking long long"
    elif wrong == 0:
        return TypeError(
            f"{function}(): argument '{name}'{where} must be tuple of ints, but found element of type {found} at pos 0"
        )
    else:
        why = f"type must be tuple of ints,but got {found}"
    return TypeError(
        f"{function}(): argument '{name}' failed to unpack the object at pos {wrong + 1} with error \"{why}\""
    )


def is_of_type(value: Any, kind: str) -> bool:
    """Whether `value` is what a parameter declared as `kind` takes."""
    if kind == "Int":
        return type(value) is int or (hasattr(value, "__index__") and not isinstance(value, (bool, numpy.bool_, tuple)))
    if kind in ("Ints", "Dims"):
        several = isinstance(value, (tuple, list)) and all(is_of_type(item, "Int") for item in value)
        return several or (kind == "Dims" and is_of_type(value, "Int"))
    if kind == "Bool":
        return isinstance(value, (bool, numpy.bool_))
    if kind in ("Number", "Float"):
        if isinstance(value, Tensor):
            return not (value._array.ndim or value.requires_grad)
        return is_number(value) and (kind == "Number" or not isinstance(value, (complex, numpy.complexfloating)))
    return isinstance(value, dtypes.dtype if kind == "Dtype" else str)


def is_number(value: Any) -> bool:
    """Whether `value` is what PyTorch takes as a number."""
    return isinstance(value, (int, float, complex, numpy.number, numpy.bool_))


def invalid_arguments(function: str, *args: Any, **names: Any) -> TypeError:
    """The error for arguments that no overload of `function` takes."""
    got = ", ".join([*map(type_name, args), *(f"{name}={type_name(value)}" for name, value in names.items())])
    return TypeError(f"{function}() received an invalid combination of arguments - got ({got}){expected(function)}")

"""Calls of operators as calls of PyTorch's dispatcher: `x.sum(1)` as `aten.sum.dim_IntList(x, [1])`, and back.

The name of an operator and the arguments of its declaration determine the overload. It is the first overload whose
arguments have these names and types. If PyTorch's operator takes other arguments, `FORMS` defines them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from .. import dtypes
from ..device import layout as layout_type
from ..device import memory_format as format_type
from ..dispatch.arguments import is_number
from ..dispatch.declaration import Operator
from ..kernels.memory.storages import StorageBase
from ..random import Generator
from ..tensor import Tensor
from .forms import FORMS
from .overloads import OpOverload, overload_named
from .schemas import REDUCTIONS, Argument, FunctionSchema, overload_names, schema_of

Call = tuple[OpOverload, tuple[Any, ...], dict[str, Any]]

_NUMBER_AS_TENSOR = frozenset(
    "add sub mul div add_ sub_ mul_ div_ logical_and logical_or logical_xor true_divide floor_divide floor_divide_ hypot".split()
)
"""Operators that use the overload for tensors for a number too."""

_OF_NEW_TENSORS = frozenset(("dtype", "layout", "device", "pin_memory"))
"""Arguments that the overloads with `out` do not have, because `out` has these properties."""

_BETWEEN = (
    "adjoint.dispatch.",
    "adjoint.aten.",
    "adjoint.tape.",
    "adjoint._runtime.",
    "adjoint.operators.math.division",
)
"""The modules between the caller of an operator and this module. The module of generated code has no name."""


def call_of_operator(op: Operator, args: tuple[Any, ...], out: Any = None, inplace: bool = False) -> Call:
    """Return the overload that PyTorch calls for `op` with `args`, in the order of the declaration, and its arguments."""
    first = None if op.number_first else op.names[0]
    values = {name: _given(value, op.numbers and name != first) for name, value in zip(op.names, args, strict=True)}
    form = FORMS.get(op.name)
    name = op.aten_name
    if form is not None:
        name, values = form(values)
    if inplace:
        name += "_"
    left_out = frozenset(
        each for each, default in op.defaults.items() if each in values and _equal(values[each], default)
    )
    preferred, own_name = (op.aten_inplace, f"{op.name}_") if inplace else (op.aten, op.name)
    if (
        preferred == "Tensor"
        and "other" in values
        and is_number(args[op.names.index("other")])
        and _called_by_operators()
    ):
        preferred = "Scalar"
    overload, given, keywords = _call(name, values, left_out, out, preferred, own_name)
    if form is None or inplace:
        overload.operator, overload.changes = op, inplace
    return overload, given, keywords


def call_of_function(name: str, values: dict[str, Any], out: Any = None) -> Call:
    """Return the overload and its arguments for a function that is not an operator. The arguments have PyTorch's names."""
    return _call(name, values, frozenset() if out is None else _OF_NEW_TENSORS, out, "default")


def _call(
    name: str, values: dict[str, Any], left_out: frozenset[str], out: Any, preferred: str, own_name: str | None = None
) -> Call:
    """Return the first overload whose arguments have these names, or whose first arguments have these types.

    A call without a matching overload belongs to an operator that PyTorch does not have, named `own_name`.
    """
    named = overload_names(name)
    preferred = preferred or "default"
    order = [preferred, *named] if preferred in named else named
    for overload in order:
        schema = schema_of(name, overload)
        if schema is None or any(each.is_out for each in schema.arguments) != (out is not None):
            continue
        if (arranged := _arranged(schema, values, left_out, out)) is not None:
            return (overload_named(name, overload), *arranged)
    keywords = {} if out is None else {"out": out}
    positional = tuple(values.values())
    for overload in order if out is None else ():
        schema = schema_of(name, overload)
        if schema is not None and _fit_in_order(schema, positional):
            pairs = zip(schema.arguments, positional, strict=False)
            return overload_named(name, overload), tuple([_as_type(*pair) for pair in pairs]), keywords
    return overload_named(own_name or name, "default"), positional, keywords


def _fit_in_order(schema: FunctionSchema, values: tuple[Any, ...]) -> bool:
    """Return whether a signature has exactly as many arguments as there are values, with their types in order."""
    arguments = [argument for argument in schema.arguments if not argument.kwarg_only]
    if len(values) > len(arguments) or any(argument.required for argument in arguments[len(values) :]):
        return False
    return all(_fits(argument, value, schema) for argument, value in zip(arguments, values, strict=False))


def _arranged(
    schema: FunctionSchema, values: dict[str, Any], left_out: frozenset[str], out: Any
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments in the order of a signature, without trailing defaults, or None if they do not match."""
    arguments = schema.arguments
    known = {argument.name for argument in arguments}
    if any(name not in known for name in values if name not in left_out):
        return None
    positional: list[Any] = []
    last = 0
    keywords: dict[str, Any] = {}
    outs = [] if out is None else list(out) if isinstance(out, (tuple, list)) else [out]
    if len(outs) != sum(argument.is_out for argument in arguments):
        return None
    for argument in arguments:
        if argument.is_out:
            keywords[argument.name] = outs.pop(0)
            continue
        if argument.name not in values:
            if argument.required:
                return None
            value = argument.default_value
        else:
            value = values[argument.name]
            if not _fits(argument, value, schema):
                if argument.name not in left_out or argument.required:
                    return None
                value = argument.default_value
            value = _as_type(argument, value)
        is_default = not argument.required and _equal(value, argument.default_value)
        if argument.kwarg_only:
            if not is_default:
                keywords[argument.name] = value
            continue
        positional.append(value)
        if not is_default:
            last = len(positional)
    return tuple(positional[:last]), keywords


def _given(value: Any, may_be_number: bool) -> Any:
    """Return an argument as the program has given it. A number that has become a tensor is converted back to a number."""
    if may_be_number and isinstance(value, Tensor) and value._extra is not None and value._extra.number is not None:
        return value._extra.number.args[0]
    if hasattr(value, "element"):  # the indices of an index
        return value
    return list(value) if type(value) is tuple else value


def _equal(value: Any, default: Any) -> bool:
    if isinstance(value, Tensor) or isinstance(default, Tensor):
        return value is default
    if isinstance(value, list) and type(default) is int:  # one number in place of many
        return all(item == default for item in value)
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return len(value) == len(default) and all(map(_equal, value, default))
    return type(value) is type(default) and bool(value == default)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "Scalar": is_number,
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, (int, float)),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "ScalarType": lambda value: isinstance(value, dtypes.dtype),
    "MemoryFormat": lambda value: isinstance(value, format_type),
    "Layout": lambda value: isinstance(value, layout_type),
    "Generator": lambda value: isinstance(value, Generator),
    "Storage": lambda value: isinstance(value, StorageBase),
}


def _fits(argument: Argument, value: Any, schema: FunctionSchema) -> bool:
    kind = argument.element
    if value is None:
        return argument.optional
    if argument.is_list:
        if hasattr(value, "element"):
            return kind == "Tensor?"
        if isinstance(value, (list, tuple)):
            return all((item is None and kind.endswith("?")) or _fits_one(kind.rstrip("?"), item) for item in value)
        return argument.expands and _fits_one(kind, value)
    if kind == "Tensor" and is_number(value):
        return schema.name.removeprefix("aten::") in _NUMBER_AS_TENSOR and argument.name == "other"
    if argument.name == "reduction" and value in REDUCTIONS:
        return True
    return _fits_one(kind, value)


def _called_by_operators() -> bool:
    """Return whether a function or a formula of this package calls the operator. In PyTorch these are written in C++.

    There, numbers have overloads of their own. In Python, PyTorch's functions convert numbers to tensors.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module is not None and not module.startswith(_BETWEEN):
            return bool(module.startswith("adjoint.operators."))
        frame = frame.f_back
    return False


def _fits_one(kind: str, value: Any) -> bool:
    test = _TYPES.get(kind)
    return True if test is None else test(value)


def _as_type(argument: Argument, value: Any) -> Any:
    if hasattr(value, "element"):
        return value.given()
    if argument.is_list and value is not None:
        return list(value) if isinstance(value, (list, tuple)) else [value]
    if argument.name == "reduction" and isinstance(value, str):
        return REDUCTIONS.index(value)
    if argument.element == "float" and isinstance(value, int):
        return float(value)
    return value

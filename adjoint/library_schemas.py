"""Signatures of operators in PyTorch's notation, from functions with annotations."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from types import NoneType, UnionType
from typing import Any

from .device import device
from .dtypes import dtype
from .tensor import Tensor

_NAMES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    complex: "Scalar",
    str: "str",
    dtype: "ScalarType",
    device: "Device",
}
_NUMBER = {int, float, bool}


def _type_name(kind: Any, in_list: bool = False) -> str:
    if kind in _NAMES:
        return _NAMES[kind]
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType):
        others = [part for part in parts if part is not NoneType]
        if set(others) == _NUMBER:
            return "Scalar" + "?" * (len(others) < len(parts))
        if len(others) == 1 and len(parts) == 2:
            return f"{_type_name(others[0])}?"
    if origin in (list, Sequence) and not in_list:
        return f"{_type_name(parts[0], in_list=True)}[]"
    raise ValueError(
        f"infer_schema(func): unsupported type annotation {kind}; it must be one of PyTorch's operators' types"
    )


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The schema of a function with annotated parameters.

    >>> def scaled(x: Tensor, factor: float) -> Tensor: ...
    >>> infer_schema(scaled, mutates_args=())
    '(Tensor x, float factor) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    kinds = typing.get_type_hints(prototype_function)
    changed = None if mutates_args == "unknown" else {*mutates_args}
    parts, keyword_only = [], False
    for letter, (name, parameter) in enumerate(signature.parameters.items()):
        if name not in kinds:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        text = _type_name(kinds[name])
        if text.startswith("Tensor") and (changed is None or name in changed):
            text = f"Tensor(a{letter}!){text.removeprefix('Tensor')}"
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        parts.append(f"{text} {name}{default}")
    if changed is not None and (unknown := changed - signature.parameters.keys()):
        raise ValueError(f"infer_schema(func): mutates_args contains {sorted(unknown)}, which are no parameters.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returned(kinds.get('return', NoneType))}"


def _default(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _returned(kind: Any) -> str:
    if kind is NoneType or kind is None:
        return "()"
    if typing.get_origin(kind) is tuple:
        return f"({', '.join(map(_type_name, typing.get_args(kind)))})"
    return _type_name(kind)

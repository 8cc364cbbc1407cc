"""Signatures of operators in PyTorch's notation, derived from annotated functions."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from types import NoneType, UnionType
from typing import Any, NoReturn

from adjoint.device import device
from adjoint.dtypes import dtype
from adjoint.random import Generator
from adjoint.tensor import Tensor

_NAMES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    dtype: "ScalarType",
    device: "Device",
    Generator: "torch._C.Generator",
}
_NUMBER = {int, float, bool}

_IN_LISTS = ("Tensor", "Tensor?", "SymInt", "float", "bool", "Scalar")
"""The element types of lists."""

_OPTIONAL_LISTS = ("SymInt[]", "float[]", "bool[]")

_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")


def _type_name(kind: Any) -> str | None:
    """Return the name of a type, or None if operators have no arguments of this type."""
    if isinstance(kind, type) and kind in _NAMES:
        return _NAMES[kind]
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType):
        others = [part for part in parts if part is not NoneType]
        if set(others) == _NUMBER:
            return "Scalar" + "?" * (len(others) < len(parts))
        if len(others) == 1 and len(parts) == 2:
            name = _type_name(others[0])
            return f"{name}?" if name is not None and (not name.endswith("]") or name in _OPTIONAL_LISTS) else None
    if origin in (list, Sequence) and parts:
        name = _type_name(parts[0])
        return f"{name}[]" if name in _IN_LISTS else None
    return None


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """Return the schema of a function with annotated parameters.

    Args:
        prototype_function: the function.
        mutates_args: the names of the tensors that it changes, or "unknown".
        op_name: a name at the beginning of the schema.

    Raises:
        ValueError: if an annotation is missing, if operators do not accept a type, or if `mutates_args` contains an
            unknown name.

    >>> import adjoint as torch
    >>> def scaled(x: torch.Tensor, factor: float) -> torch.Tensor: ...
    >>> infer_schema(scaled, mutates_args=())
    '(Tensor x, float factor) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def refuse(what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    kinds = _annotations(prototype_function, signature, refuse)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. "
        )
    changed = None if mutates_args == "unknown" else {*mutates_args}
    if changed is not None and (unknown := changed - signature.parameters.keys()):
        refuse(
            f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of "
            "all args that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    parts = []
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.annotation is parameter.empty:
            refuse(f"Parameter {name} must have a type annotation.")
        text = _type_name(kinds[name])
        if text is None:
            hint = (
                "We do not support Tuple inputs in schema. As a workaround, please try to use List instead."
                if typing.get_origin(kinds[name]) is tuple
                else f"The valid types are: {_valid_types()}."
            )
            refuse(f"Parameter {name} has unsupported type {kinds[name]}. {hint}")
        if changed is not None and name in changed and not text.startswith("Tensor"):
            refuse(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        if text.startswith("Tensor") and (changed is None or name in changed):
            text = f"Tensor(a{place}!){text.removeprefix('Tensor')}"
        parts.append(f"{text} {name}{_default(name, parameter, refuse)}")
    if signature.return_annotation is signature.empty:
        refuse("No return type annotation was provided. Please add one.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returned(kinds['return'], refuse)}"


def _annotations(function: Any, signature: inspect.Signature, refuse: Callable[[str], NoReturn]) -> dict[str, Any]:
    """Return the types of parameters and result, including types written as strings."""
    kinds: dict[str, Any] = {name: each.annotation for name, each in signature.parameters.items()}
    kinds["return"] = signature.return_annotation
    names = getattr(inspect.unwrap(function), "__globals__", {})
    for name, kind in kinds.items():
        if isinstance(kind, str):
            try:
                kinds[name] = eval(kind, names)  # the program's own words
            except NameError as error:
                refuse(f"Unsupported type annotation {kind}. It is not a type. ({error}).")
    return kinds


def _valid_types() -> str:
    """Return the names of argument types for a message, with lists last."""
    return ", ".join([*_NAMES.values(), "Scalar", *(f"{name}[]" for name in _IN_LISTS)])


def _default(name: str, parameter: inspect.Parameter, refuse: Callable[[str], NoReturn]) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if isinstance(value, (str, device)):
        return f'="{value}"'
    if isinstance(value, dtype):
        return f"={str(value).rpartition('.')[2]}"
    if value is not None and not isinstance(value, (int, float, bool)):
        refuse(
            f"Parameter {name} has an unsupported default value type {type(value)}. Please file an issue on GitHub so we can "
            "prioritize this."
        )
    return f"={value}"


def _returned(kind: Any, refuse: Callable[[str], NoReturn]) -> str:
    if kind is NoneType or kind is None:
        return "()"
    parts = typing.get_args(kind) if typing.get_origin(kind) is tuple else (kind,)
    names = [_type_name(part) for part in parts]
    if any(name not in _RETURNED for name in names) or kind is tuple:
        refuse(f"Return has unsupported type {kind}. The valid types are: {', '.join(_RETURNED)}.")
    if typing.get_origin(kind) is not tuple:
        return str(names[0])
    return f"({', '.join(map(str, names))})" if len(names) != 1 else f"(({names[0]}))"

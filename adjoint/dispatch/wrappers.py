"""Wrappers of functions and methods. After the first override in the program, all calls pass through wrappers.

A wrapper is new code in the existing function object. The old code moves to another function. A program without
overrides pays nothing, and references to the functions stay valid in a program with overrides.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..tape.modes import STATE
from ..tape.torch_function import (
    ORDINARY,
    DisableTorchFunctionSubclass,
    ask,
    has_override,
    mode_is_active,
    no_implementation_error,
    overloaded,
    tensor_likes,
)
from .arguments import MISSING
from .lazy_stubs import generated, moved, redirect_calls, stub_of
from .parameter_source import NUMPY_NAMES


class TorchFunctionWrapper:
    """The behaviour of a wrapper.

    `function`: the function behind the wrapper. `shown`: the function that overrides receive. `name`: its name in
    errors.

    Attributes:
        of_python: whether PyTorch writes the function in Python. Such functions include plain tensors in the types,
            pass arguments with defaults by keyword, and raise another error if no override handles the call.
        of_operator: whether it is a Python operator, which returns NotImplemented if no override handles the call, or
            if a TypeError is raised.
        of_method: whether it is a method. If the tensor is its only argument, the type of the tensor is included.
        of_attribute: whether it reads or sets an attribute, or is a method of that kind. Only the class of the tensor is
            considered, and its type is always included.
        of_keywords: whether all arguments are passed by keyword.
        of_many: whether classes receive the tensors of a list argument separately. A mode receives the list, and its
            items are not included in the types.
        of_first: whether only the class of the first argument is considered. If this class has no override, other
            overrides receive the function `of_first`.
        of_statement: whether the function belongs to a statement, and returns nothing.
        of_data: whether the arguments are data. Then modes override the function, and classes do not.
    """

    of_python = of_operator = of_method = of_attribute = of_statement = of_data = of_keywords = of_many = False
    of_first: Any = None

    def __init__(self, function: Callable[..., Any], shown: Any, name: str) -> None:
        self.function = function
        self.shown = shown
        self.name = name
        self._signature: inspect.Signature | None = None

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function, or the overrides."""
        here = STATE.__dict__
        found: Any = ()
        if here["asks_classes"]:
            for value in (*args, *kwargs.values()) if kwargs else args:
                if type(value) not in ORDINARY:
                    found = overloaded(args, kwargs)
                    break
        if here["function_modes"] and here["asks_modes"]:
            return self.taken_over([] if self.of_data else found, args, kwargs)
        if not found:
            if here["autocast"] is not None:
                return here["autocast"](self, args, kwargs)
            return self.function(*args, **kwargs)
        if self.of_data or (self.of_attribute and not has_override(args[0])):
            with DisableTorchFunctionSubclass():
                return self.function(*args, **kwargs)
        return self.taken_over(found, args, kwargs)

    def taken_over(self, found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the overrides, and return their result."""
        likes: list[Any] = list(found)
        if self.of_python:
            if self.of_many and len(args) == 2 and not mode_is_active():
                args = (args[0], *args[1]) if isinstance(args[1], (list, tuple)) else args
            likes = tensor_likes([arg for arg in args if not (self.of_many and isinstance(arg, list))], kwargs)
            args, kwargs = self.arranged(args, kwargs)
        elif self.of_attribute or (self.of_method and len(self.signature().parameters) == 1):
            likes = list(args[:1])
        shown = self.shown
        if self.of_first is not None and found:
            likes, shown = (list(args[:1]), shown) if has_override(args[0]) else (likes, self.of_first)
        given = kwargs if kwargs or self.of_python else None
        try:
            result = ask(shown, likes, args, given, self.of_python)
        except TypeError:
            if not self.of_operator:
                raise
            return NotImplemented
        if result is NotImplemented and not self.of_operator:
            raise no_implementation_error(self.name, likes, self.of_python)
        return None if self.of_statement else result

    def arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments in the form of a Python function: arguments with defaults by keyword, with the default."""
        parameters = self.signature().parameters
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values()):
            named = {name: one.default for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}
            return args, {**named, **kwargs}
        try:
            bound = self.signature().bind(*args, **kwargs)
        except TypeError:  # wrong arguments: the override decides
            return args, kwargs
        bound.apply_defaults()
        values = {name: value for name, value in bound.arguments.items() if value is not MISSING}
        if self.of_keywords:
            return (), values
        required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
        return tuple(values.pop(name) for name in required if name in values), values

    def signature(self) -> inspect.Signature:
        """The parameters of the function behind the wrapper, without NumPy's names and without `out` for methods."""
        if self._signature is None:
            whole = signature_of(self.function)
            kept = [one for name, one in whole.parameters.items() if name != "out" or not self.of_method]
            self._signature = whole.replace(parameters=kept)
        return self._signature


def signature_of(function: Any) -> inspect.Signature:
    """Return the signature of a function, even before its code has been generated."""
    stub = stub_of(function)
    whole = inspect.signature(generated(function if stub is None else stub.original))
    kept = []
    for parameter in whole.parameters.values():
        name, kind = parameter.name, parameter.kind
        if kind is parameter.VAR_KEYWORD or (kind is parameter.KEYWORD_ONLY and name in NUMPY_NAMES):
            continue
        required = parameter.default is MISSING and kind is parameter.POSITIONAL_OR_KEYWORD
        kept.append(parameter.replace(default=parameter.empty) if required else parameter)
    try:
        return whole.replace(parameters=kept)
    except ValueError:  # an optional parameter precedes a required one
        return whole


def put(function: FunctionType, name: str, shown: Any = None) -> TorchFunctionWrapper:
    """Install a wrapper on `function`. Overrides receive `shown`, which is the function itself by default."""
    behind = moved(function)
    wrapper = TorchFunctionWrapper(behind, function if shown is None else shown, name)
    redirect_calls(function, behind, wrapper.enter)
    return wrapper


def wrapper_of(function: Any) -> TorchFunctionWrapper | None:
    """Return the wrapper of `function`, or None."""
    wrapper = getattr((function.__kwdefaults__ or {}).get("enter"), "__self__", None)
    return wrapper if isinstance(wrapper, TorchFunctionWrapper) else None

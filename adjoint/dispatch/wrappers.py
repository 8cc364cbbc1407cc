"""Wrappers in front of functions and methods, through which calls pass once anything overrides any of them.

A wrapper is new code in the function object that everybody already holds; the old code moves to a function behind it. So a
program that overrides nothing pays nothing, and one that does finds the functions to be the objects they were before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..tape.modes import STATE
from ..tape.torch_function import (
    DisableTorchFunctionSubclass,
    ask,
    has_override,
    mode_is_active,
    nobody,
    overloaded,
    tensor_likes,
)
from .arguments import MISSING
from .function_source import NUMPY_NAMES
from .lazy_stubs import generated, moved, put_in_front


class TorchFunctionWrapper:
    """What a wrapper does with a call.

    `function`: the function as it was, behind the wrapper; `shown`: what is said to have been called; `name`: its name in
    errors.

    Attributes:
        of_python: PyTorch writes it in Python. Such functions count plain tensors among the types, give what has a default by
            keyword, and say in other words that nobody knows them.
        of_operator: it belongs to a Python operator, and returns NotImplemented where nobody knows it, or for a TypeError.
        of_method: it is a method; if it takes nothing but the tensor, the type of that counts, too.
        of_attribute: it reads an attribute, or is one of the methods like that: the type of the tensor always counts.
        of_keywords: all arguments are passed on by keyword.
        of_many: classes get the tensors that it may take in a list one by one; a mode gets the list, whose items do not count.
        of_first: it asks the first argument's class alone; if that takes over nothing, this function is said to have been called.
        of_statement: it belongs to a statement, and returns nothing.
        of_data: classes do not take it over, as it takes them for data; modes do.
    """

    of_python = of_operator = of_method = of_attribute = of_statement = of_data = of_keywords = of_many = False
    of_first: Any = None

    def __init__(self, function: Callable[..., Any], shown: Any, name: str) -> None:
        self.function = function
        self.shown = shown
        self.name = name
        self._signature: inspect.Signature | None = None

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let the call pass, or hand it to those who take it over."""
        state = STATE
        found = overloaded(args, kwargs) if state.asks_classes else ()
        if state.function_modes and state.asks_modes:
            return self.taken_over([] if self.of_data else found, args, kwargs)
        if not found:
            return self.function(*args, **kwargs)
        if self.of_data:
            with DisableTorchFunctionSubclass():
                return self.function(*args, **kwargs)
        return self.taken_over(found, args, kwargs)

    def taken_over(self, found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What those who take the call over return."""
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
            raise nobody(self.name, likes, self.of_python)
        return None if self.of_statement else result

    def arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as a function in Python passes them on: by keyword, with its default, what has one."""
        parameters = self.signature().parameters
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters.values()):
            named = {name: one.default for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY}
            return args, {**named, **kwargs}
        try:
            bound = self.signature().bind(*args, **kwargs)
        except TypeError:  # wrong arguments, for whoever takes over to judge
            return args, kwargs
        bound.apply_defaults()
        values = {name: value for name, value in bound.arguments.items() if value is not MISSING}
        if self.of_keywords:
            return (), values
        required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
        return tuple(values.pop(name) for name in required if name in values), values

    def signature(self) -> inspect.Signature:
        """The parameters of the function behind the wrapper, without NumPy's names for them and the `out` of methods."""
        if self._signature is None:
            whole = signature_of(self.function)
            kept = [one for name, one in whole.parameters.items() if name != "out" or not self.of_method]
            self._signature = whole.replace(parameters=kept)
        return self._signature


_NUMPY_NAMES = {name for names in NUMPY_NAMES.values() for name in names}


def signature_of(function: Any) -> inspect.Signature:
    """The signature of a function, also of one whose code has not been generated yet."""
    whole = inspect.signature(generated(function))
    kept = []
    for parameter in whole.parameters.values():
        name, kind = parameter.name, parameter.kind
        if kind is parameter.VAR_KEYWORD or (kind is parameter.KEYWORD_ONLY and name in _NUMPY_NAMES):
            continue
        required = parameter.default is MISSING and kind is parameter.POSITIONAL_OR_KEYWORD
        kept.append(parameter.replace(default=parameter.empty) if required else parameter)
    try:
        return whole.replace(parameters=kept)
    except ValueError:  # one that may be left out stands before one that may not
        return whole


def put(function: FunctionType, name: str, shown: Any = None) -> TorchFunctionWrapper:
    """Put a wrapper in front of `function`; `shown`, by default the function itself, is what is said to have been called."""
    behind = moved(function)
    wrapper = TorchFunctionWrapper(behind, function if shown is None else shown, name)
    put_in_front(function, behind, wrapper.enter)
    return wrapper


def wrapper_of(function: Any) -> TorchFunctionWrapper | None:
    """The wrapper in front of `function`, if there is one."""
    wrapper = getattr((function.__kwdefaults__ or {}).get("enter"), "__self__", None)
    return wrapper if isinstance(wrapper, TorchFunctionWrapper) else None

"""Hand-written functions that also accept NumPy's parameter names, as PyTorch's functions do: `axis`, `keepdims`, `x`."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

from .._runtime.tracebacks import shorten
from .arguments import MISSING, invalid_arguments
from .lazy_stubs import LazyStub, checked_parameters, repeated
from .parameter_source import NUMPY_NAMES


def takes_dim(function: Callable[..., Any]) -> bool:
    """Return whether `function` has a parameter that NumPy names `axis`."""
    code = function.__code__
    return "dim" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def taking_numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function` so that NumPy's parameter names are translated, and the arguments of annotated parameters are checked."""
    checked = list(checked_parameters(function))
    no_numpy_names = frozenset(NUMPY_NAMES).isdisjoint

    @functools.wraps(function)
    def translating(*args: Any, **keywords: Any) -> Any:
        try:
            if keywords and not no_numpy_names(keywords):
                keywords = {NUMPY_NAMES.get(name, name): value for name, value in keywords.items()}
            for name, position, kind in checked:
                if name in keywords:
                    LazyStub.require(keywords[name], kind, name, position)
                elif position is not None and position < len(args):
                    LazyStub.require(args[position], kind, name, position)
            return function(*args, **keywords)
        except Exception as error:  # noqa: BLE001  (raised again)
            try:
                return repeated(error, function.__name__, sys._getframe())
            except Exception as final:
                shorten(final)
                raise

    return translating


def with_numpy_names(function: Callable[..., Any], names: dict[str, Any], *args: Any, **keywords: Any) -> Any:
    """Call `function` again, with NumPy's parameter names (`axis`, `keepdims`, `x`) translated."""
    given: dict[str, Any] = {}
    for name, value in names.items():
        if name not in NUMPY_NAMES:
            present = list(itertools.takewhile(lambda value: value is not MISSING, args))
            if len(present) == len(args):
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
            raise invalid_arguments(function.__name__, *present, **names)
        given[NUMPY_NAMES[name]] = value
    own = getattr(function, "__wrapped__", function)
    parameters = own.__code__.co_varnames[: own.__code__.co_argcount]
    defaults = dict(zip(reversed(parameters), reversed(own.__defaults__ or ()), strict=False))
    positional = {name: value for name, value in zip(parameters, args, strict=False) if value is not MISSING}
    for name in names:
        own_name = NUMPY_NAMES[name]
        if positional.pop(own_name, MISSING) is not defaults.get(own_name, MISSING):
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'")
    return function(**positional, **given, **keywords)

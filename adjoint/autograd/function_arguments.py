"""Binding the arguments of a custom function that is called with keywords or without arguments that have defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..tape.interpreters import innermost


def bound(
    forward: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], separate: bool
) -> tuple[Any, ...]:
    """The arguments of `forward` in order, without `ctx`, with defaults filled in; `separate`: `forward` takes no `ctx`."""
    signature = inspect.signature(forward)
    if separate:
        _refuse_keyword_only(signature, args, keywords)
        values = signature.bind(*args, **keywords)
        values.apply_defaults()
        return values.args
    parameters = [each for each in signature.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD][1:]
    names = [parameter.name for parameter in parameters]
    unknown = next((name for name in keywords if name not in names), None)
    if unknown is not None:
        raise TypeError(f"forward() got an unexpected keyword argument '{unknown}'")
    results = list(args)
    for position, parameter in enumerate(parameters[len(args) :], start=len(args)):
        if parameter.name not in keywords and parameter.default is parameter.empty:
            raise TypeError(f"forward() missing required argument: '{parameter.name}' (position {position})")
        results.append(keywords.get(parameter.name, parameter.default))
    return tuple(results)


def _refuse_keyword_only(signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raise if a keyword is one that cannot stand among the positional arguments, which are all that is recorded."""
    for name, parameter in signature.parameters.items():
        if name in keywords and parameter.kind is parameter.KEYWORD_ONLY:
            if innermost((*args, *keywords.values())) is not None:
                raise NotImplementedError(
                    "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
                    f"autograd.Function. Got: {keywords}"
                )
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")

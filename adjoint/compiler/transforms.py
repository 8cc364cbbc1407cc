"""Function transforms in a captured function. The transformed functions of the user are captured too."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from typing import Any

import adjoint as torch

from .._runtime import tracebacks
from .known import LIBRARIES, PACKAGE

TRANSFORMS = f"{PACKAGE}transforms{os.sep}"


def is_transform(function: types.FunctionType) -> bool:
    """Return whether a function of this package is a transform, or is the result of a transform."""
    return inner(function).__code__.co_filename.startswith(TRANSFORMS)


def inner(function: types.FunctionType) -> types.FunctionType:
    """Return a function without the wrappers of this package that only shorten tracebacks."""
    while function.__code__.co_filename == tracebacks.__file__:
        (function,) = in_closure(function)
    return function


def in_closure(function: types.FunctionType) -> list[types.FunctionType]:
    """Return the functions in the closure of a function."""
    contents = [cell.cell_contents for cell in function.__closure__ or ()]
    return [each for each in contents if type(each) is types.FunctionType]


def followed(value: Any, call: Callable[..., Any]) -> Any:
    """Return a function of a transform with another closure, so that it calls the user's functions through `call`."""
    if isinstance(value, (torch.nn.Module, types.MethodType)):
        return functools.partial(call, value)
    if type(value) is not types.FunctionType:
        return value
    if not value.__code__.co_filename.startswith(LIBRARIES):
        return functools.partial(call, value)
    if not (is_transform(value) and in_closure(value)):
        return value
    cells = [types.CellType(followed(cell.cell_contents, call)) for cell in value.__closure__ or ()]
    if all(new.cell_contents is cell.cell_contents for new, cell in zip(cells, value.__closure__ or (), strict=True)):
        return value
    made = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, tuple(cells))
    made.__kwdefaults__ = value.__kwdefaults__
    return made

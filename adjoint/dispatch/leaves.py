"""Functions written by hand that are one operator in PyTorch, called from other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._runtime.first_use import import_late
from ..tape.modes import FLAGS
from ..tape.torch_dispatch import DISPATCHING


def as_operator(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function. Modes and classes receive the operator that `aten.forms.LEAVES` lists under the function's name."""
    if FLAGS.special or DISPATCHING:
        return import_late("adjoint.aten.torch_dispatch").function_called(function.__name__, function, args, {})
    return function(*args)

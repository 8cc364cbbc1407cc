"""The compiled form of a kernel has the parameters of the NumPy form, unless the plan of the kernel selects the parameters."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import adjoint.kernels

pytest.importorskip("llvmlite")


def attached() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return the path of each compiled form that `@compiled` names, and the NumPy form."""
    found = {}
    for module in pkgutil.walk_packages(adjoint.kernels.__path__, "adjoint.kernels."):
        if ".compiled" in module.name:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            form = getattr(value, "__wrapped__", None)
            if form is not None and hasattr(value, "path"):
                source = inspect.getsource(form)
                if "compiled=" not in source and "_in_passes(" not in source:  # which selects the parameters
                    found[value.path] = form
    return iter(sorted(found.items()))


KERNELS = dict(attached())


def test_that_the_kernels_are_found() -> None:
    assert len(KERNELS) > 25


@pytest.mark.parametrize("path", KERNELS)
def test_same_parameters(path: str) -> None:
    module, _, name = path.rpartition(".")
    compiled = getattr(importlib.import_module(f"adjoint.kernels.compiled.{module}"), name)
    own, wanted = parameters(compiled), parameters(KERNELS[path])
    if own[-1][1] is inspect.Parameter.VAR_POSITIONAL:  # parameters that the form passes on as `*args`
        own, wanted = own[:-1], wanted[: len(own) - 1]
    assert own == wanted


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the name and kind of each parameter."""
    return [(one.name, one.kind) for one in inspect.signature(function).parameters.values()]

"""The names of the tensors and modules of a graph: from a model, from the user, or from the variables of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

from .._runtime.tracebacks import variables_in
from ..tensor import Tensor


class Names:
    """Names of tensors and of modules.

    `tensors[id]`: the names of a tensor. The first name is displayed. `paths[id]`: the path of a module. `variables`:
    the variables of the caller, by name. `model`: the model that the caller gave.
    """

    def __init__(self, model: Any = None) -> None:
        self.model = model
        self.tensors: dict[int, list[str]] = {}
        self.paths: dict[int, str] = {}
        self.variables: list[tuple[str, Tensor]] = []

    def add_parameter(self, name: str, tensor: Any) -> None:
        """Add the name `name` for `tensor`."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"params: expected a Tensor for {name!r}, but got {type(tensor).__name__}")
        self.tensors.setdefault(id(tensor), []).append(name)

    def add_module(self, module: Any, prefix: str = "", title: str = "") -> None:
        """Add the names of the parameters, buffers and modules of `module`.

        Without a prefix, `module` itself is called `title`.
        """
        for name, tensor in module.named_parameters(prefix, remove_duplicate=False):
            self.add_parameter(name, tensor)
        for name, tensor in module.named_buffers(prefix, remove_duplicate=False):
            self.add_parameter(name, tensor)
        for path, part in module.named_modules(prefix=prefix, remove_duplicate=False):
            self.paths.setdefault(id(part), path or title)


def is_module(value: Any) -> bool:
    """Return whether `value` is a model, of any library."""
    kind = type(value)  # not the value itself, which may create or import any attribute
    return hasattr(kind, "named_parameters") and hasattr(kind, "named_modules")


def names_from(params: Any) -> Names:
    """Return the names that `params` gives, which is None, a Module, a dict of names and tensors, or an iterable of pairs."""
    if params is None or is_module(params):
        return Names(params)
    names = Names()
    for name, tensor in pairs_of("params", params):
        names.add_parameter(name, tensor)
    return names


def pairs_of(argument: str, params: Any) -> Iterator[tuple[str, Tensor]]:
    """Return the names and tensors of `argument`.

    Raises:
        TypeError: if it is neither a dict nor an iterable of pairs.
    """
    expected = f"{argument}: expected a Module, a dict of names and tensors, or an iterable of pairs of them, but got "
    if not isinstance(params, Iterable):
        raise TypeError(expected + type(params).__name__)
    for pair in params.items() if isinstance(params, Mapping) else params:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"{expected}{type(params).__name__} of {type(pair).__name__}")
        yield str(pair[0]), pair[1]


def add_variables(names: Names, variables: Mapping[str, Any]) -> None:
    """Name each tensor after the variable that refers to it, if there is exactly one such variable."""
    found: dict[int, list[tuple[str, Tensor]]] = {}
    for name, value in variables.items():
        if isinstance(value, Tensor) and not name.startswith("_"):
            found.setdefault(id(value), []).append((name, value))
    for key, pairs in found.items():
        if len(pairs) == 1 and key not in names.tensors:
            names.tensors[key] = [pairs[0][0]]
        if len(pairs) == 1:
            names.variables.append(pairs[0])


def variables_of(frame: FrameType) -> dict[str, Any]:
    """Return the variables visible in `frame`: first local variables, then variables of the module."""
    return {**frame.f_globals, **variables_in(frame)}

"""The names of the tensors and modules of a graph: from a model, from the user, or from the variables of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

from ..tensor import Tensor

_OPTIMIZED = 0x1  # inspect.CO_OPTIMIZED: the code has fast locals, and `f_locals` is a copy


class Names:
    """Names by tensor, and modules by path.

    `tensors[id]`: the names of a tensor, of which the first is shown. `owned`: the ids of tensors that belong to a
    model. `forwards[id]`: the paths of the modules whose `forward` has that code object. `classes[path]`: the class
    name of a module. `variables`: the variables of the caller, by name.
    """

    def __init__(self) -> None:
        self.tensors: dict[int, list[str]] = {}
        self.owned: set[int] = set()
        self.forwards: dict[int, list[str]] = {}
        self.classes: dict[str, str] = {}
        self.variables: list[tuple[str, Tensor]] = []

    def add_parameter(self, name: str, tensor: Any) -> None:
        """Add the name `name` for `tensor`."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"params: expected a Tensor for {name!r}, but got {type(tensor).__name__}")
        self.tensors.setdefault(id(tensor), []).append(name)
        self.owned.add(id(tensor))

    def add_module(self, module: Any, prefix: str = "") -> None:
        """Add the names of the parameters, buffers and modules of `module`."""
        for name, tensor in module.named_parameters(prefix, remove_duplicate=False):
            self.add_parameter(name, tensor)
        for name, tensor in module.named_buffers(prefix, remove_duplicate=False):
            self.add_parameter(name, tensor)
        for path, part in module.named_modules(prefix=prefix, remove_duplicate=False):
            self.classes[path] = type(part).__name__
            code = getattr(type(part).forward, "__code__", None)
            if code is not None:
                self.forwards.setdefault(id(code), []).append(path)


def is_module(value: Any) -> bool:
    """Whether `value` is a model, of whatever library."""
    kind = type(value)  # not attributes of the value itself: it may create or import any attribute
    return hasattr(kind, "named_parameters") and hasattr(kind, "named_modules")


def names_from(params: Any, variables: Mapping[str, Any] | None = None) -> Names:
    """The names that `params` gives, and those of the caller's `variables`.

    Args:
        params: None, a Module, a dict of names and tensors, or an iterable of pairs.
        variables: the variables of the caller. If exactly one variable refers to a tensor, it gives the name; without
            `params`, the only model among the variables is used.
    """
    names = Names()
    variables = variables or {}
    if params is None:
        models = list({id(value): value for value in variables.values() if is_module(value)}.values())
        inner = {id(part) for model in models for part in model.modules() if part is not model}
        models = [model for model in models if id(model) not in inner]
        if len(models) == 1:
            names.add_module(models[0])
    elif is_module(params):
        names.add_module(params)
    else:
        for name, tensor in pairs_of("params", params):
            names.add_parameter(name, tensor)
    add_variables(names, variables)
    return names


def pairs_of(argument: str, params: Any) -> Iterator[tuple[str, Tensor]]:
    """The names and tensors of `argument`.

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
    """Name each tensor after the variable that refers to it, if there is exactly one."""
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
    """The variables visible in `frame`: local ones before those of the module."""
    return {**frame.f_globals, **own_variables(frame)}


def own_variables(frame: FrameType) -> dict[str, Any]:
    """The variables of the code that runs in `frame`."""
    local = frame.f_locals
    own = dict(local)
    if frame.f_code.co_flags & _OPTIMIZED and type(local) is dict:
        local.clear()  # a copy before Python 3.13, which the frame would keep with its tensors
    return own

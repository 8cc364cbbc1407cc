"""Functions that lower layers call and higher layers implement, in one record.

The implementing modules set the fields.

Imports point downward. If a lower layer needs a function of a higher layer (for example, to regenerate the node of a
view), it reads a field of `LATE`. The module that implements the field sets it, once. If the field is called before it
is set, the call imports the module.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from .first_use import import_late
from .tracebacks import PACKAGE

MODULES = {
    "argument_error": "dispatch.arguments",
    "check_data_set": "tape.interpreters",
    "copy_elements": "kernels.memory.copying",
    "note_creation": "tape.interpreters",
    "run_accumulate_grad": "autograd.hook_calls",
    "taken_over": "aten.torch_dispatch",
    "vmap": "transforms.reverse",
    "wrap_public_functions": "overrides",
}
"""The modules that implement the fields which may be called before the modules are imported."""


class LateBound:
    """The record of late-bound functions. Reading a field costs one attribute access."""

    argument_error: Callable[[Exception, str, FrameType], TypeError | None]
    """`(error, function, frame)`: replaces Python's error about an argument that should be a tensor or an integer."""

    check_data_set: Callable[[Any], None]
    """Raise an error if a transformed function sets the data of a tensor that it created or received."""

    copy_elements: Callable[[Any, Any], None]
    """Copy the elements of the second array into the first array, which has another memory order, by a compiled loop."""

    forward_tangent: Callable[[Any], Any]
    """Return the tangent of a tensor in forward mode. The field has no effect until forward mode is imported."""

    note_creation: Callable[..., None]
    """Record in which function transform a new tensor was created."""

    run_accumulate_grad: Callable[..., tuple[()]]
    """Call an `AccumulateGrad` with a gradient."""

    taken_over: Callable[..., Any]
    """Return the result of an operator call that a tensor class overrides."""

    text_within_transforms: Callable[[Any], str | None]
    """Return the text of a tensor that a transform wraps. The field has no effect until transforms are imported."""

    vmap: Callable[..., Callable[..., Any]]
    """Apply `vmap` to a function."""

    wrap_public_functions: Callable[[], None]
    """Install wrappers on all functions that classes can override. This happens once."""

    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, Unfilled(name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field.

        Raises:
            AttributeError: if the field does not exist, or is already set.
        """
        if not isinstance(getattr(self, name), Unfilled):
            raise AttributeError(f"the late-bound {name!r} is filled already")
        object.__setattr__(self, name, value)


class Unfilled:
    """The value of a field before the implementing module is imported. A call imports the module."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **names: Any) -> Any:
        """Import the module, which sets the field, and call the new value. Without a module, return None."""
        if self.name not in MODULES:
            return None
        module = f"{PACKAGE}.{MODULES[self.name]}"
        import_late(module)
        function = getattr(LATE, self.name)
        if isinstance(function, Unfilled):
            raise RuntimeError(f"{module} does not fill the late-bound {self.name!r}")
        return function(*args, **names)


LATE = LateBound()

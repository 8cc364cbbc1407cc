"""Functions that lower layers call and higher layers implement: one record, whose fields the implementing modules set.

Imports point downward. Where a lower layer needs a function of a higher layer (for example the node of a view that must
be regenerated), it reads a field of `LATE`. The module that implements the field sets it, once. A call before that
imports the module.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from .first_use import import_late
from .tracebacks import PACKAGE

MODULES = {
    "argument_error": "dispatch.arguments",
    "array_namespace": "array_api",
    "check_new_grad": "autograd.methods",
    "copy_elements": "kernels.memory.copying",
    "dispatched": "dispatch.torch_dispatch",
    "dispatched_inplace": "dispatch.torch_dispatch",
    "dispatching_class_defined": "dispatch.torch_dispatch",
    "is_shared": "multiprocessing.sharing",
    "legacy_array": "operators.create.legacy",
    "note_creation": "tape.interpreters",
    "reduce_storage": "serialization.pickled_storages",
    "reduce_tensor": "serialization.tensors",
    "rebase": "operators.memory.changed_views",
    "regenerate": "operators.memory.changed_views",
    "run_accumulate_grad": "autograd.hook_calls",
    "share_inference": "tape.inference_tensors",
    "share_memory": "multiprocessing.sharing",
    "share_storage": "multiprocessing.sharing",
    "subclassed": "tape.torch_function",
    "sum_of_gradients": "kernels.sparse.arithmetic",
    "vmap": "transforms.reverse",
}
"""The modules that implement the fields that may be called before their modules are imported."""


class LateBound:
    """The late-bound functions. Reading a field costs one attribute access."""

    __slots__ = (
        "argument_error",
        "array_namespace",
        "check_new_grad",
        "copy_elements",
        "dispatched",
        "dispatched_inplace",
        "dispatching_class_defined",
        "forward_tangent",
        "is_shared",
        "legacy_array",
        "note_creation",
        "rebase",
        "reduce_storage",
        "reduce_tensor",
        "regenerate",
        "run_accumulate_grad",
        "share_inference",
        "share_memory",
        "share_storage",
        "subclassed",
        "sum_of_gradients",
        "text_within_transforms",
        "vmap",
        "wrap_public_functions",
    )

    argument_error: Callable[[Exception, str, FrameType], TypeError | None]
    """`(error, function, frame)`: the error in place of Python's own about an argument that is no tensor, or no integer."""

    array_namespace: Callable[[str | None], ModuleType]
    """The namespace of the array API standard, of this version."""

    check_new_grad: Callable[[Any, Any], None]
    """Raise unless the second tensor may become the `.grad` of the first."""

    copy_elements: Callable[[Any, Any], None]
    """Copy the elements of the second array, of the same dtype, to the first one, in another order: a compiled loop."""

    dispatched: Callable[..., Any]
    """The result of an operator, computed by a class of tensors that takes it over."""

    dispatched_inplace: Callable[..., Any]
    """The same for an operator that changes its first argument."""

    dispatching_class_defined: Callable[[type[Any]], None]
    """Have a class of tensors that defines `__torch_dispatch__` take over operators."""

    forward_tangent: Callable[[Any], Any]
    """The tangent of a tensor in forward mode; None until forward mode is imported."""

    is_shared: Callable[[Any], bool]
    """Whether an array lies in memory that processes share."""

    legacy_array: Callable[..., Any]
    """The array of `Tensor(2, 3)` or `Tensor(data)`."""

    note_creation: Callable[..., None]
    """Record which function transform a new tensor was created in."""

    reduce_storage: Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
    """The function and the arguments that represent a storage in a pickle."""

    reduce_tensor: Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
    """The function and the arguments that represent a tensor in a pickle."""

    rebase: Callable[[Any, Any, int], None]
    """`(view, node, depth)`: make `node`, which has changed the view in place, part of the history of its base."""

    regenerate: Callable[[Any, bool], None]
    """`(view, told)`: give a stale view an edge into the current history of its base."""

    run_accumulate_grad: Callable[..., tuple[()]]
    """Call an `AccumulateGrad` with a gradient."""

    share_inference: Callable[[Any, Any], Any]
    """Make the first tensor, an alias of the second, an inference tensor if the second is one."""

    share_memory: Callable[[Any], None]
    """Move the memory of a tensor to where processes share it."""
    share_storage: Callable[[Any], None]
    """Move the memory of a storage to where processes share it."""

    subclassed: Callable[[type[Any]], None]
    """Called with each new class of tensors."""

    sum_of_gradients: Callable[[Any, Any, Any], Any]
    """The sum of two arrays of which one is sparse, in a tuple of one array if that is given third."""

    text_within_transforms: Callable[[Any], str | None]
    """The text of a tensor that a transform wraps; None until transforms are imported."""

    vmap: Callable[..., Callable[..., Any]]
    """`vmap` of a function."""

    wrap_public_functions: Callable[[], None]
    """Install wrappers on all functions that classes can override, once."""

    def __init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, Unfilled(name))
        for name in ("forward_tangent", "text_within_transforms"):
            object.__setattr__(self, name, Absent(name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field.

        Raises:
            AttributeError: if there is no such field, or if it has been set already.
        """
        if not isinstance(getattr(self, name), Unfilled):
            raise AttributeError(f"the late-bound {name!r} is filled already")
        object.__setattr__(self, name, value)


class Unfilled:
    """Stands in a field until the module that implements it is imported; a call imports the module."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **names: Any) -> Any:
        """Import the module, which fills the field, and call what it has filled it with."""
        module = f"{PACKAGE}.{MODULES[self.name]}"
        import_late(module)
        function = getattr(LATE, self.name)
        if isinstance(function, Unfilled):
            raise RuntimeError(f"{module} does not fill the late-bound {self.name!r}")
        return function(*args, **names)


class Absent(Unfilled):
    """The value of a field for which nothing applies until the higher layer is imported."""

    __slots__ = ()

    def __call__(self, *args: Any, **names: Any) -> None:
        """Return None for every tensor."""


def importing(module: str) -> Callable[[], None]:
    """A function that imports `module` on its first call and does nothing else."""

    def call() -> None:
        import_late(module)

    return call


LATE = LateBound()

"""What lower layers call and higher layers implement: one record, whose fields the implementing modules fill.

Imports point downward. Where something below needs something above (a stale view a new node, which operators make), it reads
a field of `LATE`; the module that implements the field assigns it, once. A call before that imports the module.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import ndarray

    from .device import device
    from .tensor import Tensor

    Array = ndarray[Any, Any]


MODULES = {
    "as_strided_node": "operators.memory.storage_views",
    "check_new_grad": "autograd.methods",
    "complex_view": "operators.memory.storage_views",
    "enter_device": "tape.mode_switches",
    "in_inference_mode": "tape.modes",
    "is_grad_enabled": "tape.modes",
    "lazy_view": "operators.memory.storage_views",
    "leave_device": "tape.mode_switches",
    "legacy_array": "operators.create.legacy",
    "mark_if_inference": "tape.inference_tensors",
    "note_node": "tape.anomaly",
    "real_view": "operators.memory.storage_views",
    "reduce_array": "serialization.rebuild",
    "regenerate": "tape.views",
    "replay": "operators.memory.storage_views",
    "run_accumulate_grad": "autograd.hook_calls",
    "share_inference": "tape.inference_tensors",
    "subclassed": "tape.torch_function",
    "vmap": "transforms.reverse",
}
"""What implements the fields that are called before their modules may have been imported."""


class LateBound:
    """The late-bound functions. To read a field costs one attribute."""

    __slots__ = (
        "as_strided_node",
        "check_new_grad",
        "complex_view",
        "engine_globals",
        "enter_device",
        "forward_tangent",
        "in_inference_mode",
        "is_grad_enabled",
        "lazy_view",
        "leave_device",
        "legacy_array",
        "mark_if_inference",
        "note_node",
        "real_view",
        "reduce_array",
        "regenerate",
        "replay",
        "run_accumulate_grad",
        "share_inference",
        "subclassed",
        "text_within_transforms",
        "vmap",
        "wrap_public_functions",
    )

    as_strided_node: Callable[[Tensor, Tensor, Any], Any]
    """`(base, view, edge of the base)`: the node of `as_strided` that makes the view."""

    check_new_grad: Callable[[Tensor, Any], None]
    """Raise unless the second may become the `.grad` of the first."""

    complex_view: Callable[[Tensor], Tensor]
    """`view_as_complex`."""

    engine_globals: dict[str, Any]
    """The globals of the engine, by which a frame of a backward is known; those of no frame until there is an engine."""

    enter_device: Callable[[device], device]
    """Make new tensors on the device from now on."""

    forward_tangent: Callable[[Any], Any]
    """The tangent of a tensor in forward mode; None until there is forward mode."""

    in_inference_mode: Callable[[], bool]
    """Whether this thread is in inference mode."""

    is_grad_enabled: Callable[[], bool]
    """Whether operators record in this thread."""

    lazy_view: Callable[[Tensor, int], Tensor]
    """A view of a tensor of which more bits are yet to be conjugated or negated."""

    leave_device: Callable[[device], None]
    """The reverse of `enter_device`."""

    legacy_array: Callable[..., Array]
    """The array of `Tensor(2, 3)` or `Tensor(data)`."""

    mark_if_inference: Callable[[Tensor], None]
    """Make a new tensor an inference tensor in inference mode."""

    note_node: Callable[[Any], None]
    """Keep with a new node, under anomaly detection, the traceback of the call that made it."""

    real_view: Callable[[Tensor], Tensor]
    """`view_as_real`."""

    reduce_array: Callable[[Array], tuple[Callable[..., Any], Any]]
    """What pickles an array as checkpoints hold it: a function and its arguments."""

    regenerate: Callable[[Tensor, bool], None]
    """`(view, told)`: give a stale view an edge into the present history of its base."""

    replay: Callable[[Tensor, tuple[Any, ...]], Any]
    """The edge of a view of the base that these operations make."""

    run_accumulate_grad: Callable[..., tuple[()]]
    """Call an `AccumulateGrad` with a gradient."""

    share_inference: Callable[[Tensor, Tensor], Tensor]
    """Make the first, an alias of the second, an inference tensor if that is one."""

    subclassed: Callable[[type[Tensor]], None]
    """Told of each new class of tensors."""

    text_within_transforms: Callable[[Any], str | None]
    """The text of a tensor that a transform wraps; None until there are transforms."""

    vmap: Callable[..., Callable[..., Any]]
    """`vmap` of a function."""

    wrap_public_functions: Callable[[], None]
    """Put wrappers in front of all functions that classes may take over, once."""

    def __init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, Unfilled(name))
        for name in ("engine_globals", "forward_tangent", "text_within_transforms"):
            object.__setattr__(self, name, Absent(name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Fill a field.

        Raises:
            AttributeError: if there is no such field, or if it is filled already.
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
        module = f"{__package__}.{MODULES[self.name]}"
        import_module(module)
        function = getattr(LATE, self.name)
        if isinstance(function, Unfilled):
            raise RuntimeError(f"{module} does not fill the late-bound {self.name!r}")
        return function(*args, **names)


class Absent(Unfilled):
    """Stands for what nothing has as long as the layer above is not imported."""

    __slots__ = ()

    def __call__(self, *args: Any, **names: Any) -> None:
        """Nothing, for every tensor."""


def importing(module: str) -> Callable[[], None]:
    """A function for which there is nothing left to do once `module` is imported."""

    def call() -> None:
        import_module(module)

    return call


LATE = LateBound()

"""What lower layers call and higher layers implement: one record, which each layer fills when it is imported.

Imports point downward. Where something below needs something above (a stale view a new node, which operators make), it reads
a field of `LATE`; the layer that implements the field assigns it, once.
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


class LateBound:
    """The late-bound functions, with the module that fills each. To read a field costs one attribute."""

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
    """`(base, view, edge of the base)`: the node of `as_strided` that makes the view; `operators.memory.storage_views`."""

    check_new_grad: Callable[[Tensor, Any], None]
    """Raise unless the second may become the `.grad` of the first; `autograd.methods`."""

    complex_view: Callable[[Tensor], Tensor]
    """`view_as_complex`; `operators.memory.storage_views`."""

    engine_globals: dict[str, Any]
    """The globals of the engine, by which a frame of a backward is known; `autograd.engine`."""

    enter_device: Callable[[device], device]
    """Make new tensors on the device from now on; `tape.modes`."""

    forward_tangent: Callable[[Any], Any]
    """The tangent of a tensor in forward mode; None until there is forward mode; `transforms.forward_mode`."""

    in_inference_mode: Callable[[], bool]
    """Whether this thread is in inference mode; `tape.modes`."""

    is_grad_enabled: Callable[[], bool]
    """Whether operators record in this thread; `tape.modes`."""

    lazy_view: Callable[[Tensor, int], Tensor]
    """A view of a tensor of which more bits are yet to be conjugated or negated; `operators.memory.storage_views`."""

    leave_device: Callable[[device], None]
    """The reverse of `enter_device`; `tape.modes`."""

    legacy_array: Callable[..., Array]
    """The array of `Tensor(2, 3)` or `Tensor(data)`; `operators.create.legacy`."""

    mark_if_inference: Callable[[Tensor], None]
    """Make a new tensor an inference tensor in inference mode; `tape.saved`."""

    note_node: Callable[[Any], None]
    """Keep with a new node, under anomaly detection, the traceback of the call that made it; `tape.anomaly`."""

    real_view: Callable[[Tensor], Tensor]
    """`view_as_real`; `operators.memory.storage_views`."""

    reduce_array: Callable[[Array], tuple[Callable[..., Any], Any]]
    """What pickles an array as checkpoints hold it: a function and its arguments; `serialization.rebuild`."""

    regenerate: Callable[[Tensor, bool], None]
    """`(view, told)`: give a stale view an edge into the present history of its base; `tape.views`."""

    replay: Callable[[Tensor, tuple[Any, ...]], Any]
    """The edge of a view of the base that these operations make; `operators.memory.storage_views`."""

    run_accumulate_grad: Callable[..., tuple[()]]
    """Call an `AccumulateGrad` with a gradient; `autograd.hook_calls`."""

    share_inference: Callable[[Tensor, Tensor], Tensor]
    """Make the first, an alias of the second, an inference tensor if that is one; `tape.saved`."""

    subclassed: Callable[[type[Tensor]], None]
    """Told of each new class of tensors; `tape.torch_function`."""

    text_within_transforms: Callable[[Any], str | None]
    """The text of a tensor that a transform wraps; None until there are transforms; `transforms.wrapped_tensors`."""

    vmap: Callable[..., Callable[..., Any]]
    """`vmap` of a function; `transforms.reverse`."""

    wrap_public_functions: Callable[[], None]
    """Put wrappers in front of all functions that classes may take over, once; `overrides`."""

    def __init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, Unfilled(name))
        for name in ("forward_tangent", "text_within_transforms"):
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
    """Stands in a field that nobody has filled."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **names: Any) -> Any:
        """Raise RuntimeError: the layer above is not imported."""
        raise RuntimeError(f"the late-bound {self.name!r} is not filled: what implements it is not imported")


class Absent(Unfilled):
    """Stands for what no tensor has as long as the layer above is not imported."""

    __slots__ = ()

    def __call__(self, *args: Any, **names: Any) -> None:
        """Nothing, for every tensor."""


def on_first_use(module: str, name: str) -> Callable[..., Any]:
    """A function that stands for function `name` of `module`, which is imported when it is first called."""
    function: Callable[..., Any] | None = None

    def call(*args: Any, **names: Any) -> Any:
        nonlocal function
        if function is None:
            function = getattr(import_module(module), name)
        return function(*args, **names)

    return call


def importing(module: str) -> Callable[[], None]:
    """A function for which there is nothing left to do once `module` is imported."""

    def call() -> None:
        import_module(module)

    return call


LATE = LateBound()

"""`torch._dynamo`: names of PyTorch's graph capture for functions of `compiler`, and names that libraries use."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any, TypeVar

from adjoint._runtime.absent import absent
from adjoint._runtime.first_use import further_names, late_names
from adjoint.compiler import compile, is_compiling
from adjoint.compiler.logs import COUNTERS as counters
from adjoint.compiler.options import config

_PLACES = {
    "adjoint.compiler": (
        "allow_in_graph assume_constant_result disable list_backends lookup_backend register_backend reset set_stance "
        "substitute_in_graph"
    ),
    "adjoint.compiler.errors": (
        "BackendCompilerFailed InvalidBackend RecompileError TorchDynamoException Unsupported UserError"
    ),
    "adjoint.compiler.function": "OptimizedModule",
    "adjoint.compiler.options": "error_on_graph_break graph_break",
    "adjoint.compiler.marks": "mark_dynamic mark_static maybe_mark_dynamic",
    "explanation": "explain",
    "testing": "testing",
}
"""The names that other modules define, by module."""

_LATE = {name: module for module, names in _PLACES.items() for name in names.split()}
_OWN = "config counters disallow_in_graph eval_frame export is_compiling mark_static_address optimize optimize_assert"
__all__ = [*_LATE, *_OWN.split(), "run", "utils"]

_T = TypeVar("_T")


def optimize(backend: Any = "inductor", **options: Any) -> Any:
    """Return a decorator that compiles functions, with the options of `torch.compile`."""
    return compile(
        backend=backend, **{{"nopython": "fullgraph"}.get(name, name): value for name, value in options.items()}
    )


def optimize_assert(backend: Any = "inductor", **options: Any) -> Any:
    """Return a decorator that compiles functions as one program each, with the options of `torch.compile`."""
    return optimize(backend, nopython=True, **options)


def run(fn: _T) -> _T:
    """Return a function or a module unchanged: its compiled functions keep their programs."""
    return fn


def disallow_in_graph(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing, because addresses are never fixed."""


export = absent("torch._dynamo.export", "use `torch.export.export`")
__getattr__ = late_names(__name__, _LATE)


def is_dynamo_supported() -> bool:
    """Return whether `torch.compile` captures functions."""
    return True


def is_compile_supported(device_type: Any) -> bool:
    """Return whether `torch.compile` captures functions on a device."""
    return str(device_type) == "cpu"


class TransformGetItemToIndex(nullcontext[None]):
    """A context that libraries enter around `vmap`.

    It has no effect, because indexing by tensors works under `vmap` without changes.
    """

    def __init__(self) -> None:
        super().__init__()


backends = common = eval_frame = exc = registry = utils = sys.modules[__name__]
_SAME = "_trace_wrapped_higher_order_op backends backends.common backends.registry eval_frame exc utils".split()
further_names(__name__, {**dict.fromkeys(_SAME, utils), "config": config})  # type: ignore[dict-item]

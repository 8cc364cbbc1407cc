"""`torch._dynamo`: names of PyTorch's graph capture for functions of `compiler`, and names that libraries use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, TypeVar

from adjoint._runtime.absent import absent
from adjoint._runtime.first_use import further_names
from adjoint.compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    register_backend,
    reset,
)
from adjoint.compiler.errors import InvalidBackend, TorchDynamoException, Unsupported
from adjoint.compiler.function import OptimizedModule
from adjoint.compiler.marks import mark_dynamic, mark_static, maybe_mark_dynamic
from adjoint.tape.modes import STATE

__all__ = [
    "InvalidBackend",
    "OptimizedModule",
    "TorchDynamoException",
    "Unsupported",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "explain",
    "export",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "register_backend",
    "reset",
    "utils",
]

_T = TypeVar("_T")


class _Settings(SimpleNamespace):
    @contextmanager
    def patch(self, name: str | dict[str, Any] | None = None, value: Any = None, **settings: Any) -> Iterator[None]:
        """A context, or a decorator, in which one or more settings have other values."""
        if name is not None:
            settings.update(name if isinstance(name, dict) else {name: value})
        before = {**vars(self)}
        vars(self).update(settings)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)


config = _Settings(
    cache_size_limit=8,
    recompile_limit=8,
    capture_scalar_outputs=False,
    compiled_autograd=False,
    suppress_errors=False,
    verbose=False,
)
"""Settings that programs may change. They have no effect."""


def optimize(backend: Any = "inductor", **options: Any) -> Any:
    """Return a decorator that compiles functions, with the options of `torch.compile`."""
    return compile(
        backend=backend, **{{"nopython": "fullgraph"}.get(name, name): value for name, value in options.items()}
    )


def disallow_in_graph(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def graph_break(msg: str = "") -> None:
    """End the capture of the calling function, which then runs without a program."""
    if is_compiling():
        STATE.capture.stop("graph_break() is called")


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing, because addresses are never fixed."""


_CAPTURE = "use `torch.fx.symbolic_trace`, or `adjoint.inspect` for the graph of a backward"
explain = absent("torch._dynamo.explain", _CAPTURE)
export = absent("torch._dynamo.export", _CAPTURE)


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


eval_frame = exc = utils = sys.modules[__name__]
further_names(__name__, dict.fromkeys(("eval_frame", "exc", "utils", "_trace_wrapped_higher_order_op"), utils))

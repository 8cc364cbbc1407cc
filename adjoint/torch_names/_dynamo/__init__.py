"""`torch._dynamo`: the parts of PyTorch's graph capture that libraries use.

Nothing is captured, and functions run unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, TypeVar

from adjoint import nn
from adjoint._runtime.absent import absent
from adjoint._runtime.first_use import further_names

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset

__all__ = [
    "OptimizedModule",
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
    """A decorator that returns the function itself."""
    return lambda function: function


def disallow_in_graph(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def graph_break(msg: str = "") -> None:
    """Do nothing: no graph is captured."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Do nothing: sizes are never fixed."""


maybe_mark_dynamic = mark_static = mark_dynamic


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing: addresses are never fixed."""


_CAPTURE = "use `torch.fx.symbolic_trace`, or `adjoint.inspect` for the graph of a backward"
explain = absent("torch._dynamo.explain", _CAPTURE)
export = absent("torch._dynamo.export", _CAPTURE)


class OptimizedModule(nn.Module):
    """The class of compiled modules in PyTorch. `torch.compile` returns modules themselves, so it has no instances here."""


def is_dynamo_supported() -> bool:
    """Return whether graphs can be captured from bytecode. They never can."""
    return False


def is_compile_supported(device_type: Any) -> bool:
    """Return whether `torch.compile` compiles. It never does: it returns functions unchanged."""
    return False


class TransformGetItemToIndex(nullcontext[None]):
    """A context that libraries enter around `vmap`.

    A context without effect, because indexing by tensors works inside without changes.
    """

    def __init__(self) -> None:
        super().__init__()


eval_frame = utils = sys.modules[__name__]
further_names(__name__, dict.fromkeys(("eval_frame", "utils", "_trace_wrapped_higher_order_op"), utils))

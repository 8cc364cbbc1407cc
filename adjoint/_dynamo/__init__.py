"""`torch._dynamo`: what libraries ask of PyTorch's graph capture, which does not exist here; functions run as they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeVar

from ..absent import absent
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from . import eval_frame, utils
from .eval_frame import OptimizedModule

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

config = SimpleNamespace(
    cache_size_limit=8,
    recompile_limit=8,
    capture_scalar_outputs=False,
    compiled_autograd=False,
    suppress_errors=False,
    verbose=False,
)
"""Settings; programs may change them, and they have no effect."""


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

"""`torch.compile` and `torch.compiler`: functions and modules run unchanged.

Kernels are compiled when they are first needed, whether or not a program requests it (`torch.backends.llvm`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from typing import Any, TypeVar

from adjoint._runtime.tracebacks import ending_at_caller

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

_T = TypeVar("_T")

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_FOR_DEBUGGING = ("aot_eager", "aot_eager_decomp_partition", "aot_ts", "eager", "eager_debug", "eager_noexcept", "ts")


class InvalidBackend(RuntimeError):
    """The backend is not known."""


@ending_at_caller
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return the function or the module unchanged.

    Without one, return a decorator that does so.

    Raises:
        AssertionError: if `model` cannot be called.
        RuntimeError: if both `mode` and `options` are given, or for an unknown mode.
        torch._dynamo.exc.InvalidBackend: for an unknown backend name.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if not (model is None or callable(model)):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if isinstance(backend, str) and backend not in list_backends(()):
        raise InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    return model if model is not None else lambda function: function


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function unchanged. Without one, return a decorator that does so."""
    return fn if fn is not None else lambda function: function


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """`disable`, under the name that PyTorch's own modules use."""
    return disable(fn, recursive)


def allow_in_graph(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def assume_constant_result(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def wrap_numpy(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def substitute_in_graph(original_fn: Any, **options: Any) -> Callable[[_T], _T]:
    """A decorator that returns the function itself."""
    return lambda function: function


def is_compiling() -> bool:
    """Return whether this code is being compiled. It never is."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Do nothing: no compiled graphs are kept."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs."""


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """Return the backends of `compile`, which run functions unchanged. With `()`, include those for debugging."""
    return sorted(["inductor", "cudagraphs", *([] if exclude_tags else _FOR_DEBUGGING)])


class set_stance(ContextDecorator):
    """Set the treatment of functions that are not compiled. It has no effect, because functions always run."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...

"""`torch.compile` and `torch.compiler`: functions and modules whose operators run as captured programs.

The first call of a compiled function runs the function, and records its operations. A later call that fits the program
runs the program instead. The program calls only kernels, forward and backward, without tensors, nodes and Python code
between them. Calls that fit no program run the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from typing import Any, TypeVar

from .._runtime.first_use import late_names
from .._runtime.tracebacks import ending_at_caller
from ..tape.modes import STATE, put
from .errors import InvalidBackend

__all__ = [
    "ExportedProgram",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "export",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "load",
    "reset",
    "save",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

__getattr__ = late_names(__name__, dict.fromkeys(("ExportedProgram", "export", "load", "save"), "exported"))

_T = TypeVar("_T")

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_STANCES = (
    "default",
    "eager_then_compile",
    "aot_eager_then_compile",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
)
_REGISTERED: dict[str, Any] = {}
_FOR_DEBUGGING = ("aot_eager", "aot_eager_decomp_partition", "aot_ts", "eager", "eager_debug", "eager_noexcept", "ts")


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
    """Return a function or a module that computes the same results in less time. Without `model`, return a decorator.

    The first call runs the function and captures the operators that it calls. Later calls run these operators as one
    program if everything that the function has read is unchanged: dtypes, shapes and strides of tensors, numbers,
    attributes, global variables, modes. Otherwise the call is captured again, up to eight times. If the size of a
    contiguous tensor among the arguments changes, the two captures become one program for any size of at least 2. This
    requires that both captures perform the same operations, and that comparisons of sizes have the same results. A
    function whose effects cannot be captured (it prints, reads elements of tensors, or changes the elements of an outside
    list) runs in Python. One warning names the line. The modules and functions that it calls are compiled instead.

    Args:
        model: a function or a module. For a module, the result is a module with the same parameters.
        fullgraph: whether to raise an error if the function would run without a program.
        dynamic: which numbers among the arguments, and which sizes of tensors, are inputs of a program. True selects
            all (sizes from the second capture on). None selects the numbers and sizes that have changed. False selects
            none, so that each number and each size has its own program.
        mode: "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs" or "lite", as in PyTorch. All modes
            give the same program. A CUDA graph would save nothing, because a call runs one function. Loops are chosen
            by sizes, without measurements. All passes together take milliseconds, so every mode runs all of them.
        options: accepted, but without effect.
        backend: if it is a function, or the name of a debugging backend such as "eager", `model` runs unchanged.
        disable: whether to return `model` itself.

    Raises:
        AssertionError: if `model` cannot be called.
        RuntimeError: if both `mode` and `options` are given, or if the mode is unknown.
        torch._dynamo.exc.InvalidBackend: if the name of the backend is unknown.
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
    if disable or backend not in ("inductor", "cudagraphs"):
        return model if model is not None else lambda function: function
    make = functools.partial(compiled, fullgraph=fullgraph, dynamic=dynamic)
    return make if model is None else make(model)


def compiled(model: Any, fullgraph: bool, dynamic: bool | None) -> Any:
    """Return a function or a module that runs as captured programs."""
    from adjoint.nn import Module

    from .function import CompiledFunction, OptimizedModule

    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph, dynamic)
    return CompiledFunction(model, fullgraph, dynamic=dynamic).as_function()


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function that is never captured. Its callers run without a program. Without `fn`, return a decorator."""
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)

    @functools.wraps(fn)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    disabled._torchdynamo_disable = True  # type: ignore[attr-defined]
    return disabled


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """The same as `disable`, under the name that PyTorch's own modules use."""
    return disable(fn, recursive)


def allow_in_graph(fn: _T) -> _T:
    """Let captures call a function, or each function in a list, without following it. Return `fn`.

    The function may read only its arguments, and may have no effects. The operators that it calls are captured.
    """
    for each in fn if isinstance(fn, (list, tuple)) else (fn,):
        if not callable(each):
            raise AssertionError("allow_in_graph expects a callable")
        each._torchdynamo_allowed = True
    return fn


def assume_constant_result(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def wrap_numpy(fn: _T) -> _T:
    """Return the function itself."""
    return fn


def substitute_in_graph(original_fn: Any, **options: Any) -> Callable[[_T], _T]:
    """Return a decorator that returns the function itself."""
    return lambda function: function


def is_compiling() -> bool:
    """Return whether a compiled function is being captured in this thread."""
    return STATE.capture is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return False, because compiled functions are never exported."""
    return False


def reset() -> None:
    """Remove all captured programs. Compiled functions are captured again."""
    from .function import ALL

    for function in tuple(ALL):
        function.reset()


def cudagraph_mark_step_begin() -> None:
    """Do nothing, because CUDA graphs do not exist."""


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """Return the backends of `compile`. With `()`, also return the debugging backends, which run functions unchanged."""
    return sorted({"inductor", "cudagraphs", *_REGISTERED, *([] if exclude_tags else _FOR_DEBUGGING)})


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Iterable[str] = ()) -> Any:
    """Let `compile` accept the name of a backend. As for backends that are functions, the model runs unchanged.

    Without `compiler_fn`, return a decorator.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"A callable function is expected, but {type(compiler_fn)} is provided.")
    _REGISTERED[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


class set_stance(ContextDecorator):
    """Set whether compiled functions of this thread run without programs ("force_eager").

    Use it as a function, a context, or a decorator.
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance = stance
        self.before = STATE.uncompiled
        put({"uncompiled": stance == "force_eager"})

    def __enter__(self) -> None:
        put({"uncompiled": self.stance == "force_eager"})

    def __exit__(self, *exception: object) -> None:
        put({"uncompiled": self.before})

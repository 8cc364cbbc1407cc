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
from .options import STANCE
from .options import compiler_config as config

__all__ = [
    "ExportedProgram",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "cudagraph_mark_step_begin",
    "disable",
    "export",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load",
    "load_cache_artifacts",
    "nested_compile_region",
    "reset",
    "save",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]

__getattr__ = late_names(__name__, dict.fromkeys(("ExportedProgram", "export", "load", "save"), "exported"))

_T = TypeVar("_T")

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_STANCES = "default eager_then_compile aot_eager_then_compile force_eager eager_on_recompile fail_on_recompile".split()
_DEFAULT: list[str | Callable[..., Any]] = ["inductor"]
_REGISTERED: dict[str, Any] = {}
_FOR_DEBUGGING = ("aot_eager", "aot_eager_decomp_partition", "aot_ts", "eager", "eager_debug", "eager_noexcept", "ts")


@ending_at_caller
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
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
        backend: a function of a graph (a `torch.fx.GraphModule`) and a list of example inputs, which returns the function
            that runs in place of the graph. It is called for each capture. The parameters are inputs, and sizes are fixed.
            A condition on a tensor, or a call of `print`, ends a graph, and another graph begins. Or the name of a
            backend: "eager" and "aot_eager" run the graphs. None: the default (see `set_default_backend`).
        name: accepted, but without effect.
        disable: whether to return `model` itself.
        recompile_limit: the maximum number of programs. None: `torch._dynamo.config.recompile_limit`, which is eight.
        isolate_recompiles: accepted, but without effect. No two calls of `compile` share programs.

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
    lookup_backend(backend := _DEFAULT[0] if backend is None else backend)
    if disable:
        return model if model is not None else lambda function: function
    if backend in ("inductor", "cudagraphs"):
        chosen = None
    else:
        from .graphs import Backend

        named = {name: value for name, value in (("mode", mode), ("options", options)) if value}
        chosen = Backend(lookup_backend(backend), named)
    make = functools.partial(compiled, fullgraph=fullgraph, dynamic=dynamic, backend=chosen, limit=recompile_limit)
    return make if model is None else make(model)


def compiled(model: Any, fullgraph: bool, dynamic: bool | None, backend: Any, limit: int | None) -> Any:
    """Return a function or a module that runs as captured programs."""
    from adjoint.nn import Module

    from .function import CompiledFunction, OptimizedModule

    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph, dynamic, backend, limit)
    return CompiledFunction(model, fullgraph, dynamic=dynamic, backend=backend, limit=limit).as_function()


def lookup_backend(compiler_fn: Any) -> Any:
    """Return the function that compiles graphs, by its name. A function is returned unchanged.

    Raises:
        torch._dynamo.exc.InvalidBackend: if the name is unknown.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in list_backends(()):
        raise InvalidBackend(
            f"Invalid backend: {compiler_fn!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    return _REGISTERED.get(compiler_fn, eager)


def eager(gm: Any, fake_tensor_inputs: Any, **options: Any) -> Any:
    """Return the graph itself: the backend "eager"."""
    return gm.forward


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
    """Declare that a function always returns the same constant. A program contains this constant. Return the function.

    >>> import adjoint as torch
    >>> @torch.compiler.assume_constant_result
    ... def factor():
    ...     return 2.0
    """
    fn._dynamo_marked_constant = True  # type: ignore[attr-defined]
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


def nested_compile_region(fn: Any = None, options: Any = None, **further: Any) -> Any:
    """Return the function itself. Without `fn`, return a decorator.

    >>> import adjoint as torch
    >>> @torch.compiler.nested_compile_region
    ... def block(x):
    ...     return x + 1
    """
    return fn if fn is not None else lambda function: function


def save_cache_artifacts() -> None:
    """Return None, because programs are not cached in files.

    >>> import adjoint as torch
    >>> torch.compiler.load_cache_artifacts(torch.compiler.save_cache_artifacts() or b"")
    """


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Return None, because programs are not cached in files (see `save_cache_artifacts`).

    >>> import adjoint as torch
    >>> torch.compiler.load_cache_artifacts(b"")
    """


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Return False. Processes do not agree on captures.

    >>> import adjoint as torch
    >>> torch.compiler.set_enable_guard_collectives(True)
    False
    """
    return False


def skip_all_guards_unsafe(guard_entries: Iterable[Any]) -> list[bool]:
    """Return False for each condition. Functions such as this one are accepted as options, but have no effect.

    >>> import adjoint as torch
    >>> step = torch.compile(lambda x: x + 1, options={"guard_filter_fn": torch.compiler.skip_all_guards_unsafe})
    """
    return [False for _ in guard_entries]


skip_guard_on_globals_unsafe = skip_guard_on_all_nn_modules_unsafe = skip_all_guards_unsafe
keep_portable_guards_unsafe = keep_tensor_guards_unsafe = skip_all_guards_unsafe
skip_guard_on_inbuilt_nn_modules_unsafe = skip_all_guards_unsafe


def get_default_backend() -> str | Callable[..., Any]:
    """Return the backend of `compile` if no backend is given.

    >>> import adjoint as torch
    >>> torch.compiler.get_default_backend()
    'inductor'
    """
    return _DEFAULT[0]


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Set the backend of `compile` for calls without a backend. None sets "inductor".

    >>> import adjoint as torch
    >>> torch.compiler.set_default_backend("eager")
    >>> torch.compiler.get_default_backend()
    'eager'
    >>> torch.compiler.set_default_backend(None)
    """
    lookup_backend(backend)
    _DEFAULT[0] = "inductor" if backend is None else backend


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """Return the backends of `compile`. With `()`, also return the debugging backends, which run the graphs."""
    return sorted({"inductor", "cudagraphs", *_REGISTERED, *([] if exclude_tags else _FOR_DEBUGGING)})


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Iterable[str] = ()) -> Any:
    """Let `compile` accept the name of a backend, which is a function of a graph and example inputs.

    Without `compiler_fn`, return a decorator.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"A callable function is expected, but {type(compiler_fn)} is provided.")
    _REGISTERED[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


class set_stance(ContextDecorator):
    """Set how compiled functions of this thread run.

    Use it as a function, a context, or a decorator.

    Args:
        stance: "force_eager": without programs. "eager_on_recompile": without a program if none fits the call.
            "fail_on_recompile": with an error if none fits. "eager_then_compile" and "aot_eager_then_compile": the first
            call without a program. "default": as usual.
        options: accepted, but without effect.

    >>> import adjoint as torch
    >>> f = torch.compile(lambda x: x + 1)
    >>> with torch.compiler.set_stance("fail_on_recompile"):
    ...     f(torch.ones(1))
    Traceback (most recent call last):
    RuntimeError: Detected recompile when torch.compile stance is 'fail_on_recompile'...
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        self.stance, self.before = stance, STANCE.get()
        self.set(stance)

    def set(self, stance: str) -> None:
        """Set the stance of this thread."""
        STANCE.set(stance)
        put({"uncompiled": stance == "force_eager"})

    def __enter__(self) -> None:
        self.set(self.stance)

    def __exit__(self, *exception: object) -> None:
        self.set(self.before)

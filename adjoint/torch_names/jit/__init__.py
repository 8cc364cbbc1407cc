"""`torch.jit`: scripting and tracing return their arguments unchanged, because Python runs them.

The results are the same. Files of TorchScript and its intermediate representation do not exist here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Final, TypeVar, cast

from adjoint import nn, typename
from adjoint._runtime.absent import absent
from adjoint._runtime.tracebacks import ending_at_caller

from .annotations import matches

_T = TypeVar("_T")

_NO_FILES = "there is no TorchScript; save the `state_dict` with `torch.save`"


class TracerWarning(Warning):
    """PyTorch's warning during tracing. It is never issued here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing, because there are no warnings to ignore."""


class ScriptModule(nn.Module):
    """The base class of scripted modules in PyTorch. Here it is an ordinary module."""


RecursiveScriptModule = ScriptModule


class ScriptFunction:
    """The class of scripted functions in PyTorch.

    Here scripted functions are ordinary functions, so this class has no instances.
    """


def script(obj: _T, *args: Any, **options: Any) -> _T:
    """Return `obj` unchanged: a function, a class, or a module with initialized parameters.

    Raises:
        RuntimeError: if a parameter or buffer of a lazy module is uninitialized.
    """
    own: Any = obj
    for module in own.modules() if isinstance(obj, nn.Module) else ():
        for kind, tensors in (("parameters", module._parameters), ("buffers", module._buffers)):
            for name, tensor in tensors.items():
                if nn.parameter.is_lazy(tensor):
                    raise RuntimeError(
                        f"'{typename(module)}' has uninitialized {kind} {name}. Did you forget to run a forward pass?"
                    )
    return obj


def trace(func: _T, example_inputs: Any = None, *args: Any, **options: Any) -> _T:
    """Return `func` unchanged. It is a function or a module, and is not called with the example inputs."""
    return func


def trace_module(mod: _T, inputs: dict[str, Any], *args: Any, **options: Any) -> _T:
    """Return `mod` itself."""
    return mod


def script_if_tracing(fn: _T) -> _T:
    """Return `fn` itself."""
    return fn


def script_method(fn: _T) -> _T:
    """Return `fn` itself."""
    return fn


def export(fn: _T) -> _T:
    """Return `fn` unchanged. PyTorch compiles such methods."""
    return fn


def unused(fn: _T) -> _T:
    """Return `fn` unchanged. PyTorch does not compile such methods."""
    return fn


def ignore(drop: Any = False, **options: Any) -> Any:
    """Return the decorated function itself, with or without arguments of the decorator."""
    return drop if callable(drop) else lambda fn: fn


def interface(obj: _T) -> _T:
    """Return the class `obj` unchanged."""
    return obj


def is_scripting() -> bool:
    """Return whether this code is being compiled to TorchScript. The answer is always False."""
    return False


def is_tracing() -> bool:
    """Return whether this code is being traced. The answer is always False."""
    return False


def annotate(the_type: Any, the_value: _T) -> _T:
    """Return the value."""
    return the_value


def Attribute(value: _T, type: Any) -> _T:
    """Return the value."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether `obj` is an instance of `target_type`, a class, an annotation such as `list[int]`, or a tuple of these."""
    return matches(obj, target_type)


@ending_at_caller
def fork(func: Callable[..., Any], *args: Any, **names: Any) -> Any:
    """Call the function immediately, and return its result as a future."""
    from ..futures import Future

    future: Any = Future()
    future.set_result(func(*args, **names))
    return future


@ending_at_caller
def wait(future: Any) -> Any:
    """Return the result of a `fork`."""
    return future.wait()


_fork, _wait = fork, wait


def freeze(mod: _T, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True) -> _T:
    """Return the module itself."""
    return mod


def optimize_for_inference(mod: _T, other_methods: Sequence[str] | None = None) -> _T:
    """Return the module itself."""
    return mod


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Do nothing, because there is no fuser."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Do nothing, because there is no fuser."""


def onednn_fusion_enabled() -> bool:
    """Return whether oneDNN fuses operators. The answer is always False."""
    return False


def optimized_execution(should_optimize: bool) -> nullcontext[None]:
    """A context without effect."""
    return nullcontext()


def fuser(name: str) -> nullcontext[None]:
    """A context without effect."""
    return nullcontext()


class strict_fusion(nullcontext[None]):
    """A context without effect."""

    def __init__(self) -> None:
        super().__init__()


def _overload(func: _T) -> _T:
    return func


_overload_method = _overload
_script_if_tracing = script_if_tracing


save = absent("torch.jit.save", _NO_FILES)
load = absent("torch.jit.load", _NO_FILES)
_get_trace_graph = absent("torch.jit._get_trace_graph", "there is no graph of TorchScript; `torch.fx` captures graphs")
CompilationUnit = absent("torch.jit.CompilationUnit", "call the Python functions")
Error = cast("type[Exception]", type("Error", (RuntimeError,), {"__doc__": "What TorchScript's interpreter raises."}))

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

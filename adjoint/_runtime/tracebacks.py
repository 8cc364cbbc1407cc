"""Errors and warnings that end at the user's line. Their tracebacks omit the frames of adjoint.

An exception collects a traceback frame wherever it leaves a function. A function at the border between user code and
adjoint catches the error, removes the frames of adjoint, and raises it again with a bare `raise`, which adds no frame.
Frames of user code that adjoint has called (hooks, custom functions, modules) stay. `ADJOINT_FULL_TRACEBACK=1` in the
environment keeps all frames.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

FULL = os.environ.get("ADJOINT_FULL_TRACEBACK", "0") not in ("", "0")

PACKAGE = __name__.partition(".")[0]

_INSIDE = f"{PACKAGE}."

PACKAGES = (PACKAGE, "torch")
"""The packages that classes of this package report as their origin."""

_OPTIMIZED = 0x1  # inspect.CO_OPTIMIZED: the code has fast locals, and `f_locals` is a copy

_LIBRARIES = {"numpy", "scipy", "ml_dtypes", "llvmlite"}
"""The packages that compute for this package, and the standard library."""

ALWAYS: set[str] = set()
"""Not empty if a program has requested that warnings which are given once are repeated (`set_warn_always`)."""

_STANDARD_LIBRARY = os.__file__.removesuffix("os.py")


def shorten(error: BaseException) -> None:
    """Remove the frames of adjoint from the tracebacks of `error` and its causes, and drop errors inside adjoint."""
    if FULL:
        return
    error.__traceback__ = without_our_frames(error.__traceback__)
    if error.__cause__ is not None:
        error.__cause__.__traceback__ = without_our_frames(error.__cause__.__traceback__)
    while error.__context__ is not None:
        context = error.__context__
        context.__traceback__ = without_our_frames(context.__traceback__)
        if context.__traceback__ is not None or context is error.__cause__:
            error = context
        else:
            error.__context__ = context.__context__


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the frames of adjoint and of the libraries that adjoint has called."""
    first = last = None
    inside = False
    while trace is not None:
        frame, following = trace.tb_frame, trace.tb_next
        inside = is_ours(frame.f_globals) or (inside and is_of_a_library(frame))
        if not inside:
            if last is None:
                first = trace
            else:
                last.tb_next = trace
            last = trace
        trace = following
    if last is not None:
        last.tb_next = None
    return first


def is_ours(names: dict[str, Any]) -> bool:
    """Return whether the module with this namespace belongs to adjoint."""
    package = names.get("__package__") or ""
    return package == PACKAGE or package.startswith(_INSIDE)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside this package, at any depth of the call stack."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and is_ours(frame.f_globals):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_given: set[str] = set()


def warn_once(what: str, message: str) -> None:
    """Warn if the program has not been warned of `what`, or has requested that such warnings are repeated."""
    if ALWAYS or what not in _given:
        if not ALWAYS:
            _given.add(what)
        warn(message)


def is_of_a_library(frame: FrameType) -> bool:
    """Return whether the frame belongs to the standard library, or to one of the libraries that compute for adjoint."""
    package = frame.f_globals.get("__package__") or ""
    file = frame.f_code.co_filename
    return (
        package.partition(".")[0] in _LIBRARIES
        or file.startswith("<frozen ")
        or (file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file)
    )


def variables_in(frame: FrameType) -> dict[str, Any]:
    """Return the variables in `frame`. Before Python 3.13, the frame must not keep them."""
    local = frame.f_locals
    found = dict(local)
    if frame.f_code.co_flags & _OPTIMIZED and type(local) is dict:
        local.clear()
    return found


def ending_at_caller(function: _Function) -> _Function:
    """Make the errors of `function`, which the user's code calls, end at the line of that call."""
    if "shorten" in getattr(function, "__code__", _NOTHING).co_names:
        return function  # it shortens its tracebacks itself

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return wrapper  # type: ignore[return-value]


def frame_of_caller(levels: int = 1) -> FrameType:
    """Return the frame of the caller's caller, or a frame further up. Frames of `ending_at_caller` do not count."""
    frame: Any = sys._getframe(1)
    while levels:
        frame = frame.f_back
        levels -= frame.f_globals is not globals()
    return frame


_NOTHING = (lambda: None).__code__


def end_at_caller(owner: Any, *names: str) -> None:
    """Make the errors of functions of a module, given by its namespace, or of methods of a class end at the user's call."""
    for name in names:
        if isinstance(owner, dict):
            owner[name] = ending_at_caller(owner[name])
        elif name in vars(owner):
            method = vars(owner)[name]
            bound = isinstance(method, (staticmethod, classmethod))
            setattr(owner, name, type(method)(ending_at_caller(method.__func__)) if bound else ending_at_caller(method))


FUNCTIONS_OF = frozenset(
    """
    distributed.checkpoint.state_dict distributed.collectives distributed.messages distributed.nn.functional
    distributed.objects distributions.utils func.rearranging masked.reductions masked.tensors multiprocessing
    nn.attention.bias nn.grad nn.utils.clip_grad nn.utils.convert_parameters nn.utils.fusion nn.utils.parametrizations
    nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.spectral_norm nn.utils.stateless nn.utils.weight_norm
    signal.windows
    """.split()
)
"""The files whose own public functions end their errors at the user's call."""

EXPORTS_OF = frozenset(
    """
    amp autograd.forward_ad autograd.functional autograd.profiler distributed.checkpoint.files distributed.checkpoint.saving
    distributed.device_mesh distributed.stores distributed.tensor.making distributions.constraints distributions.transforms
    futures fx hub inspect library multiprocessing nn.functional.enumerated nn.functional.recurrent optim.swa_utils profiler
    quasirandom testing utils.benchmark utils.dlpack utils.selective_checkpoint
    """.split()
)
"""The files whose names in `__all__` end their errors at the user's call. Other files may define these names."""


def end_errors_of(file: str, names: dict[str, Any]) -> None:
    """Make errors of a module, given by its file and its namespace, end at the user's call, and errors of its late names."""
    if type(names.get("__getattr__")) is FunctionType:
        end_at_caller(names, "__getattr__")
    if file in FUNCTIONS_OF:
        end_functions_at_caller(names)
    if file in EXPORTS_OF:
        end_public_at_caller(names)


def end_functions_at_caller(names: dict[str, Any], but: tuple[str, ...] = ()) -> None:
    """Make errors of the public functions of a module, given by its namespace, `but` for some, end at the user's call."""
    own = [name for name, value in names.items() if type(value) is FunctionType and _defined_in(value) is names]
    end_at_caller(names, *(name for name in own if not name.startswith("_") and name not in but))


def end_public_at_caller(names: dict[str, Any]) -> None:
    """Make errors of the names that a module exports in `__all__` end at the user's call. Other modules may define the names."""
    for name in names["__all__"]:
        value = names.get(name)
        if isinstance(value, type):
            end_methods_at_caller(value)
        elif type(value) is FunctionType and is_ours(_defined_in(value)):
            names[name] = ending_at_caller(value)
            home = _defined_in(value)
            if home.get(name) is value:
                home[name] = names[name]


def _defined_in(function: Any) -> dict[str, Any]:
    """Return the namespace of the module that defines a function, ignoring wrappers."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    namespace: dict[str, Any] = function.__globals__
    return namespace


def end_constructor_at_caller(kind: type) -> None:
    """Make errors of the constructor end at the line of the user's call, unless the user has defined the class.

    An error about a wrong call names the class that the user has called, even if it inherits the constructor from a
    private class.
    """
    if kind.__module__.partition(".")[0] not in PACKAGES:
        return
    if "__init__" not in vars(kind) and not kind.__name__.startswith("_"):
        owner = next(base for base in kind.__mro__ if "__init__" in vars(base))
        if owner.__name__.startswith("_"):
            constructor: Any = vars(owner)["__init__"]
            own = duplicate(getattr(constructor, "__wrapped__", constructor))
            own.__doc__, own.__qualname__ = constructor.__doc__, f"{kind.__qualname__}.__init__"
            setattr(kind, "__init__", own)  # noqa: B010
    end_at_caller(kind, "__init__")


def duplicate(function: FunctionType) -> FunctionType:
    """Return a copy of the function."""
    other = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    other.__kwdefaults__, other.__qualname__ = function.__kwdefaults__, function.__qualname__
    other.__annotations__, other.__doc__ = function.__annotations__, function.__doc__
    other.__dict__.update(function.__dict__)
    return other


def end_methods_at_caller(kind: type, but: tuple[str, ...] = ()) -> None:
    """Make errors of the constructor, operators and public methods end at the user's call, `but` for some methods."""
    if kind.__module__.partition(".")[0] in PACKAGES:
        kinds = (FunctionType, staticmethod, classmethod)
        but += _UNDIVIDED + ("__init__",) * hasattr(kind, "pending")  # a context that its constructor switches
        functions = [name for name, value in vars(kind).items() if type(value) in kinds and name not in but]
        end_at_caller(kind, *(name for name in functions if not name.startswith("_") or name.startswith("__")))


_UNDIVIDED = ("__enter__", "__exit__", "__del__")
"""Methods that no interrupt may divide. A wrapper around them would add a place for an interrupt."""

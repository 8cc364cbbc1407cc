"""The override protocol `__torch_function__`: how classes and modes override calls, through `dispatch.wrappers`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from itertools import takewhile
from types import EllipsisType, NoneType
from typing import Any, ClassVar

import numpy

from .._runtime.late_bound import LATE
from .._runtime.tracebacks import warn
from ..device import Size, device
from ..dtypes import dtype
from ..tensor import Tensor
from .modes import STATE
from .torch_dispatch import NotAsking, among, check_plain_method, disabled_torch_dispatch_impl

ORDINARY = {Tensor, Size, int, float, bool, complex, str, NoneType, slice, EllipsisType, numpy.ndarray, dtype, device}
"""The most common types of arguments. None of them overrides calls."""


class DisableTorchFunctionSubclass(NotAsking):
    """A context manager in which this thread does not call `__torch_function__` of classes. It still calls modes."""

    values: ClassVar[dict[str, bool]] = {"asks_classes": False}


class DisableTorchFunction(NotAsking):
    """A context manager in which `__torch_function__` of neither classes nor modes is called in this thread."""

    values: ClassVar[dict[str, bool]] = {"asks_classes": False, "asks_modes": False}


def disabled_torch_function_impl(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The `__torch_function__` of a tensor class that overrides nothing."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def mode_is_active() -> bool:
    """Return whether a mode would be called first."""
    return bool(STATE.function_modes) and STATE.asks_modes


# --- which arguments override -----------------------------------------------------------------------------------


def has_override(value: Any) -> bool:
    """Return whether the class of `value`, other than `Tensor` itself, has a `__torch_function__` that is not disabled."""
    kind = type(value)
    if kind in ORDINARY:
        return False
    method = getattr(kind, "__torch_function__", None)
    if method is None or method is disabled_torch_function_impl:
        return False
    return getattr(method, "__module__", None) != "torch._tensor"  # PyTorch's own method would call us again


def is_tensor_like(value: Any) -> bool:
    """Return whether `value` is a tensor or has a `__torch_function__`."""
    return type(value) is Tensor or hasattr(value, "__torch_function__")


def overloaded(args: Iterable[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments, and items of nested lists and tuples, whose classes override the call."""
    found = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind is list or kind is tuple:
            for item in value:
                found += [each for each in (item if type(item) in (list, tuple) else (item,)) if has_override(each)]
        elif kind not in ORDINARY and has_override(value):
            found.append(value)
    return among(found, has_override) if len(found) > 1 else found


def tensor_likes(args: Iterable[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments that `overloaded` returns, and plain tensors, which PyTorch's functions written in Python include."""
    found = []
    for value in (*args, *kwargs.values()):
        found += [item for item in (value if type(value) in (list, tuple) else (value,)) if counts(item)]
    return among(found, counts)


def counts(value: Any) -> bool:
    """Return whether `value` counts as an overriding argument for functions that PyTorch writes in Python."""
    method = getattr(type(value), "__torch_function__", None)
    return method is not None and method is not disabled_torch_function_impl


def has_torch_function(arguments: Iterable[Any]) -> bool:
    """Return whether a mode, or the class of one of `arguments` (without items of lists), overrides a call with them."""
    if not hasattr(arguments, "__iter__"):
        raise TypeError("expected a sequence")
    return mode_is_active() or (STATE.asks_classes and any(map(has_override, arguments)))


def has_torch_function_unary(argument: Any) -> bool:
    """Return `has_torch_function` for a single argument."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """Return `has_torch_function` for arguments that are passed separately."""
    return has_torch_function(arguments)


# --- calling overrides ------------------------------------------------------------------------------------------


def ask(func: Any, likes: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None, of_python: bool) -> Any:
    """Call `__torch_function__` of the innermost mode, then of each of `likes`, until one returns a result."""
    types = tuple(type(value) for value in likes)
    if mode_is_active():
        modes = STATE.function_modes
        STATE.function_modes = modes[:-1]
        check_plain_method(modes[-1].__torch_function__, "__torch_function__")
        try:
            result = modes[-1].__torch_function__(func, types, args, kwargs)
        finally:
            STATE.function_modes = modes
        if result is not NotImplemented or not of_python:
            return result
    for value in likes if STATE.asks_classes else ():
        if type(value).__torch_function__ is disabled_torch_function_impl:
            continue
        method = value.__torch_function__
        if getattr(method, "__self__", None) is value:
            warn(
                f"Defining your `__torch_function__{'' if of_python else '`'} as a plain method is deprecated and will be an "
                "error in future, please define it as a classmethod.",
                DeprecationWarning if of_python else UserWarning,
            )
        result = method(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def taken_over(shown: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of the overrides of `shown` or, if nothing overrides the call, of `function`."""
    likes = overloaded(args, kwargs) if STATE.asks_classes else []
    if not likes and not mode_is_active():
        return function(*args, **kwargs)
    result = ask(shown, likes, args, kwargs or None, False)
    if result is NotImplemented:
        raise no_implementation_error(str(shown), likes, False)
    return result


def no_implementation_error(name: str, likes: list[Any], of_python: bool) -> TypeError:
    """Return the error for a call for which all overrides returned NotImplemented."""
    mode = STATE.function_modes[-1] if mode_is_active() else None
    if of_python:
        also = "" if mode is None else f" nor in mode {mode}"
        kinds = [type(value) for value in likes if type(value) is not Tensor and mode is None]
        return TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: {kinds}{also}"
        )
    asked = [f"tensor subclass {type(value)}" for value in likes] if mode is None else [f"mode object {mode}"]
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "".join(f"  - {one}\n" for one in asked)
        + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


# --- the default implementation of tensor classes ---------------------------------------------------------------


NOT_WRAPPED: set[Any] = {vars(Tensor)[name].__get__ for name in ("grad", "_base", "_grad")}
"""Functions whose result tensors are not converted to the class of the arguments."""


def torch_function(
    cls: type[Tensor],
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run `func` as if its arguments were plain tensors, and convert the tensors that it returns to this class."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in NOT_WRAPPED else converted(result, cls)


def converted(result: Any, cls: type[Tensor]) -> Any:
    """Return `result` with its tensors, including items of lists and tuples, converted to instances of `cls`."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and type(result) is not Size:
        items = [converted(item, cls) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


def subclassed(cls: type[Tensor]) -> None:
    """Prepare for a new tensor class that may override calls or operators."""
    if cls.__torch_dispatch__ is not disabled_torch_dispatch_impl:  # type: ignore[attr-defined]
        cls._takes_operators_over()
        if getattr(cls.__torch_function__, "__func__", None) is torch_function:  # `__torch_dispatch__` is enough
            cls.__torch_function__ = disabled_torch_function_impl
    if cls.__torch_function__ is not disabled_torch_function_impl:
        LATE.wrap_public_functions()


def requires_wrappers(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Return whether a call with these arguments requires that wrappers are installed first."""
    if overloaded(args, keywords):
        return True
    return STATE.capture is None and overriding_class_defined()  # captures meet stubs often, and see no new class


_OTHERS = ("adjoint", "torch")
"""Packages whose classes are ignored. If PyTorch is in the same program, its classes override nothing here."""

_newest: Callable[[], type | None] = lambda: None  # replaced by a weak reference


def overriding_class_defined() -> bool:
    """Return whether an overriding class with base `object` has been defined since the previous call of this function."""
    global _newest
    before, classes = _newest(), object.__subclasses__()  # in the order of their definition
    _newest = weakref.ref(classes[-1])
    return any(map(is_reason, takewhile(lambda kind: kind is not before, reversed(classes))))


def is_reason(kind: type) -> bool:
    """Return whether a class requires wrappers."""
    names = vars(kind)
    method = names.get("__torch_function__")
    if method is None or method is disabled_torch_function_impl:
        return False
    return str(names.get("__module__")).partition(".")[0] not in _OTHERS


torch_function.__name__, torch_function.__qualname__ = "__torch_function__", "Tensor.__torch_function__"
Tensor.__torch_function__ = classmethod(torch_function)
Tensor._subclassed = classmethod(subclassed)


class _WrapperState:
    """`open`: whether wrappers are installed. Formulas on saved tensors then run with override calls disabled."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open = False


WRAPPERS = _WrapperState()

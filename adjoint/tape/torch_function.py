"""The override protocol, `__torch_function__`: what classes, and modes, take over of the calls they appear in.

Nothing asks these questions before somebody overrides something: then wrappers are put in front of what can be overridden
(`adjoint.dispatch.wrappers`), and they ask here.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from itertools import takewhile
from types import EllipsisType, NoneType
from typing import Any

import numpy

from ..device import Size, device
from ..dtypes import dtype
from ..late_bound import LATE
from ..notices import warn
from ..tensor import Tensor
from .modes import STATE

ORDINARY = {Tensor, Size, int, float, bool, complex, str, NoneType, slice, EllipsisType, numpy.ndarray, dtype, device}
"""The commonest types of arguments, none of which takes over a call."""


class DisableTorchFunctionSubclass:
    """Within this block, classes take over no calls of this thread; modes still do."""

    def __enter__(self) -> None:
        self.before = STATE.asks_classes
        STATE.asks_classes = False

    def __exit__(self, *exception: object) -> None:
        STATE.asks_classes = self.before


class DisableTorchFunction:
    """Within this block, neither classes nor modes take over calls of this thread."""

    def __enter__(self) -> None:
        self.before = STATE.asks_classes, STATE.asks_modes
        STATE.asks_classes = STATE.asks_modes = False

    def __exit__(self, *exception: object) -> None:
        STATE.asks_classes, STATE.asks_modes = self.before


def disabled_torch_function_impl(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The `__torch_function__` of a class of tensors that takes over nothing."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def classes_are_asked() -> bool:
    """Whether classes take over calls of this thread."""
    return STATE.asks_classes


def modes_entered() -> int:
    """How many modes this thread has entered."""
    return len(STATE.function_modes)


def mode_is_active() -> bool:
    """Whether a mode would be asked first."""
    return bool(STATE.function_modes) and STATE.asks_modes


# --- who takes over -------------------------------------------------------------------------------------------


def has_override(value: Any) -> bool:
    """Whether the class of `value`, other than `Tensor` itself, has a `__torch_function__` that is not disabled."""
    kind = type(value)
    if kind in ORDINARY:
        return False
    method = getattr(kind, "__torch_function__", None)
    return method is not None and method is not disabled_torch_function_impl


def is_tensor_like(value: Any) -> bool:
    """Whether `value` is a tensor or has a `__torch_function__`."""
    return type(value) is Tensor or hasattr(value, "__torch_function__")


def among(arguments: Iterable[Any], wanted: Callable[[Any], bool]) -> list[Any]:
    """The first argument of each class that is `wanted`, classes before those they derive from, else from left to right."""
    found: list[Any] = []
    kinds: list[type] = []
    for value in arguments:
        kind = type(value)
        if kind in kinds or not wanted(value):
            continue
        place = next((index for index, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
        found.insert(place, value)
        kinds.insert(place, kind)
    return found


def overloaded(args: Iterable[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Those of the arguments of a call, also in lists and tuples, whose classes take it over."""
    found = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind is list or kind is tuple:
            found += [item for item in value if has_override(item)]
        elif kind not in ORDINARY and has_override(value):
            found.append(value)
    return among(found, has_override) if len(found) > 1 else found


def tensor_likes(args: Iterable[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The same with plain tensors: functions that PyTorch writes in Python count them in."""
    found = []
    for value in (*args, *kwargs.values()):
        found += [item for item in (value if type(value) in (list, tuple) else (value,)) if counts(item)]
    return among(found, counts)


def counts(value: Any) -> bool:
    """Whether functions that PyTorch writes in Python count `value` among those that take over calls."""
    method = getattr(type(value), "__torch_function__", None)
    return method is not None and method is not disabled_torch_function_impl


def has_torch_function(arguments: Iterable[Any]) -> bool:
    """Whether a mode, or one of `arguments` (not those in lists), takes over a call with them."""
    return mode_is_active() or (STATE.asks_classes and any(map(has_override, arguments)))


def has_torch_function_unary(argument: Any) -> bool:
    """`has_torch_function` of a single argument."""
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    """`has_torch_function` of arguments given one by one."""
    return has_torch_function(arguments)


# --- taking over ----------------------------------------------------------------------------------------------


def ask(func: Any, likes: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None, of_python: bool) -> Any:
    """What the innermost mode, or else the first of `likes` that knows `func`, returns for the call.

    NotImplemented if none does. A mode has the last word on all but the functions that PyTorch writes in Python.
    """
    types = tuple(type(value) for value in likes)
    if mode_is_active():
        modes = STATE.function_modes
        STATE.function_modes = modes[:-1]
        try:
            result = modes[-1].__torch_function__(func, types, args, kwargs)
        finally:
            STATE.function_modes = modes
        if result is not NotImplemented or not of_python:
            return result
    for value in likes if STATE.asks_classes else ():
        method = value.__torch_function__
        if method is disabled_torch_function_impl:
            continue
        if getattr(method, "__self__", None) is value:
            warn_of_plain_method(of_python)
        result = method(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


PLAIN_METHOD = (
    "Defining your `__torch_function__{} as a plain method is deprecated and will be an error in future, please define it as a "
    "classmethod."
)


def warn_of_plain_method(of_python: bool) -> None:
    """The warning at a `__torch_function__` that is no class method."""
    warn(PLAIN_METHOD.format("" if of_python else "`"), DeprecationWarning if of_python else UserWarning)


def nobody(name: str, likes: list[Any], of_python: bool) -> TypeError:
    """The error where all that were asked returned NotImplemented."""
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


# --- what a class of tensors does unless it says otherwise ----------------------------------------------------


NOT_WRAPPED: set[Any] = {vars(Tensor)[name].__get__ for name in ("grad", "_base", "_grad")}
"""What gives a tensor as it is, not as one of the class that asked."""


def torch_function(
    cls: type[Tensor],
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run `func` as if its arguments were plain tensors, and make the tensors it returns instances of this class.

    NotImplemented if one of `types` is not a class that this one derives from: then it does not know how to mix them.
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in NOT_WRAPPED else converted(result, cls)


def converted(result: Any, cls: type[Tensor]) -> Any:
    """`result` with the tensors in it, also those in lists and tuples, as instances of `cls`."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and type(result) is not Size:
        items = [converted(item, cls) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


def subclassed(cls: type[Tensor]) -> None:
    """A new class of tensors that may take over calls has the wrappers installed."""
    if cls.__torch_function__ is not disabled_torch_function_impl:
        LATE.wrap_public_functions()


def about_to_be_overridden(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether a call with these arguments, before wrappers are installed, is a reason to open them."""
    return bool(overloaded(args, keywords)) or overriding_class_defined()


_OTHERS = ("adjoint", "torch")
"""Packages whose classes are no reason: PyTorch's own, where both are in one program, override nothing of ours."""

_newest: Callable[[], type | None] = lambda: None  # later a weak reference


def overriding_class_defined() -> bool:
    """Whether, since this was last asked, a class derived from `object` alone has been defined that takes over calls."""
    global _newest
    before, classes = _newest(), object.__subclasses__()  # in the order of their definition
    _newest = weakref.ref(classes[-1])
    return any(map(is_reason, takewhile(lambda kind: kind is not before, reversed(classes))))


def is_reason(kind: type) -> bool:
    """Whether a class is a reason to install wrappers."""
    names = vars(kind)
    method = names.get("__torch_function__")
    if method is None or method is disabled_torch_function_impl:
        return False
    return str(names.get("__module__")).partition(".")[0] not in _OTHERS


torch_function.__name__, torch_function.__qualname__ = "__torch_function__", "Tensor.__torch_function__"
Tensor.__torch_function__ = classmethod(torch_function)
LATE.subclassed = subclassed


class _Doors:
    """`open`: wrappers are installed, so that formulas, which run on tensors that were saved, must pass them unasked."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open = False


WRAPPERS = _Doors()


def recorded(node: Any, grad: Any, retain_graph: bool, edges: Any) -> Any:
    """`node.backward_recorded(grad, keep, edges)`, none of whose operations is taken over, unless they are the user's own."""
    if not WRAPPERS.open or node.runs_undefined:  # as custom functions alone do
        return node.backward_recorded(grad, retain_graph, edges)
    with DisableTorchFunction():
        return node.backward_recorded(grad, retain_graph, edges)

"""The protocol `__torch_dispatch__`: which modes and classes replace operators below autograd, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from .._runtime.uninterrupted import uninterrupted
from .._runtime.weak_keys import WeakClasses
from ..tensor import Tensor
from .interpreters import tensors_in
from .modes import STATE

DISPATCHING = WeakClasses()
"""The classes of tensors that define `__torch_dispatch__`."""


def disabled_torch_dispatch_impl(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The `__torch_dispatch__` of a tensor class that overrides nothing."""
    with DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


class NotAsking:
    """A context manager in which this thread does not call some overrides: the base of three public ones."""

    values: ClassVar[dict[str, bool]]

    def __enter__(self) -> None:
        here = STATE.__dict__
        self.before = here["asks_classes"], here["asks_modes"], here["asks_dispatching"]
        here |= self.values

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        here = STATE.__dict__
        here["asks_classes"], here["asks_modes"], here["asks_dispatching"] = self.before


class DisableTorchDispatch(NotAsking):
    """A context manager in which `__torch_dispatch__` of classes is not called in this thread."""

    values: ClassVar[dict[str, bool]] = {"asks_dispatching": False}


def among(arguments: Iterable[Any], wanted: Callable[[Any], bool]) -> list[Any]:
    """Return the first argument of each class that is `wanted`. Subclasses come first, otherwise from left to right."""
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


def dispatching_types(args: Iterable[Any]) -> tuple[type, ...]:
    """Return the classes among the tensors of a call that define `__torch_dispatch__`, without repetition, subclasses first."""
    if not STATE.asks_dispatching:
        return ()
    return tuple(map(type, among(tensors_in(args), lambda tensor: type(tensor) in DISPATCHING)))


def check_plain_method(method: Any, name: str) -> None:
    """Raise an error if the method of a mode is a class method."""
    if isinstance(getattr(method, "__self__", None), type):
        raise RuntimeError(
            f"Defining your mode's `{name}` as a classmethod is not supported, please make it a plain method"
        )


def ask(mode: Any, func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of the mode or, without a mode, the first result that a class returns."""
    types = dispatching_types((*args, *keywords.values()))
    asked: list[Any] = list(types) if mode is None else [mode]
    if mode is not None:
        check_plain_method(mode.__torch_dispatch__, "__torch_dispatch__")
    for each in asked:
        result = each.__torch_dispatch__(func, types, args, keywords)
        if result is not NotImplemented:
            return result
    what = ", ".join(f"tensor subclass {kind}" for kind in asked) if mode is None else f"mode object {mode!r}"
    raise TypeError(
        f"Multiple dispatch failed for '{func.name().replace('::', '.ops.')}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented:\n\n  - {what}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


Tensor.__torch_dispatch__ = disabled_torch_dispatch_impl  # type: ignore[attr-defined]

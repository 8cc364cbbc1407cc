"""Context managers that also decorate: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`, and rarer modes.

A decorated function runs in the mode. A decorated generator is in the mode while it runs, not while it is suspended. A
decorated class becomes a function that constructs its instances in the mode.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .._runtime.tracebacks import shorten, warn
from .._runtime.uninterrupted import SwitchesAtOnce, uninterrupted
from ..dispatch.signatures import type_name
from ..tape import modes
from ..tape.versions import shared_counter
from ..tensor import Tensor

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


def check_bool(name: str, mode: Any) -> None:
    """Raise a TypeError unless `mode`, the argument of the function `name`, is a bool."""
    if not isinstance(mode, bool):
        raise TypeError(f"{name}(): argument 'enabled' (position 1) must be bool, not {type_name(mode)}")


class Decorating:
    """A context manager that decorates functions, generators and classes. Each call enters a clone."""

    _given: ClassVar[tuple[str, ...]] = ()
    """The attributes that hold the arguments of the constructor."""

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions "
                "or methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` "
                "method and nothing else.",
                FutureWarning,
            )
            return self(lambda *args, **keywords: function(*args, **keywords))  # type: ignore[return-value]
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def decorated(*args: Any, **keywords: Any) -> Any:
            try:
                with self.clone():
                    return function(*args, **keywords)
            except Exception as error:
                shorten(error)
                raise

        return decorated  # type: ignore[return-value]

    def _wrap_generator(self, function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **keywords: Any) -> Generator[Any, Any, Any]:
            generator = function(*args, **keywords)
            try:
                with self.clone():
                    value = generator.send(None)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:  # noqa: BLE001  (all are passed on to the generator)
                        with self.clone():
                            value = generator.throw(error)
                    else:
                        with self.clone():
                            value = generator.send(sent)
            except StopIteration as stop:
                return stop.value
            except Exception as error:
                shorten(error)
                raise

        return decorated

    def clone(self) -> Any:
        """Return a new context manager with the same arguments."""
        return type(self)(*[getattr(self, name) for name in self._given]) if self._given else type(self)()


class _Mode(Decorating):
    """A context manager of a mode. It can be entered more than once."""

    prev: bool = False

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes.set_grad(self.prev)


class _Recording(_Mode):
    """A mode in which operations are recorded, or not."""

    enabled: bool

    def __new__(cls, function: Any = None) -> Any:
        """Create a context manager, or decorate the function that is given in place of arguments."""
        instance = object.__new__(cls)
        return instance if function is None else instance(function)

    if TYPE_CHECKING:  # for type checkers; at run time, this call would cost as much as entering the mode

        def __init__(self, function: Any = None) -> None: ...

    def __enter__(self) -> None:
        self.prev = modes.STATE.grad_enabled
        if self.prev is not self.enabled:
            modes.set_grad(self.enabled)


class no_grad(_Recording):
    """Do not record operations. Results do not require grad.

    >>> import adjoint as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    enabled = False


class enable_grad(_Recording):
    """Record operations, even inside `no_grad`."""

    enabled = True


class set_grad_enabled(_Mode, SwitchesAtOnce):
    """Switch recording on or off immediately. As a context manager, restore the former setting at the end of the block."""

    _given = ("mode",)

    def __init__(self, mode: bool) -> None:
        try:
            check_bool("set_grad_enabled", mode)
        except TypeError as error:
            shorten(error)
            raise
        self.prev = modes.STATE.grad_enabled
        self.mode = mode
        self.pending = True
        modes.set_grad(mode)

    def __call__(self, function: F) -> F:
        """Decorate `function`. The mode is active only while the function runs."""
        modes.set_grad(self.prev)
        self.pending = False
        return super().__call__(function)

    @uninterrupted
    def __enter__(self) -> None:
        self.pending = False
        modes.set_grad(self.mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(Decorating, modes.switched):
    """Do not record operations, like `no_grad`. In addition, tensors that are created inside can never be recorded later.

    >>> import adjoint as torch
    >>> with torch.inference_mode():
    ...     y = torch.ones(2) + 1
    >>> y.is_inference()
    True
    """

    _given = ("mode",)

    def __new__(cls, mode: Any = True) -> Any:
        """Create a context manager, or decorate the function that is given in place of arguments."""
        instance = super().__new__(cls)
        if isinstance(mode, bool):
            return instance
        instance.mode = True
        return instance(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(inference=mode, grad_enabled=not mode)
        self.mode = mode


class _Switch(SwitchesAtOnce, _Mode):
    """Set a flag of this thread's state immediately. As a context manager, restore its former value at the end of the block."""

    flag: str
    _given = ("mode",)

    def __init__(self, mode: bool) -> None:
        try:
            check_bool(type(self).__name__, mode)
        except TypeError as error:
            shorten(error)
            raise
        self.prev = getattr(modes.STATE, self.flag)
        self.mode = mode
        self.pending = True
        modes.put({self.flag: mode})

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes.put({self.flag: self.prev})


class set_multithreading_enabled(_Switch):
    """Accepted for compatibility with PyTorch.

    A backward always runs in the calling thread. Any number of threads may run backward at once.
    """

    flag = "multithreading"


class enforce_grad_layout_policy(_Switch):
    """Choose the strides of a leaf's `.grad`: the strides of the leaf (which may require a copy) or of the incoming gradient.

    >>> import adjoint as torch
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> with torch.autograd.enforce_grad_layout_policy(False):
    ...     x.t().contiguous().exp().sum().backward()
    """

    flag = "grad_layout"

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


class _force_original_view_tracking(_Switch):
    """Choose whether the operations that created a view are repeated after an in-place change of its base.

    If this setting is off, or was off when the view was created, one `as_strided` regenerates the view.
    """

    flag = "view_replay"


class _unsafe_preserve_version_counter(_Mode):
    """A context manager in which in-place changes of `tensors` are not counted."""

    _given = ("tensors",)

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.versions = tuple(tensor._version for tensor in self.tensors)

    def __enter__(self) -> None:
        pass

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            shared_counter(tensor)[0] = version


def is_multithreading_enabled() -> bool:
    """Return the latest value of `set_multithreading_enabled` in this thread."""
    return modes.STATE.multithreading


def is_view_replay_enabled() -> bool:
    """Return the latest value of `_force_original_view_tracking` in this thread."""
    return modes.STATE.view_replay


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is in inference mode."""
    return modes.STATE.inference

"""`no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode` and rarer switches: context managers that also decorate.

A decorated function runs in the mode; a decorated generator is in it while it runs, not while it is suspended; a decorated
class becomes a function that constructs its instances in it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from ..dispatch.signatures import type_name
from ..tape import mode_switches, modes
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


class _Mode:
    """A context manager that may be entered again, and decorates functions, generators and classes."""

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions "
                "or methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` "
                "method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            return self(lambda *args, **keywords: function(*args, **keywords))  # type: ignore[return-value]
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def decorated(*args: Any, **keywords: Any) -> Any:
            with self.clone():
                return function(*args, **keywords)

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

        return decorated

    def clone(self) -> Any:
        """A new context manager of the same mode."""
        return type(self)()

    def __enter__(self) -> None:
        raise TypeError("a mode is entered through its subclasses")

    def __exit__(self, *exception: object) -> None:
        modes.set_grad(self.prev)

    prev: bool = False


class no_grad(_Mode):
    """Operations are not recorded: their results do not require grad.

    >>> import adjoint as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, function: Any = None) -> Any:
        """Make a context manager, or decorate the function that is given in its place."""
        instance = object.__new__(cls)
        return instance if function is None else instance(function)

    if TYPE_CHECKING:  # tools take the type of the instances from here; the call of it would cost as much as entering

        def __init__(self, function: Any = None) -> None: ...

    def __enter__(self) -> None:
        self.prev = modes.STATE.grad_enabled
        if self.prev:
            modes.set_grad(False)


class enable_grad(_Mode):
    """Operations are recorded, also within `no_grad`."""

    def __new__(cls, function: Any = None) -> Any:
        """Make a context manager, or decorate the function that is given in its place."""
        instance = object.__new__(cls)
        return instance if function is None else instance(function)

    def __init__(self, function: Any = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = modes.STATE.grad_enabled
        modes.set_grad(True)


class set_grad_enabled(_Mode):
    """Switch recording on or off, at once; as a context manager, back again at its end."""

    def __init__(self, mode: bool) -> None:
        check_bool("set_grad_enabled", mode)
        self.prev = modes.STATE.grad_enabled
        self.mode = mode
        modes.set_grad(mode)

    def __call__(self, function: F) -> F:
        """Decorate `function`: the mode holds while it runs, and not at once."""
        modes.set_grad(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        modes.set_grad(self.mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__

    def clone(self) -> set_grad_enabled:
        """A new context manager of the same mode."""
        return type(self)(self.mode)


class inference_mode(_Mode):
    """Like `no_grad`, and the tensors made inside can never take part in recording later.

    >>> import adjoint as torch
    >>> with torch.inference_mode():
    ...     y = torch.ones(2) + 1
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        """Make a context manager, or decorate the function that is given in its place."""
        instance = super().__new__(cls)
        if isinstance(mode, bool):
            return instance
        instance.mode = True
        return instance(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.prev = modes.STATE.grad_enabled
        self.previous_inference = modes.STATE.inference
        modes.set_inference(self.mode)
        modes.set_grad(not self.mode)

    def __exit__(self, *exception: object) -> None:
        modes.set_inference(self.previous_inference)
        modes.set_grad(self.prev)

    def clone(self) -> inference_mode:
        """A new context manager of the same mode."""
        return type(self)(self.mode)


class _Switch(_Mode):
    """Sets a flag of this thread's state at once; as a context manager, back again at its end."""

    flag: str

    def __init__(self, mode: bool = True) -> None:
        check_bool(type(self).__name__, mode)
        self.prev = getattr(modes.STATE, self.flag)
        self.mode = mode
        self._set(mode)

    def _set(self, value: bool) -> None:
        setattr(modes.STATE, self.flag, value)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self._set(self.prev)

    def clone(self) -> Any:
        """A new context manager of the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):
    """Accepted for PyTorch's sake: a backward always runs in the thread that calls it, and many threads may call one."""

    flag = "multithreading"

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)


class enforce_grad_layout_policy(_Switch):
    """Whether `.grad` of a leaf gets the strides of the leaf, by a copy if need be, or those that the gradient comes with.

    >>> import adjoint as torch
    >>> x = torch.ones(2, 3, requires_grad=True)
    >>> with torch.autograd.enforce_grad_layout_policy(False):
    ...     x.t().contiguous().exp().sum().backward()
    """

    flag = "grad_layout"

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


class _force_original_view_tracking(_Switch):
    """Whether views whose base has been changed in place are followed by the operations that made them.

    Otherwise, and for views that were made while this was off, `as_strided` stands for all of them.
    """

    flag = "view_replay"

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)

    def _set(self, value: bool) -> None:
        mode_switches.set_view_replay(value)


class _unsafe_preserve_version_counter(_Mode):
    """What happens to `tensors` inside does not count as an in-place change."""

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.versions = tuple(tensor._version for tensor in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            shared_counter(tensor)[0] = version

    def clone(self) -> _unsafe_preserve_version_counter:
        """A new context manager of the same tensors."""
        return type(self)(self.tensors)


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` has last set in this thread."""
    return modes.STATE.multithreading


def is_view_replay_enabled() -> bool:
    """What `_force_original_view_tracking` has last set in this thread."""
    return modes.STATE.view_replay


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return modes.STATE.inference

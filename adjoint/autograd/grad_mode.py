"""`no_grad`, `enable_grad`, `set_grad_enabled` and `inference_mode`: context managers that also decorate.

A decorated function runs in the mode; a decorated generator is in it while it runs, not while it is suspended; a decorated
class is in it while it is constructed.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from ..tape import modes

F = TypeVar("F", bound=Callable[..., Any])


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
            function.__init__ = self(function.__init__)  # type: ignore[method-assign]
            return function
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
        modes.set_grad(self.previous)

    previous: bool


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
        instance = super().__new__(cls)
        return instance if function is None else instance(function)

    def __init__(self, function: Any = None) -> None:
        self.previous = False

    def __enter__(self) -> None:
        self.previous = modes.STATE.grad_enabled
        modes.set_grad(False)


class enable_grad(_Mode):
    """Operations are recorded, also within `no_grad`."""

    def __new__(cls, function: Any = None) -> Any:
        """Make a context manager, or decorate the function that is given in its place."""
        instance = super().__new__(cls)
        return instance if function is None else instance(function)

    def __init__(self, function: Any = None) -> None:
        self.previous = False

    def __enter__(self) -> None:
        self.previous = modes.STATE.grad_enabled
        modes.set_grad(True)


class set_grad_enabled(_Mode):
    """Switch recording on or off, at once; as a context manager, back again at its end."""

    def __init__(self, mode: bool) -> None:
        self.previous = modes.STATE.grad_enabled
        self.mode = mode
        modes.set_grad(mode)

    def __call__(self, function: F) -> F:
        """Decorate `function`: the mode holds while it runs, and not at once."""
        modes.set_grad(self.previous)
        return super().__call__(function)

    def __enter__(self) -> None:
        modes.set_grad(self.mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """A new context manager of the same mode."""
        previous = modes.STATE.grad_enabled
        copy = type(self)(self.mode)
        modes.set_grad(previous)
        copy.previous = previous
        return copy


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
        self.previous = modes.STATE.grad_enabled
        self.previous_inference = modes.STATE.inference
        modes.set_inference(self.mode)
        modes.set_grad(not self.mode)

    def __exit__(self, *exception: object) -> None:
        modes.set_inference(self.previous_inference)
        modes.set_grad(self.previous)

    def clone(self) -> inference_mode:
        """A new context manager of the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(_Mode):
    """Accepted for PyTorch's sake: a backward always runs in the thread that calls it, and many threads may call one."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass

    def clone(self) -> set_multithreading_enabled:
        """A new context manager of the same mode."""
        return type(self)(self.mode)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return modes.STATE.inference

"""Kernels that programs register for PyTorch's operators in Python (`torch.library.Library("aten", "IMPL")`).

While there are such kernels, two interpreters are the outermost of all threads. They handle only operators with kernels. The one
for the keys of devices runs below modes and autograd, so that the result is recorded as the result of the operator. The one for
the keys of autograd runs above them, and the operators that its kernel calls are recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .._runtime.tracebacks import warn
from .._runtime.uninterrupted import uninterrupted
from ..dispatch import plan
from ..dispatch.registry import PUBLIC, load_all
from ..tape import modes
from ..tape.interpreters import Interpreter
from ..tape.mode_switches import set_levels
from ..tensor import Tensor
from .calls import call_of_operator
from .forms import FORMS
from .overloads import _operators, is_there
from .torch_dispatch import dispatched, dispatched_inplace

KERNELS: dict[tuple[str, str], list[Callable[..., Any]]] = {}
"""The kernels, latest last, by the name of the operator and one of the keys below."""

KEYS = {"CPU": "CPU", "Meta": "Meta", "Autograd": "Autograd", "AutogradCPU": "Autograd", "AutocastCPU": "Autocast"}
"""The keys whose kernels run here. Kernels for other keys never run."""


class _Thread(threading.local):
    below_autograd = False


_thread = _Thread()
_warned: list[bool] = []


def is_below_autograd() -> bool:
    """Return whether this thread is in `below_autograd`."""
    return _thread.below_autograd


class _Level(Interpreter):
    """Handles the operators that have a kernel for certain keys. It wraps no tensors."""

    keys: tuple[str, ...]

    def wraps(self, tensor: Tensor) -> bool:
        """Return False. Calls are taken by their operator."""
        return False

    def kernel(self, call: plan.Call) -> tuple[Callable[..., Any] | None, tuple[Any, ...], dict[str, Any]]:
        """Return the kernel for a call, or None, and its arguments."""
        if call.op.name not in FORMS and all(name.partition(".")[0] != f"aten::{call.name}" for name, _ in KERNELS):
            return None, (), {}
        overload, args, keywords = call_of_operator(call.op, call.given, call.out, call.in_place)
        keys = self.asked(call.tensors())
        found = [KERNELS[name][-1] for key in keys if (name := (overload.name(), key)) in KERNELS]
        return found[0] if found else None, args, keywords

    def asked(self, tensors: list[Tensor]) -> list[str]:
        """Return the keys of a call with these tensors."""
        raise NotImplementedError


class _Above(_Level):
    """The level of kernels that run in place of the derivative."""

    def asked(self, tensors: list[Tensor]) -> list[str]:
        """Return the keys of a call with these tensors."""
        autocasts = ["Autocast"] if modes.STATE.autocast is not None else []
        below = _thread.below_autograd or modes.STATE.inference or all(tensor.is_inference() for tensor in tensors)
        return autocasts if below else [*autocasts, "Autograd"]

    def handle(self, call: plan.Call, proceed: Callable[[], Any]) -> Any:
        """Return the result of the kernel."""
        kernel, args, keywords = self.kernel(call)
        return proceed() if kernel is None else kernel(*args, **keywords)


class _Below(_Level):
    """The level of kernels that compute the result."""

    is_mode = True

    def asked(self, tensors: list[Tensor]) -> list[str]:
        """Return the keys of a call with these tensors."""
        return ["Meta" if any(tensor.is_meta for tensor in tensors) else "CPU"]

    def handle(self, call: plan.Call, proceed: Callable[[], Any]) -> Any:
        """Return the result of the kernel, recorded as the result of the operator."""
        kernel = self.kernel(call)[0]
        if kernel is None:
            return proceed()
        mode = _Kernel(kernel)
        return dispatched_inplace(call.op, call.given, mode) if call.in_place else dispatched(call, mode)


class _Kernel:
    """A kernel in the form of a mode."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with below_autograd():
            return self.kernel(*args, **kwargs)


_LEVELS = _Below(), _Above()


class below_autograd:
    """A context whose operators are not recorded, and use no kernel that replaces a derivative."""

    def __enter__(self) -> None:
        self.before = _thread.below_autograd, modes.STATE.grad_enabled
        _thread.below_autograd = True
        modes.set_grad(False)

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        _thread.below_autograd, recording = self.before
        modes.set_grad(recording)


def add(name: str, key: str, kernel: Callable[..., Any]) -> None:
    """Register a kernel for an operator, such as `aten::mul.Tensor`.

    Raises:
        NotImplementedError: if the operator is a function of other operators here.
    """
    load_all()
    own = name.removeprefix("aten::").partition(".")[0]
    known = is_there(own) or own in PUBLIC["functional"]
    if known and own not in _operators() and own.removesuffix("_") not in _operators():
        raise NotImplementedError(f"{name} cannot be replaced: it calls other operators here. Replace these operators.")
    if not _warned:
        _warned.append(True)
        warn(
            "Warning only once for all operators,  other operators may also be overridden.\n"
            "  Overriding a previously registered kernel for the same operator and the same dispatch key\n"
            f"  operator: {name}\n  dispatch key: {key}"
        )
    KERNELS.setdefault((name, KEYS[key]), []).append(kernel)
    set_levels(lambda levels: levels if _LEVELS[0] in levels else (*_LEVELS, *levels))


def remove(name: str, key: str, kernel: Callable[..., Any]) -> None:
    """Remove a kernel. The kernel that it has replaced is used again."""
    found = KERNELS.get((name, KEYS[key]), [])
    if kernel in found:
        found.remove(kernel)
    if not found:
        KERNELS.pop((name, KEYS[key]), None)
    if not KERNELS:
        set_levels(lambda levels: tuple([level for level in levels if level not in _LEVELS]))

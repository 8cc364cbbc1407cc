"""Backward through operators that a program has defined without a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjoint._runtime.tracebacks import warn
from adjoint.dispatch.out import Underived
from adjoint.tape import modes
from adjoint.tensor import Tensor, can_require_grad

_MODES = ("nothing", "warn")
_mode = ["warn"]


def get_autograd_fallback_mode() -> str:
    """Return the behaviour of backward through such an operator: "nothing" or "warn"."""
    return _mode[0]


def set_autograd_fallback_mode(mode: str) -> None:
    """Set the behaviour of backward through such an operator: "nothing" or "warn"."""
    if mode not in _MODES:
        raise RuntimeError(f"NYI: mode='{mode}'")
    _mode[0] = mode


class WarnNotImplemented(Underived):
    """The history of a result of an operator without derivative. Its backward warns, and passes no gradients on."""

    __slots__ = ()

    def name(self) -> str:
        """PyTorch's name."""
        return "WarnNotImplemented"

    def backward(self, grad: Any, retain_graph: bool, edges: Any) -> tuple[Any, ...]:
        """Warn, and pass no gradient on."""
        _warn(self.called)
        return (None,) * len(edges)

    backward_recorded = backward


WarnNotImplemented.__name__ = "CppFunction"  # as PyTorch shows it


def without_derivative(
    called: str, kernel: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any], changed: list[bool]
) -> Any:
    """Run the kernel of the operator `called`. Autograd records the call as usual.

    Backward then reports that the operator has no derivative. `changed`: for each result, whether it is a changed
    argument.
    """
    result = kernel(*args, **names)
    inputs = [each for each in _tensors((args, tuple(names.values()))) if each.requires_grad]
    if _mode[0] == "nothing" or not (modes.is_grad_enabled() and inputs):
        return result
    for each, is_changed in zip([result] if len(changed) == 1 else result or (), changed, strict=False):
        for output in _tensors(each):
            base = output._base
            if output.requires_grad:
                output.register_hook(lambda grad: _warn(called))
                if is_changed and base is not None and base.requires_grad:
                    base.register_hook(lambda grad: _warn(called))
            elif can_require_grad(output._array) and base is None and not is_changed:
                output._edge = (WarnNotImplemented(called, inputs, output), 0)
    return result


def _tensors(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    return [each for value in values for each in _tensors(value)] if isinstance(values, (list, tuple)) else []


def _warn(called: str) -> None:
    warn(
        f"{called}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. This "
        "may lead to silently incorrect behavior. This behavior is deprecated and will be removed in a future version of "
        "PyTorch. If your operator is differentiable, please ensure you have registered an autograd kernel to the correct "
        "Autograd key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is not "
        "differentiable, or to squash this warning and use the previous behavior, please register "
        "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd."
    )

"""Formulas that many operators share: the gradient itself, zero, and the formulas of operators without a derivative.

Operators without a derivative are recorded, and raise an error in backward and in forward mode. PyTorch
has one message for operators that are not in its table of derivatives, and another for derivatives that the table lists
as not implemented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dispatch.declaration import Operator


def same(grad):
    """Return the gradient of an input that is added unchanged."""
    return grad


def zero(grad, xp):
    """Return zeros: the gradient of an input that is overwritten, or of a step function."""
    return xp.zeros_like(grad)


def added(one: Any, other: Any) -> Any:
    """Return the sum of two parts of a gradient. The first may be None."""
    return other if one is None else one + other


def underived(name: str) -> Callable[[Any], Any]:
    """Return the formula of an operator without a derivative, which raises an error. PyTorch calls the operator `name`."""

    def formula(grad: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return formula


def unwritten(name: str) -> Callable[[Any], Any]:
    """Return the formula of an input that PyTorch lists as not implemented, for the operator that PyTorch calls `name`."""

    def formula(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return formula


def without_tangent(operator: Operator, error: RuntimeError) -> NotImplementedError | None:
    """Return the error of forward mode if such a formula of `operator` raised `error`, or None for other errors."""
    if str(error).startswith("derivative for aten::"):
        reason = f"aten::{operator.function_name} that does not support it."
    elif str(error).startswith("the derivative for '"):
        reason = f"{operator.aten_name} that does not support it because it has not been implemented yet."
    else:
        return None
    return NotImplementedError(f"Trying to use forward AD with {reason}")

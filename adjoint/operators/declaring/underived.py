"""The formulas of operators without a derivative.

Such operators are recorded, and raise an error in backward and in forward mode.

The messages are PyTorch's. PyTorch has one message for operators that are not in its table of derivatives, and another
for derivatives that the table lists as not implemented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dispatch.declaration import Operator


def underived(name: str) -> Callable[[Any], Any]:
    """Return the formula of an operator without any derivative, which PyTorch calls `name`.

    The formula raises an error in backward.
    """

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

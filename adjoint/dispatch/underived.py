"""The formulas of operators without a derivative: they are recorded, and raise in backward and in forward mode.

The words are PyTorch's, which has two: one for operators that are not in its table of derivatives, another for derivatives that
the table lists as not yet written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .declaration import Operator


def underived(name: str) -> Callable[[Any], Any]:
    """The formula of an operator without any derivative, which PyTorch calls `name`: it raises in backward."""

    def formula(grad: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return formula


def unwritten(name: str) -> Callable[[Any], Any]:
    """The formula of an input, in an operator that PyTorch calls `name`, whose derivative it lists as not yet written."""

    def formula(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return formula


def without_tangent(operator: Operator, error: RuntimeError) -> NotImplementedError | None:
    """The error of forward mode where a formula of `operator` that one of these has made raised `error`; None for others."""
    if str(error).startswith("derivative for aten::"):
        reason = f"aten::{operator.function_name} that does not support it."
    elif str(error).startswith("the derivative for '"):
        reason = f"{operator.aten_name} that does not support it because it has not been implemented yet."
    else:
        return None
    return NotImplementedError(f"Trying to use forward AD with {reason}")

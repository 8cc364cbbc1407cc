"""`torch.cond`: one of two functions, by a truth value."""

from __future__ import annotations

from typing import Any

import adjoint as torch

from ..tracebacks import ending_at_caller

__all__ = ["cond"]


@ending_at_caller
def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    Args:
        pred: a bool, or a bool tensor of one element.
        true_fn, false_fn: the functions.
        operands: their arguments.

    Raises:
        RuntimeError: if `pred` is none of these, a function cannot be called, or the operands are no tuple or list.

    >>> import adjoint as torch
    >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),))
    tensor([0.])
    """
    if isinstance(pred, torch.Tensor):
        if pred.numel() != 1 or pred.dtype is not torch.bool:
            raise RuntimeError(f"Expected pred to be bool or single-element bool tensor, but got {pred}")
    elif not isinstance(pred, bool | int | float):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            f"Expect operands to be a tuple of possibly nested dict/list/tuple of tensors, but got {operands}."
        )
    return true_fn(*operands) if pred else false_fn(*operands)

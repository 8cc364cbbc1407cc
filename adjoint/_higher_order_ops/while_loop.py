"""`torch.while_loop`: a function again and again, as long as a condition holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint as torch

from ..tracebacks import ending_at_caller

__all__ = ["while_loop"]


@ending_at_caller
def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The values after `body_fn` has run on `carried_inputs`, and on its own results, while `cond_fn` of them is true.

    Args:
        cond_fn: gives a bool, or a bool tensor of one element.
        body_fn: gives as many values as it takes.
        carried_inputs: the first values.

    Raises:
        RuntimeError: if an argument is none of these, or `body_fn` gives another number of values.

    >>> import adjoint as torch
    >>> torch.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (0, torch.ones(1)))
    (3, tensor([8.]))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple of tensors or numbers, but got {carried_inputs}.")
    values = tuple(carried_inputs)
    while _holds(cond_fn(*values)):
        found = body_fn(*values)
        if not isinstance(found, (tuple, list)) or len(found) != len(values):
            raise RuntimeError(f"body_fn should return a tuple of {len(values)} values, as many as it takes")
        values = tuple(found)
    return values


def _holds(pred: Any) -> bool:
    if not isinstance(pred, bool) and not (
        isinstance(pred, torch.Tensor) and pred.dtype is torch.bool and pred.numel() == 1
    ):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")
    return bool(pred)

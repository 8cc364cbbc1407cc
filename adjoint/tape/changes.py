"""Changes of memory that an interrupt may end half-way: they count all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from .refusals import is_refusal
from .versions import bump


def count_change(tensor: Tensor, name: str, change: Callable[..., object], *arguments: Any) -> None:
    """Call `change(*arguments)`, which changes `tensor` in place for the operation `name`, and count the change.

    A refusal is not counted: it has changed nothing. An interrupt is: it may strike when a part has been changed.
    """
    try:
        change(*arguments)
    except BaseException as error:
        if not is_refusal(error):
            bump(tensor, name, depth=2)
        raise
    bump(tensor, name, depth=2)

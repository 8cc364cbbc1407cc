"""Exchanging the contents of tensors (`torch.utils.swap_tensors`) and loading parameters (`Tensor.module_load`)."""

from __future__ import annotations

import weakref
from typing import Any

from ..._runtime.tracebacks import ending_at_caller
from ...dispatch.decorators import public
from ...tape.node import live_accumulator
from ...tape.versions import Mark
from ...tensor import Tensor
from .subclassing import SLOTS


@public(namespace=None, method=True)
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return the new value of this parameter or buffer when its module loads `other`.

    A tensor class may define another rule.

    Modules call this method while `torch.__future__.set_swap_module_params_on_conversion(True)` is active.

    Returns:
        If `assign` is true, return `other` without history. Otherwise copy `other` into this tensor without history,
            and return this tensor.

    >>> import adjoint as torch
    >>> torch.zeros(2).module_load(torch.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else self.copy_(other).detach()


@ending_at_caller
def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange the contents of two tensors, including their classes.

    Each variable then refers to the other tensor's contents.

    Raises:
        RuntimeError: if a weak reference to one of the tensors exists, or if the classes have different slots.

    >>> import adjoint as torch
    >>> a, b = torch.ones(2), torch.zeros(3)
    >>> torch.utils.swap_tensors(a, b)
    >>> a
    tensor([0., 0., 0.])
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if any(reference is not _own_reference(tensor) for reference in weakref.getweakrefs(tensor)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    try:
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    except TypeError:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots") from None
    for slot in ("__dict__", *SLOTS):
        one, other = getattr(t1, slot, None), getattr(t2, slot, None)
        setattr(t1, slot, other)
        setattr(t2, slot, one)
    for tensor in (t1, t2):
        node = live_accumulator(tensor)
        if node is not None:
            node.variable = tensor


def _own_reference(tensor: Tensor) -> Any:
    """Return the weak reference to the tensor in its own version counter, or None."""
    mark = None if tensor._counter is None else tensor._counter[0]
    return mark.tensor if isinstance(mark, Mark) else None

"""Functions whose Python code reads elements. Inside `vmap`, elements differ along the batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..interchange import tensor_array
from ..kernels.runtime.meta_array import Unread
from ..tape import modes
from ..tape.interpreters import tensors_in
from ..tape.torch_dispatch import DISPATCHING
from ..tensor import Tensor


def is_readable(*tensors: Tensor | None) -> bool:
    """Return whether all `tensors` have elements that can be read. Modes receive operators, so that none can be read then."""
    return not has_modes() and has_elements(*tensors)


def has_elements(*tensors: Tensor | None) -> bool:
    """Return whether all `tensors` have elements: none is batched, on `meta`, or of a class with `__torch_dispatch__`."""
    for tensor in tensors:
        if tensor is not None and (isinstance(tensor._array, Unread) or type(tensor) in DISPATCHING):
            return False
    return True


def has_modes() -> bool:
    """Return whether modes of this thread receive all operators."""
    return bool(modes.FLAGS.special) and any(level.is_mode for level in modes.STATE.interpreters)


def is_overridden(tensor: Any) -> bool:
    """Return whether a value is a tensor whose operators modes of this thread or its class receive."""
    return isinstance(tensor, Tensor) and (has_modes() or type(tensor) in DISPATCHING)


def data_array(value: Any) -> Any:
    """Return the array of a tensor among the data of a new tensor, or any other value unchanged. Modes see that it is read."""
    if isinstance(value, Tensor) and has_modes():
        for element in value.reshape(-1):
            element.item()
    return tensor_array(value)


def read_array(tensor: Tensor) -> Any:
    """Return the array of a tensor whose elements Python code reads next. A capture ends, because it cannot record this."""
    capture = modes.STATE.capture
    if capture is not None:
        capture.stop("elements of a tensor are read")
    return tensor._array


def is_batched(tensor: Tensor) -> bool:
    """Return whether `tensor` is a batched tensor of `vmap`."""
    return type(tensor) is not Tensor and hasattr(tensor, "without_history")


def sequential_fallback(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function`, which must have no gradients, so that `vmap` applies it to one batch element after another."""

    @functools.wraps(function)
    def each(*args: Any, **keywords: Any) -> Any:
        for level in reversed(modes.STATE.interpreters) if modes.FLAGS.special else ():
            if hasattr(level, "sequential_fallback") and any(
                level.has(value) for value in tensors_in((*args, *keywords.values()))
            ):
                return level.sequential_fallback(each, args, keywords)
        return function(*args, **keywords)

    return each

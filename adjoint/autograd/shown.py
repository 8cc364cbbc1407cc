"""The tensors through which user code (hooks and the caller) sees the gradients of one backward."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from ..kernels.memory.storage import owner
from ..tape.inference_tensors import mark_inference
from ..tape.modes import FLAGS, STATE
from ..tape.versions import shared_counter
from ..tensor import Tensor, wrap


def made(array: Any) -> Tensor:
    """Return, as a tensor, a gradient that the engine has computed."""
    tensor = wrap(array)
    if FLAGS.special and STATE.inference:
        mark_inference(tensor)
    return tensor


class Shown(dict[int, Any]):
    """The tensors through which user code sees the gradients of one backward, by the id of the array.

    Hooks see the same tensor, and so the changes of each other. `given`: the gradients that the caller has given.
    """

    owners: Sequence[tuple[Any, Tensor]] = ()
    """The owner of the memory of each tensor in `given`."""

    def __init__(self, given: Any) -> None:
        self.given: tuple[Any, ...] = () if given is None else (given,) if isinstance(given, Tensor) else tuple(given)

    def tensor(self, array: Any) -> Tensor:
        """Return the tensor of `array`. It shares the version counter of a given gradient on the same memory."""
        if not self and self.given:
            self.update({id(given._array): weakref.ref(given) for given in self.given if given is not None})
            self.owners = [(owner(given._array), given) for given in self.given if given is not None]
        key = id(array)
        if key in self:
            known: Tensor | None = self[key]()
            if known is not None and known._array is array:
                return known
        tensor = made(array)
        self[key] = weakref.ref(tensor)
        for memory, given in self.owners:
            if array is memory or (array.base is not None and owner(array) is memory):
                tensor._counter = shared_counter(given)
        return tensor


def shown(task: Any, array: Any) -> Tensor:
    """Return the tensor through which user code sees a gradient of the backward `task`."""
    if task.shown is None:
        task.shown = Shown(task.given)
    tensor: Tensor = task.shown.tensor(array)
    return tensor

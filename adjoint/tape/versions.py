"""Version counters of in-place changes: lists of the version and the latest change that views and aliases share."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from .._runtime.forks import lock_across_forks
from ..tensor import Tensor, is_recorded
from . import modes, origin

_counter_lock = lock_across_forks()


class Mark:
    """A mark that replaces a version number. It equals no number, so the comparison fails and the slow check runs.

    `number`: the version. `tensor`: a weak reference to the tensor that was detached in place at this version. Without
        `tensor`, the array of the saved tensor must be materialized before it is read.
    """

    __slots__ = ("number", "tensor")

    def __init__(self, number: int, tensor: weakref.ref[Tensor] | None = None) -> None:
        self.number = number
        self.tensor = tensor

    def __int__(self) -> int:
        return self.number

    def __add__(self, changes: int) -> int:
        return self.number + changes


def detach_in_place(tensor: Tensor) -> None:
    """Cut `tensor` from its history. A mark in place of the version informs nodes that have saved the tensor."""
    if is_recorded(tensor._edge):
        counter = shared_counter(tensor)
        if isinstance(counter, list):  # not the counter of an inference tensor
            counter[0] = Mark(int(counter[0]), weakref.ref(tensor))
    tensor._edge = None


def shared_counter(tensor: Tensor) -> list[Any]:
    """Return the version counter of `tensor` for sharing. Create the counter if it does not exist."""
    counter = tensor._counter
    if counter is None:
        with _counter_lock:
            counter = tensor._counter
            if counter is None:
                counter = tensor._counter = [0, None]
    return counter


def counting(tensor: Tensor) -> list[Any] | None:
    """Return the version counter of `tensor` for sharing, or None if its changes are not counted now."""
    counter: Any = shared_counter(tensor)
    if isinstance(counter, list):
        return counter
    return None if modes.STATE.inference else counter.counter  # of an inference tensor (see `inference_tensors`)


def about_to_change(tensor: Tensor) -> None:
    """Call the function that observes in-place changes of this thread, before a change of `tensor` on the slow path."""
    watch = modes.STATE.before_change
    if watch is not None:
        watch(tensor)


def bump(tensor: Tensor, name: str, depth: int = 1) -> None:
    """Count an in-place change of `tensor` by operation `name`, and record the line of the user's code."""
    frame = origin.user_frame(depth + 1)
    count_changes((tensor,), (frame.f_code, frame.f_lasti, name))


def count_changes(tensors: Sequence[Tensor], change: tuple[Any, int, str]) -> None:
    """Count one change of each of `tensors`. `change`: its code, its instruction and its operation."""
    for tensor in tensors:
        counter: Any = tensor._counter
        if type(counter) is not list:
            counter = counting(tensor)
            if counter is None:
                continue
        counter[1] = change
        counter[0] += 1

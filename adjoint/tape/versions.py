"""Version counters: they count the changes of memory in place, so that what was saved of it can tell that it has changed.

A counter is a list that views and aliases share: the version, and the latest change (code, instruction, operation) or None.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ..tensor import Tensor, is_recorded
from . import modes, origin

_counter_lock = threading.Lock()


class Mark:
    """Stands where a version does, and is compared by identity: it equals no number, so that whoever compares looks closer.

    `number`: the version. `tensor`: a weak reference to the tensor that was cut from its history at this version, if one was;
    else the array of the saved tensor is to be materialized when it is read.
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
    """Cut `tensor` from its history; those who have saved it find out by the mark in place of its version."""
    if is_recorded(tensor._edge):
        counter = shared_counter(tensor)
        if isinstance(counter, list):  # not that of an inference tensor
            counter[0] = Mark(int(counter[0]), weakref.ref(tensor))
    tensor._edge = None


def shared_counter(tensor: Tensor) -> list[Any]:
    """The version counter of `tensor`, made if it has none yet, for somebody to share."""
    counter = tensor._counter
    if counter is None:
        with _counter_lock:
            counter = tensor._counter
            if counter is None:
                counter = tensor._counter = [0, None]
    return counter


def counting(tensor: Tensor) -> list[Any] | None:
    """The version counter of `tensor`, shared with whoever asks for it; None if nothing counts its changes now."""
    counter: Any = shared_counter(tensor)
    if isinstance(counter, list):
        return counter
    return None if modes.STATE.inference else counter.counter  # that of an inference tensor (see `inference_tensors`)


def about_to_change(tensor: Tensor) -> None:
    """Tell who wants to know it that `tensor` is about to be changed in place (by the slow path of an operation)."""
    watch = modes.STATE.before_change
    if watch is not None:
        watch(tensor)


def bump(tensor: Tensor, name: str, depth: int = 1) -> None:
    """Note an in-place change of `tensor` by operation `name`, and the user's line that made it."""
    counter = counting(tensor)
    if counter is None:
        return
    frame = origin.user_frame(depth + 1)
    counter[1] = (frame.f_code, frame.f_lasti, name)
    counter[0] += 1


def bump_all(tensors: list[Tensor], name: str, depth: int = 1) -> None:
    """Note an in-place change of each of `tensors`, made by one operation at one line."""
    frame = origin.user_frame(depth + 1)
    change = (frame.f_code, frame.f_lasti, name)
    for tensor in tensors:
        counter: Any = tensor._counter
        if type(counter) is not list:
            counter = counting(tensor)
            if counter is None:
                continue
        counter[1] = change
        counter[0] += 1

"""Version counters: they count the changes of memory in place, so that what was saved of it can tell that it has changed.

A counter is a list that views and aliases share: the version, and the latest change (code, instruction, operation) or None.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ..late_bound import LATE
from ..tensor import Tensor, is_recorded
from . import modes, origin
from .anomaly import BY_DEFINITION, note_cut

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
        if counter is not _NO_VERSIONS:
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
    if type(counter) is InferenceVersions:
        return None if modes.STATE.inference else counter.counter
    return counter


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


class InferenceVersions:
    """The version counter of inference tensors: asking it for a version, as saving does, is an error.

    `counter`: what counts changes nevertheless, where the tensor was not itself made in inference mode, but is an alias of one
    that was.
    """

    __slots__ = ("counter",)

    def __init__(self, counter: list[Any] | None) -> None:
        self.counter = counter

    def counted(self) -> list[Any]:
        """What counts changes; RuntimeError where nothing does."""
        if self.counter is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.counter

    def __getitem__(self, index: Any) -> Any:
        # A transform in reverse, or one that was called in inference mode, may save one: its graph is used within it.
        state = modes.STATE
        if state.task is not None or any(
            transform.begun_in_inference or not hasattr(transform, "wraps") for transform in state.transforms
        ):
            return 0 if self.counter is None else self.counter[index]
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
            "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or "
            "use `torch.no_grad()` instead of `torch.inference_mode()`."
        )


_NO_VERSIONS: Any = InferenceVersions(None)


def mark_inference(tensor: Tensor) -> None:
    """Make `tensor` one that was made in inference mode: it has no versions and can never be saved."""
    tensor._own_extra().inference = True
    tensor._counter = _NO_VERSIONS


def mark_if_inference(tensor: Tensor) -> None:
    """Make `tensor`, which no operator has made, an inference tensor if this thread is in inference mode."""
    if modes.STATE.inference:
        mark_inference(tensor)


def share_inference(alias: Tensor, tensor: Tensor, name: str = "data") -> Tensor:
    """Make `alias`, no view, which has got the memory of `tensor`, an inference tensor if that is one.

    Outside of inference mode its changes are counted. `name`: what has made the alias, which ends the history.
    """
    if modes.ANOMALY.enabled and tensor.requires_grad:
        note_cut(name, BY_DEFINITION, [tensor], [alias])
    if tensor._extra is None or not tensor._extra.inference:  # asked without going through wrappers
        return alias
    if (alias._extra is None or not alias._extra.inference) and alias._base is None:
        alias._own_extra().inference = True
        versions: Any = _NO_VERSIONS if modes.STATE.inference and alias._counter is None else shared_counter(alias)
        versions = InferenceVersions(versions) if isinstance(versions, list) else versions
        alias._counter = versions
    return alias


LATE.share_inference = share_inference
LATE.mark_if_inference = mark_if_inference

"""Inference tensors: tensors created in inference mode, and their aliases. They have no version and cannot be saved."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import modes
from .anomaly import BY_DEFINITION, note_cut
from .versions import shared_counter


class InferenceVersions:
    """The version counter of inference tensors. Reading the version is an error. `counter`: that of a counted alias."""

    __slots__ = ("counter",)

    def __init__(self, counter: list[Any] | None) -> None:
        self.counter = counter

    def counted(self) -> list[Any]:
        """Return the counter of in-place changes. Raise RuntimeError if the tensor has no counter."""
        if self.counter is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.counter

    def __getitem__(self, index: Any) -> Any:
        # A reverse-mode transform, or a transform called in inference mode, may save the tensor: its graph is used only
        # within it.
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
"""The counter of tensors that were created in inference mode."""


def mark_inference(tensor: Tensor) -> None:
    """Make `tensor` an inference tensor. It has no version and can never be saved."""
    tensor._own_extra().inference = True
    tensor._counter = _NO_VERSIONS


def mark_if_inference(tensor: Tensor) -> None:
    """Make `tensor`, which no operator has created, an inference tensor if this thread is in inference mode."""
    if modes.STATE.inference:
        mark_inference(tensor)


def share_inference(alias: Tensor, tensor: Tensor, name: str = "data") -> Tensor:
    """If `tensor` is an inference tensor, mark `alias` as an inference tensor. `alias` shares the memory but is no view.

    Outside inference mode, in-place changes of the alias are counted. `name`: the operation that created the alias. The
    history of the alias ends there.
    """
    if modes.ANOMALY.enabled and tensor.requires_grad:
        note_cut(name, BY_DEFINITION, [tensor], [alias])
    if tensor._extra is None or not tensor._extra.inference:  # tested without going through wrappers
        return alias
    if (alias._extra is None or not alias._extra.inference) and alias._base is None:
        alias._own_extra().inference = True
        versions: Any = _NO_VERSIONS if modes.STATE.inference and alias._counter is None else shared_counter(alias)
        versions = InferenceVersions(versions) if isinstance(versions, list) else versions
        alias._counter = versions
    return alias


Tensor._share_inference = share_inference

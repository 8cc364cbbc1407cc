"""`ctx`: what `forward`, `setup_context` and `backward` of a custom function say to the node, and to one another."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


class FunctionCtx:
    """What `ctx` offers to `forward`, `setup_context` and `backward`."""

    __slots__ = ("__dict__",)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`, where `ctx.saved_tensors` gives them back."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `jvp`, where `ctx.saved_for_forward` gives them back."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` has changed in place; they must also be returned."""
        self._check_tensors("mark_dirty can only accept variables, but argument", tensors)
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._check_tensors("mark_non_differentiable only accepts variable arguments, but got", tensors)
        self.non_differentiable = tensors

    @staticmethod
    def _check_tensors(words: str, values: tuple[Any, ...]) -> None:
        wrong = next((value for value in values if not isinstance(value, Tensor)), None)
        if wrong is not None:
            raise RuntimeError(f"{words} {type(wrong).__name__}")

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs that no gradient arrived at."""
        self.materialize_grads = value

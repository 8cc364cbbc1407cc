"""`ctx`: the interface between the node and the `forward`, `setup_context` and `backward` of a custom function."""

from __future__ import annotations

from ..notices import warn
from ..tape import modes
from ..tensor import Tensor


class FunctionCtx:
    """The methods of `ctx` for `forward`, `setup_context` and `backward`."""

    __slots__ = ("__dict__",)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs or outputs for `backward`, which reads them as `ctx.saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save inputs or outputs for `jvp`, which reads them as `ctx.saved_for_forward`."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare which inputs `forward` has changed in place; `forward` must also return them."""
        self.dirty_tensors = tensors

    def mark_shared_storage(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """Do nothing but warn: which tensors share memory is known."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that calls to "
            "`set_()` are not tracked",
            FutureWarning,
        )

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether `backward` gets zeros (the default) or None for outputs that received no gradient."""
        self.materialize_grads = value

    def maybe_clear_saved_tensors(self) -> None:
        """Release the saved tensors now, within `backward`, unless the graph is retained."""
        task = modes.STATE.task
        if task is not None and not task.retain_graph:
            self._saved = None

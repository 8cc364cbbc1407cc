"""The operators of PyTorch's dispatcher that are functions of modules, or properties of tensors, here.

PyTorch composes most of them of other operators, so that dispatch modes never see them. Programs call them by name, as in
`torch.ops.aten.linear(x, w)`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from .._runtime.first_use import import_late
from ..tensor import Tensor
from .schemas import REDUCTIONS

MODULES = {
    "adjoint": """
        can_cast conv_tbc cosine_embedding_loss gru gru_cell hinge_embedding_loss instance_norm kl_div lstm lstm_cell
        margin_ranking_loss native_channel_shuffle poisson_nll_loss promote_types rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
        triplet_margin_loss
        """,
    "adjoint.nn.functional": """
        hardtanh_ l1_loss leaky_relu_ linear multilabel_margin_loss one_hot pad relu6 scaled_dot_product_attention
        """,
    "adjoint.nn.utils.rnn": "pad_sequence",
}
"""The operators that are functions of a module with the same arguments, by the name of the module."""

NUMBERED = ("l1_loss", "multilabel_margin_loss")
"""Losses whose last argument is the number of a reduction in PyTorch's operator, and its name in the function."""


def _of_module(module: str, name: str) -> Callable[..., Any]:
    def function(*args: Any, **names: Any) -> Any:
        return getattr(import_late(module), name)(*args, **names)

    def loss(self: Tensor, target: Tensor, reduction: int = 1) -> Any:
        return getattr(import_late(module), name)(self, target, reduction=REDUCTIONS[reduction])

    return loss if name in NUMBERED else function


def _sizes(self: Tensor, dim: int | None = None) -> Any:
    return list(self.shape) if dim is None else self.shape[dim]


def _strides(self: Tensor, dim: int | None = None) -> Any:
    return list(self.stride()) if dim is None else self.stride(dim)


def _broadcast(tensors: Any) -> Any:
    return import_late("adjoint").broadcast_tensors(*tensors)


def _tensordot(self: Tensor, other: Tensor, dims_self: Any, dims_other: Any) -> Any:
    return import_late("adjoint").tensordot(self, other, (dims_self, dims_other))


COMPOSITES: dict[str, Callable[..., Any]] = {
    **{name: _of_module(module, name) for module, names in MODULES.items() for name in names.split()},
    **{name: attrgetter(name) for name in ("_version", "is_leaf", "mH", "mT", "output_nr", "retains_grad")},
    "matrix_H": lambda self: self.H,
    "numpy_T": lambda self: self.T,
    "size": _sizes,
    "sym_size": _sizes,
    "stride": _strides,
    "sym_stride": _strides,
    "sym_numel": lambda self: self.numel(),
    "storage_offset": lambda self: self.storage_offset(),
    "sym_storage_offset": lambda self: self.storage_offset(),
    "dim": lambda self: self.dim(),
    "is_contiguous": lambda self: self.is_contiguous(),
    "item": lambda self: self.item(),
    "lift": lambda self: self,
    "lift_fresh_copy": lambda self: self.clone(),
    "broadcast_tensors": _broadcast,
    "tensordot": _tensordot,
    "nonzero_numpy": lambda self: list(self.nonzero(as_tuple=True)),
}
"""The function that computes an operator, by the operator's name."""

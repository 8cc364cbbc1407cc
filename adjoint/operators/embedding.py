"""Looking up rows of a table by index."""

from __future__ import annotations

from ..kernels import indexing as kernels
from .build import operator


@operator(
    kernel=lambda weight, indices, *rest: kernels.embedding(weight, indices), method=False, out=False, tangent="linear"
)
class embedding:
    """The rows of `weight` at `indices`; `padding_idx` is the row that gets no gradient."""

    shown = {
        "weight_sym_sizes": None,
        "weight_sym_argsize_0": lambda node: node.saved_weight_shape[0],
        "padding_idx": lambda node: node.saved_padding_idx % 2**64,
        "sparse": lambda node: False,
    }

    def forward(weight: Array, indices: Array, padding_idx=-1, scale_grad_by_freq=False, sparse=False): ...

    def grad_weight(grad, weight_shape, indices, padding_idx, scale_grad_by_freq, xp):
        return xp.embedding_dense_backward(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


@operator(kernel=kernels.embedding_dense_backward, namespace=None, method=False, out=False, tangent="linear")
class embedding_dense_backward:
    """The gradient of the table: each row's gradients added up."""

    def forward(self: Array, indices: Array, num_weights, padding_idx, scale_grad_by_freq): ...

    def grad_self(grad, indices, padding_idx, scale_grad_by_freq, xp):
        rows = xp.embedding(grad, indices, padding_idx, scale_grad_by_freq, False)
        if padding_idx >= 0:
            rows = rows * (indices != padding_idx).reshape((*indices.shape, 1))
        return rows

"""Gradients that are sparse because few elements were taken."""

from __future__ import annotations

from ...dispatch.annotations import Array
from ...dispatch.decorators import operator
from ...kernels.sparse import layouts as kernels


@operator(
    kernel=kernels.gather_backward,
    namespace=None,
    method=False,
    out=False,
    tangent="linear",
    sparse_result=True,
)
class gather_sparse_backward:
    """The gradient of `gather` as a sparse tensor of shape `shape`."""

    def forward(self: Array, dim, index: Array, shape): ...

    def grad_self(grad, dim, index, xp):
        return xp.gather(xp.in_layout(grad, "strided"), dim, index, sparse_grad=False)


@operator(
    kernel=kernels.embedding_backward,
    node="SparseCooTensorWithDimsAndTensorsBackward0",
    namespace=None,
    method=False,
    out=False,
    tangent="linear",
    sparse_result=True,
)
class embedding_sparse_backward:
    """The gradient of the table as a sparse tensor: the gradients of the rows that were taken."""

    def forward(self: Array, indices: Array, num_weights, padding_idx): ...

    def grad_self(grad, indices, padding_idx, xp):
        rows = xp.embedding(xp.in_layout(grad, "strided"), indices, padding_idx, False, False)
        if padding_idx >= 0:
            rows = rows * (indices != padding_idx).reshape((*indices.shape, 1))
        return rows

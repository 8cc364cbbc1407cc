"""The functions of `torch.sparse`: products, sums, softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...device import sparse_coo, strided
from ...dispatch.annotations import Array, Number
from ...dispatch.arguments import require
from ...dispatch.decorators import internal, public, publish
from ...kernels.linalg import matmul as dense_products
from ...kernels.runtime.floating import is_floating, quietly, refuse
from ...kernels.runtime.sparse_array import SparseArray
from ...kernels.sparse import layouts as kernels
from ...kernels.sparse import products
from ...tensor import Tensor, wrap
from ..linalg.matmul import addmm as dense_addmm
from ..linalg.matmul import mm as product
from ..memory.conversion import checked_dtype
from ..reduce.reduction import sum as total
from .creation import sparse_coo_tensor
from .layouts import coalesce, layout_of, linear, stored_values

# --- products ---------------------------------------------------------------------------------------------------------


@internal(dense_products.addmm, sparse="products.addmm", out=False, tangent="affine")
class _sparse_addmm:
    """`beta * self + alpha * (mat1 @ mat2)`. The gradient of `mat1` has the stored elements of `mat1`."""

    def forward(self: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1): ...

    def grad_self(grad, beta):
        return grad if beta == 1 else grad * beta

    def grad_mat1(grad, mat1, mat2, alpha, xp):
        return xp.sparse_product_gradient(grad if alpha == 1 else grad * alpha, mat2, mat1)

    def grad_mat2(grad, mat1, alpha, xp):
        return xp.mm(mat1.mT.conj(), grad if alpha == 1 else grad * alpha)


@internal(lambda grad, mat2, mask: grad @ mat2.conj().T, sparse="products.product_gradient", out=False)
class sparse_product_gradient:
    """`grad @ mat2.mH`. If `mask` is sparse, the product is computed only at the stored elements of `mask`."""

    def forward(self: Array, mat2: Array, mask: Array): ...

    def grad_self(grad, mat2, xp):
        return xp.mm(grad, mat2)

    def grad_mat2(grad, self, xp):
        return xp.mm(grad.mT.conj(), self)


@internal(dense_products.mm, sparse="products.mm", out=False)
class _sparse_sparse_matmul:
    """The product of two sparse matrices, which is sparse."""

    def forward(self: Array, other: Array): ...

    def grad_self(grad, self, other, xp):
        return xp.sparse_mask(xp.mm(grad, xp.transpose(other, 0, 1).conj()), xp.coalesced(self))

    def grad_other(grad, self, other, xp):
        return xp.sparse_mask(xp.mm(xp.transpose(self, 0, 1).conj(), grad), xp.coalesced(other))


def _is_sparse(tensor: Tensor) -> bool:
    return isinstance(tensor._array, SparseArray)


_SUM: Any = object()


def mm(mat1, mat2, reduce=_SUM):
    """The product of two matrices, at least one of which is sparse. The result is sparse if both factors are sparse.

    The gradient of a sparse factor is sparse too. This gradient has the stored elements of the factor. `reduce` is
    "sum", "mean", "amax" or "amin". With the last three, each element of the result is the mean, maximum or minimum of
    terms instead of their sum. Then `mat1` must have the layout `torch.sparse_csr`, and `mat2` must be dense. Rows
    without stored elements give zeros.

    >>> import adjoint as torch
    >>> torch.sparse.mm(torch.eye(2).to_sparse(), torch.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    if reduce is not _SUM:
        return reduced_product(mat1, mat2, reduce, mm)
    if _is_sparse(mat1) and _is_sparse(mat2):
        return _sparse_sparse_matmul(mat1, mat2)
    if not _is_sparse(mat1):
        return product(mat1, mat2)
    zeros = mat2.new_zeros((mat1.shape[0], mat2.shape[1])) if mat1.dim() == mat2.dim() == 2 else mat2
    return _sparse_addmm(zeros, mat1, mat2, beta=1, alpha=1)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """`beta * input + alpha * (mat1 @ mat2)` with a sparse `mat1`.

    The gradient of `mat1` has the stored elements of `mat1`.
    """
    if not _is_sparse(mat1):
        return dense_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return _sparse_addmm(input.expand(mat1.shape[0], mat2.shape[1]), mat1, mat2, beta=beta, alpha=alpha)


@public(alias=("dsmm", "hsmm"))
def spmm(input, mat2):
    """The product of two matrices. One of them may be sparse. The function equals `mm`."""
    return product(input, mat2)


@public(method=True)
def smm(input, mat):
    """The product of a sparse and a dense matrix, as a sparse matrix."""
    return product(input, mat).to_sparse()


@public()
def hspmm(mat1, mat2, *, out=None):
    """The product of a sparse and a dense matrix.

    The result has one sparse dimension, and stores only the rows that `mat1` stores.

    >>> import adjoint as torch
    >>> torch.hspmm(torch.eye(2).to_sparse(), torch.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    if mat1.layout is not sparse_coo:
        place = getattr(mat1._array, "words", "")
        raise NotImplementedError(
            f"Could not run 'aten::hspmm' with arguments from the '{place}CPU' backend. The first matrix has to be in "
            "coordinates: `to_sparse()`."
        )
    if mat2.dim() != 2:
        raise RuntimeError(f"hspmm: Argument #3: matrices expected, got {mat2.dim()}D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"hspmm: Argument #3: Expected dim 0 size {mat1.shape[1]}, got {mat2.shape[0]}")
    rows = mat1._indices()[0].unique()
    result = sparse_coo_tensor(rows[None], product(mat1, mat2)[rows], (mat1.shape[0], mat2.shape[1]))
    return result if out is None else out.copy_(result)


@public(method=("sspaddmm",), alias=("saddmm",))
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """`beta * input + alpha * (mat1 @ mat2)` with sparse `input` and `mat1`, as a sparse matrix."""
    return input * beta + product(mat1, mat2).to_sparse() * alpha


@internal(
    kernels.not_dense,
    sparse="products.sampled_addmm",
    out=False,
    node="SparseSampledAddmmBackward0",
    function_name="sparse_sampled_addmm",
)
class sampled_addmm:
    """`beta * input + alpha * (mat1 @ mat2)` at the stored elements of `input`, which has the layout `sparse_csr`."""

    def forward(self: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1): ...

    def grad_self(grad, beta):
        return grad if beta == 1 else grad * beta

    def grad_mat1(grad, self, mat2, alpha, xp):
        grad = xp.sparse_mask(grad, self)
        return xp.mm(grad if alpha == 1 else grad * alpha, mat2.mT.conj())

    def grad_mat2(grad, self, mat1, alpha, xp):
        grad = xp.transpose(xp.sparse_mask(grad, self), 0, 1)
        return xp.mm(grad if alpha == 1 else grad * alpha, mat1.conj()).mT


# --- sums -------------------------------------------------------------------------------------------------------------


@linear(kernels.not_dense, "reductions.sum_dims")
class _sparse_sum:
    """The sums over `dim`, with a gradient at the stored elements."""

    def forward(self: Array, dim): ...

    def grad_self(grad, self, dim, xp):
        return xp._sparse_sum_backward(grad, self, dim)


@linear(kernels.not_dense, "reductions.sum_backward")
class _sparse_sum_backward:
    """The gradient of `_sparse_sum`."""

    def forward(grad: Array, self: Array, dim): ...

    def grad_grad(grad, dim, xp):
        return xp._sparse_sum(grad, dim)


def sparse_sum(input, dim=None, dtype=None):
    """The sum of all elements of a sparse tensor, or the sums over `dim`.

    The sums are sparse if a sparse dimension remains.

    >>> import adjoint as torch
    >>> torch.sparse.sum(torch.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if layout_of(input) != "Sparse":
        return total(input, dtype=dtype) if dim is None else total(input, dim, dtype=dtype)
    if dtype is not None:
        input = input.to(dtype)
    if dim is None:
        return total(stored_values(coalesce(input)))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    result = _sparse_sum(input, dims)
    return result if result.layout is strided else result.to(input.dtype)


# --- softmax ----------------------------------------------------------------------------------------------------------


def _softmax(function: str, node: str) -> tuple[Any, Any]:
    """Declare the operators of a softmax over stored elements, and of its gradient."""

    @internal(
        kernels.not_dense,
        sparse=f"reductions.{function}",
        tangent="elementwise" if function == "softmax" else None,  # the Jacobian is symmetric
        name=f"_sparse_{function}",
        out=False,
        node=node,
    )
    class forward_operator:
        """The softmax over the stored elements of each row, or its logarithm."""

        def forward(self: Array, dim): ...

        def grad_self(grad, result, dim, xp):
            return getattr(xp, f"_sparse_{function}_backward")(grad, result, dim)

    @internal(
        kernels.not_dense, sparse=f"reductions.{function}_backward", name=f"_sparse_{function}_backward", out=False
    )
    class backward_operator:
        """The gradient of the input. With `transposed`, compute the transpose of the gradient, which is the tangent."""

        def forward(grad: Array, output: Array, dim, transposed=False): ...

        def grad_grad(grad, output, dim, transposed, xp):
            return getattr(xp, f"_sparse_{function}_backward")(grad, output, dim, not transposed)

    return forward_operator, backward_operator


_sparse_softmax, _ = _softmax("softmax", "SparseSoftmaxBackward0")
_sparse_log_softmax, _ = _softmax("log_softmax", "SparseLogSoftmaxBackward0")


def _checked(input: Any, dim: Any, dtype: Any, name: str) -> Any:
    layout = layout_of(input)
    if layout != "Sparse":
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_{name}' with arguments from the '{layout.removeprefix('Strided')}CPU' backend. The "
            "function takes tensors of layout sparse_coo."
        )
    if dtype is not None:
        input = input.to(checked_dtype(dtype, name))
    elif not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise refuse(f"{name}", input._array)
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {dim})"
        )
    return input


def softmax(input, dim, *, dtype=None):
    """The softmax over the stored elements of a sparse tensor along `dim`. The other elements count as minus infinity.

    >>> import adjoint as torch
    >>> torch.sparse.softmax(torch.eye(2).to_sparse(), 1).values()
    tensor([1., 1.])
    """
    return _sparse_softmax(_checked(input, dim, dtype, "softmax"), dim)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`."""
    return _sparse_log_softmax(_checked(input, dim, dtype, "log_softmax"), dim)


# --- gradients that are sparse because few elements were taken -------------------------------------------------------


@linear(kernels.gather_backward, "result")
class gather_sparse_backward:
    """The gradient of `gather` as a sparse tensor of shape `shape`."""

    def forward(self: Array, dim, index: Array, shape): ...

    def grad_self(grad, dim, index, xp):
        return xp.gather(xp.in_layout(grad, "strided"), dim, index, sparse_grad=False)


@linear(kernels.embedding_backward, "result", node="SparseCooTensorWithDimsAndTensorsBackward0")
class embedding_sparse_backward:
    """The gradient of the table as a sparse tensor: the gradients of the rows that were read."""

    def forward(self: Array, indices: Array, num_weights, padding_idx): ...

    def grad_self(grad, indices, padding_idx, xp):
        rows = xp.embedding(xp.in_layout(grad, "strided"), indices, padding_idx, False, False)
        if padding_idx >= 0:
            rows = rows * (indices != padding_idx).reshape((*indices.shape, 1))
        return rows


# --- diagonals, equations ---------------------------------------------------------------------------------------------


@internal(kernels.diagonals, sparse="result", out=False)
class _on_diagonals:
    """The sparse matrix with the given diagonals."""

    def forward(self: Array, offsets, shape): ...


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix of the given shape with the rows of `diagonals` on the diagonals at `offsets`."""
    if diagonals.dim() > 2 or not diagonals.dim():
        raise RuntimeError(f"Diagonals must be vector or matrix, got {diagonals.dim()}-D tensor")
    rows = 1 if diagonals.dim() == 1 else diagonals.shape[0]
    if offsets.dtype is not dtypes.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.scalar_type}")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    places = offsets.reshape(-1).tolist()
    if len(places) != rows:
        raise RuntimeError(f"Number of diagonals ({rows}) does not match the number of offsets ({len(places)})")
    if len(set(places)) < len(places):
        raise RuntimeError("Offset tensor contains duplicate values")
    result = _on_diagonals(diagonals, places, tuple(shape))
    return result if layout is None else result.to_sparse(layout=layout)


publish(
    "sparse",
    addmm=addmm,
    log_softmax=log_softmax,
    mm=mm,
    sampled_addmm=sampled_addmm,
    softmax=softmax,
    spdiags=spdiags,
    sum=sparse_sum,
)


_KINDS = {"sum": "sum", "mean": "mean", "amax": "amax", "max": "amax", "amin": "amin", "min": "amin"}


def reduced_product(mat1: Tensor, mat2: Tensor, reduce: Any, product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The product with a mean, maximum or minimum over the stored elements of each row of `mat1`, instead of a sum.

    A row of `mat1` without stored elements gives zeros. The function `product` computes the product with sums.
    """
    kind = _checked_reduction(mat1, mat2, reduce)
    sparse: Any = mat1._array
    dense = mat2._array
    if kind == "sum" or not sparse.parts.values.size:
        return product(mat1, mat2)
    lengths = products.row_lengths(sparse)
    if kind == "mean":
        return product(mat1, mat2) / wrap(lengths.clip(1).astype(dense.dtype))
    chosen = quietly(products.extreme_entries, sparse, dense, kind == "amax")
    rows = wrap(sparse.parts.places[chosen].astype(chosen.dtype))
    found = stored_values(mat1).take(wrap(chosen)) * mat2.gather(0, rows)
    return found.masked_fill(wrap(lengths == 0), 0.0)


def _checked_reduction(mat1: Tensor, mat2: Tensor, reduce: Any) -> str:
    """Return the name of the reduction. Raise an error for arguments that PyTorch does not support."""
    require("Str", reduce, "_sparse_mm", "reduce", 3)
    if reduce not in _KINDS and reduce != "prod":
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    layout = layout_of(mat1)
    if layout in ("Sparse", "Strided"):
        backend = "SparseCPU" if layout == "Sparse" else "CPU"
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_mm_reduce_impl' with arguments from the '{backend}' backend. The first matrix "
            "must have the layout torch.sparse_csr."
        )
    if layout != "SparseCsr":
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {layout}")
    if layout_of(mat2) != "Strided":
        raise RuntimeError(
            f"Expected tensor to have Strided Layout, but got tensor with {layout_of(mat2)} Layout (while checking arguments "
            "for sparse_mm_reduce)"
        )
    sparse, dense = mat1._array, mat2._array
    if dense.ndim != 2 or dense.shape[0] != sparse.shape[1]:
        given = f"dimension {dense.ndim} and tensor.size[0] = {dense.shape[0] if dense.ndim else 0}"
        raise RuntimeError(f"Expected a tensor of dimension 2 and tensor.size[0] == {sparse.shape[1]} but got: {given}")
    if sparse.dtype != dense.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'other' to have scalar type {mat1.dtype.scalar_type}; but got "
            f"torch.{mat2.dtype.scalar_type}Tensor instead (while checking arguments for sparse_mm_reduce)"
        )
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    if not is_floating(sparse.dtype):
        raise refuse("spmm_reduce_kernel", sparse)
    return _KINDS[reduce]

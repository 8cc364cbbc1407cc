"""Products of a sparse and a dense matrix with another reduction in place of the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dispatch.arguments import require
from ...kernels.runtime.floating import is_floating, quietly, refuse
from ...kernels.sparse import products
from ...tensor import Tensor, wrap
from .layouts import layout_of, stored_values

_KINDS = {"sum": "sum", "mean": "mean", "amax": "amax", "max": "amax", "amin": "amin", "min": "amin"}


def reduced_product(mat1: Tensor, mat2: Tensor, reduce: Any, product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The product with a mean, maximum or minimum over the stored elements of each row of `mat1`, instead of a sum.

    A row of `mat1` without stored elements gives zeros. The function `product` computes the product with sums.
    """
    kind = _checked(mat1, mat2, reduce)
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


def _checked(mat1: Tensor, mat2: Tensor, reduce: Any) -> str:
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

"""Reductions of the elements that a sparse tensor stores. Elements that are not stored are masked out.

Dense dimensions of hybrid tensors are not reduced. The result has the layout of the tensor.
"""

from __future__ import annotations

import adjoint as torch
from adjoint import Tensor

SPARSE = (torch.sparse_coo, torch.sparse_csr)


def mask_like(input: Tensor, mask: Tensor) -> Tensor:
    """Return the mask with the shape and the layout of `input`. A sparse mask is coalesced."""
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask.layout is not input.layout or mask.shape != input.shape:
        mask = (mask if mask.layout is torch.strided else mask.to_dense()).broadcast_to(input.shape)
        if input.layout is torch.sparse_coo:
            mask = mask.to_sparse(input.sparse_dim())
        elif input.layout is torch.sparse_csr:
            mask = mask.to_sparse_csr()
    return (mask.coalesce() if mask.layout is torch.sparse_coo else mask).to(torch.bool)


def stored(mask: Tensor, input: Tensor) -> Tensor:
    """Return a tensor that stores the elements of the sparse `input` where the sparse `mask` is True."""
    layout, mask = mask.layout, mask.to_sparse().coalesce()
    if mask.dense_dim() == 0 and not bool(mask.values().all()):
        kept = mask.values()
        mask = torch.sparse_coo_tensor(mask.indices()[:, kept], kept[kept], mask.shape).coalesce()
    found = input.to_sparse().coalesce().sparse_mask(mask)
    return found.to_sparse_csr() if layout is torch.sparse_csr else found


def reduced(
    name: str, data: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool, kind: torch.dtype
) -> Tensor:
    """Return the reduction `name` over `dims` of the stored elements, which `mask` has selected, in the dtype `kind`."""
    if mask is None and name != "sum":
        shown = "amax" if name == "amin" else name  # sic
        raise ValueError(f"masked {shown} expects explicit mask for {str(data.layout)[6:]} tensor input")
    compressed = data.layout is torch.sparse_csr
    if compressed and not keepdim:
        error = RuntimeError if name in ("sum", "prod") else AssertionError
        raise error("reduction operations on CSR tensors with keepdim=False is unsupported")
    if name == "mean":
        assert mask is not None
        total, count = (reduced("sum", each, mask, dims, keepdim, kind) for each in (data, mask))
        quotients = total.values() / count.values()
        return torch.sparse_csr_tensor(total.crow_indices(), total.col_indices(), quotients, total.shape)
    whole = data.to_sparse().coalesce()
    places, values = whole.indices(), whole.values().to(kind)
    kept = [dim for dim in range(whole.dim()) if dim not in dims]
    shape = [1 if dim in dims else size for dim, size in enumerate(whole.shape) if keepdim or dim not in dims]
    if kept:
        found, groups = places[kept].unique(dim=1, return_inverse=True)
    else:
        found, groups = places.new_empty((0, 1)), places.new_zeros((len(values),))
    result = values.new_full((found.shape[1], *values.shape[1:]), int(name == "prod"))
    groups = groups.reshape(-1, *([1] * (values.dim() - 1))).expand_as(values)
    result = result.scatter_reduce(0, groups, values, name, include_self=len(values) == 0)
    if not kept and not compressed:
        return result.reshape(shape).to_sparse()
    if keepdim:
        rows = iter(found)
        found = torch.stack(
            [next(rows) if dim in kept else places.new_zeros((found.shape[1],)) for dim in range(whole.dim())]
        )
    made = torch.sparse_coo_tensor(found, result, shape)
    return made.coalesce().to_sparse_csr() if compressed else made

"""Products of groups of matrices of different sizes, as mixtures of experts need."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """The products of groups of matrices. `offs[g]` is where group g ends in the dimension that is divided.

    ==================  ==================  ====================================================
    `mat_a`             `mat_b`             result
    ==================  ==================  ====================================================
    (rows, k)           (groups, k, n)      (rows, n): each group of rows times its matrix
    (groups, m, k)      (k, columns)        (m, columns): each matrix times its group of columns
    (m, k)              (k, n)              (groups, m, n): the products of parts of k
    (groups, m, k)      (groups, k, n)      (groups, m, n), without `offs`
    ==================  ==================  ====================================================

    What lies behind the last group is zero in the result.

    Args:
        mat_a, mat_b: float32, float16 or bfloat16, both of one dtype.
        offs: int32, not decreasing.
        bias: not supported, as in PyTorch.
        out_dtype: the dtype of `mat_a`, or None.

    Raises:
        RuntimeError: if shapes, dtypes or offsets do not fit.

    >>> import adjoint as torch
    >>> tokens, experts = torch.ones(3, 2), torch.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
    >>> torch.nn.functional.grouped_mm(tokens, experts, offs=torch.tensor([1, 3], dtype=torch.int32))
    tensor([[2.],
            [4.],
            [4.]])
    """
    ends = _checked(mat_a, mat_b, offs, bias, out_dtype)
    if ends is None:
        return torch.bmm(mat_a, mat_b)
    parts = list(zip([0, *ends], ends, strict=False))
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return torch.stack([mat_a[:, start:end] @ mat_b[start:end] for start, end in parts])
    if mat_a.dim() == 2:
        rows = [mat_a[start:end] @ mat_b[group] for group, (start, end) in enumerate(parts)]
        rest = mat_a.size(0) - (ends[-1] if ends else 0)
        return torch.cat([*rows, mat_a.new_zeros(rest, mat_b.size(-1))])
    columns = [mat_a[group] @ mat_b[:, start:end] for group, (start, end) in enumerate(parts)]
    rest = mat_b.size(1) - (ends[-1] if ends else 0)
    return torch.cat([*columns, mat_a.new_zeros(mat_a.size(1), rest)], 1)


_grouped_mm = grouped_mm


def _checked(
    mat_a: Tensor, mat_b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: Any
) -> list[int] | None:
    """The ends of the groups; None if both arguments enumerate them."""
    if mat_a.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise RuntimeError(f"Expected mat_a to be Float32, BFloat16 or Float16 matrix, got {mat_a.dtype}")
    if mat_a.dtype != mat_b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {mat_a.dtype} != {mat_b.dtype}")
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if mat_a.size(-1) != mat_b.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) is not (mat_a.dim() == 3 and mat_b.dim() == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        if mat_a.size(0) != mat_b.size(0):
            raise RuntimeError("batched dimension has to match")
        return None
    if offs.dim() != 1:
        raise RuntimeError("offs has to be 1D")
    if offs.dtype != torch.int32:
        raise RuntimeError("Offsets have to be int32")
    if any(matrix.dim() == 3 and matrix.size(0) != offs.numel() for matrix in (mat_a, mat_b)):
        raise RuntimeError("matrix batch sizes have to match")
    ends: list[int] = offs.tolist()
    length = mat_a.size(-1) if mat_a.dim() == mat_b.dim() else mat_a.size(0) if mat_a.dim() == 2 else mat_b.size(1)
    if sorted(ends) != ends or (ends and (ends[0] < 0 or ends[-1] > length)):
        raise RuntimeError(f"offsets must not decrease and not be beyond {length}, but got {ends}")
    return ends

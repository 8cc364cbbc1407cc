"""Products of groups of matrices, as in mixtures of experts, and of matrices of eight-bit numbers with scales."""

from __future__ import annotations

from enum import IntEnum
from math import nan
from typing import Any, NoReturn

import adjoint as torch
from adjoint import Tensor


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """The products of groups of matrices.

    `offs[g]` is the end of group g in the divided dimension.

    ==================  ==================  ====================================================
    `mat_a`             `mat_b`             result
    ==================  ==================  ====================================================
    (rows, k)           (groups, k, n)      (rows, n): each group of rows times its matrix
    (groups, m, k)      (k, columns)        (m, columns): each matrix times its group of columns
    (m, k)              (k, n)              (groups, m, n): the products of parts of k
    (groups, m, k)      (groups, k, n)      (groups, m, n), without `offs`
    ==================  ==================  ====================================================

    Elements after the last group are zero in the result.

    Args:
        mat_a, mat_b: float32, float16 or bfloat16 tensors of one dtype.
        offs: the ends of the groups, as int32, in ascending order.
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


class _ScalingType(IntEnum):
    """The numbers of a matrix that share a scale: all numbers, a row, or a block."""

    TensorWise, RowWise, BlockWise1x16, BlockWise1x32, BlockWise1x128, BlockWise128x128 = range(6)


class _SwizzleType(IntEnum):
    """The order of scales in memory."""

    NO_SWIZZLE, SWIZZLE_32_4_4 = range(2)


ScalingType, SwizzleType = _ScalingType, _SwizzleType


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    output_dtype: Any = torch.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """`(scale_a * mat_a) @ (scale_b * mat_b) + bias` of matrices of eight-bit numbers, summed in float32.

    Args:
        mat_a, mat_b: (m, k) and (k, n), such as `float8_e4m3fn`.
        scale_a, scale_b: one number for each matrix (`ScalingType.TensorWise`), or (m, 1) and (1, n) (`RowWise`).
        swizzle_a, swizzle_b, contraction_dim, use_fast_accum: options for GPUs.

    Raises:
        RuntimeError, ValueError: if shapes, scales or dtypes do not fit.

    >>> import adjoint as torch
    >>> a = torch.tensor([[1.0, 2.0]]).to(torch.float8_e4m3fn)
    >>> by, one = torch.nn.functional.ScalingType.TensorWise, torch.tensor(1.0)
    >>> torch.nn.functional.scaled_mm(a, a.T, one, by, 10 * one, by, output_dtype=torch.float32)
    tensor([[50.]])
    """
    given = [
        value if isinstance(value, list) else [value] for value in (scale_a, scale_recipe_a, scale_b, scale_recipe_b)
    ]
    return _scaled_mm_v2(mat_a, mat_b, given[0], given[1], (), given[2], given[3], (), bias, output_dtype)


def _scaled_mm_v2(
    input: Tensor,
    mat2: Tensor,
    scale_a: Any,
    recipe_a: Any,
    swizzle_a: Any,
    scale_b: Any,
    recipe_b: Any,
    swizzle_b: Any,
    bias: Tensor | None,
    out_dtype: Any,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    for name, scales, recipes in (("scale_a", scale_a, recipe_a), ("scale_b", scale_b, recipe_b)):
        recipe = int(recipes[0])
        if not recipe and scales[0].numel() != 1:
            raise ValueError(f"{name} must have 1 Float element")
        if recipe > 1:
            raise ValueError("Invalid scaling configuration.")
    return _scaled_mm(input, mat2, scale_a[0], scale_b[0], bias, None, out_dtype)


def scaled_grouped_mm(*args: Any, **options: Any) -> NoReturn:
    """Raise NotImplementedError, as PyTorch does on a CPU."""
    raise NotImplementedError("Could not run 'aten::_scaled_grouped_mm_v2' with arguments from the 'CPU' backend.")


def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    for number, matrix in enumerate((input, mat2), 1):
        if matrix.dim() != 2:
            raise RuntimeError(f"mat{number} must be a matrix")
    (m, k), (rows, n) = input.shape, mat2.shape
    if k != rows:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {rows}x{n})")
    if "float8" not in str(input.dtype):
        raise RuntimeError(f"Expected mat1 to be Float8 matrix got {input.dtype.scalar_type}")
    if scale_a.numel() == scale_b.numel() == 1:
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    elif (scale_a.shape, scale_b.shape) != ((m, 1), (1, n)):
        raise ValueError("Invalid scaling configuration.")
    if bias is not None and bias.numel() != n:
        raise RuntimeError(f"Bias must be size {n} but got {bias.numel()}")
    kind = out_dtype or (input if out is None else out).dtype
    if out is not None and out.dtype is not kind:
        raise RuntimeError("out_dtype must match output matrix type")
    result = (input.float() @ mat2.float()) * (scale_a.float() * scale_b.float())
    if bias is not None:
        result = result + bias.float()
    if kind.itemsize == 1:
        result = result if scale_result is None or out_dtype is None else result / scale_result
        if input.dtype is mat2.dtype:  # rounded twice, as in PyTorch
            result = result.half()
            if kind is torch.float8_e4m3fn:  # too large a sum is NaN
                result = result.masked_fill(result.abs() > 464, nan)
    return result.to(kind) if out is None else out.copy_(result)


def _checked(
    mat_a: Tensor, mat_b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: Any
) -> list[int] | None:
    """Check the arguments. Return the ends of the groups, or None if both matrices have three dimensions."""
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

"""Private functions of `torch` that programs call. They are written on top of the public functions.

In PyTorch they are operators that it uses itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adjoint as torch
from adjoint._runtime.tracebacks import end_at_caller
from adjoint.dtypes import C_NAMES

Tensor = torch.Tensor

__all__ = [
    "_adaptive_avg_pool2d", "_addmm_activation", "_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_",
    "_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo", "_debug_has_internal_overlap", "_dim_arange",
    "_euclidean_dist", "_int_mm", "_pack_padded_sequence", "_scaled_dot_product_attention_math", "_segment_reduce", "_unique2",
    "_weight_norm_interface",
]  # fmt: skip


def _segment_reduce(*args: Any, **options: Any) -> Tensor:
    """`segment_reduce`."""
    return torch.segment_reduce(*args, **options)


def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct elements, the positions of all elements among them, and their counts.

    Unrequested results are empty.
    """
    values, inverse, counts = torch.unique(input, sorted, True, True)
    nothing = torch.empty(0, dtype=torch.int64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Return `v` scaled to the norms `g` along all dimensions except `dim`, and the norms of `v`."""
    norms = torch.norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product of two int8 matrices, in int32."""
    for name, matrix in (("self", input), ("mat2", mat2)):
        if matrix.dim() != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {matrix.dim()}")
    if input.size(1) != mat2.size(0):
        raise RuntimeError(
            f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {input.size(1)} and {mat2.size(0)}"
        )
    for name, matrix in (("self", input), ("mat2", mat2)):
        if matrix.dtype is not torch.int8 and (matrix is mat2 or matrix.dtype is not torch.uint8):
            kinds = "int8 or uint8" if matrix is input else "of type int8"
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} dtype to be {kinds} but got {C_NAMES[matrix.dtype]}")
    product = input.int() @ mat2.int()
    return product if out is None else out.resize_(product.shape).copy_(product)


def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the distances of all pairs of rows, computed by matrix products."""
    return torch.cdist(x1, x2, compute_mode="use_mm_for_euclid_dist")


def _addmm_activation(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, use_gelu: bool = False
) -> Tensor:
    """Return `relu` (or `gelu`) of `addmm`."""
    result = torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return torch.nn.functional.gelu(result) if use_gelu else result.relu()


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """Return the indices along a dimension."""
    return torch.arange(like.size(dim))


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Return whether elements share memory: 0 (no), 1 (yes), or 2 (the check would take too long)."""
    steps = [(stride, size) for stride, size in zip(input.stride(), input.shape, strict=True) if size > 1]
    if any(stride == 0 for stride, _ in steps):
        return 1
    reach = 1
    for stride, size in sorted(steps):
        if stride != reach:
            return 2
        reach = stride * size
    return 0


def _adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """`adaptive_avg_pool2d`."""
    return torch.nn.functional.adaptive_avg_pool2d(input, output_size)


def _scaled_dot_product_attention_math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return `scaled_dot_product_attention` computed by its formula, and the weights of the values.

    Args:
        attn_mask: a mask that is added to the products of queries and keys.
        dropout_mask: the positions to keep. If it is None, positions are dropped at random.
    """
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not(), -torch.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = torch.softmax(scores, -1).masked_fill((scores == -torch.inf).all(-1, keepdim=True), 0)
    if dropout_mask is not None:
        weights = weights.masked_fill(dropout_mask.logical_not(), 0) / (1 - dropout_p)
    elif dropout_p > 0:
        weights = torch.dropout(weights, dropout_p, True)
    return weights @ value, weights


def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Return the data and the batch sizes of `torch.nn.utils.rnn.pack_padded_sequence`."""
    packed = torch.nn.utils.rnn.pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _amp_foreach_non_finite_check_and_unscale_(tensors: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply gradients by `inv_scale` in place. Set `found_inf` to 1 if one of them is infinite or NaN."""
    for name, number in (("found_inf", found_inf), ("inv_scale", inv_scale)):
        if number.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if number.dtype is not torch.float32:
            raise RuntimeError(f"{name} must be a float tensor.")
    for tensor in tensors:
        if not tensor.isfinite().all():
            found_inf.fill_(1.0)
        tensor.mul_(inv_scale.item())


def _amp_update_scale_(
    scale: Tensor, growth_tracker: Tensor, found_inf: Tensor, growth_factor: float, backoff_factor: float, interval: int
) -> Tensor:
    """Reduce the scale after gradients that were not finite, or increase it after `interval` steps of finite gradients."""
    if found_inf.item():
        scale.mul_(backoff_factor)
        growth_tracker.zero_()
    elif growth_tracker.item() + 1 == interval:
        grown = scale * growth_factor
        if grown.isfinite():
            scale.copy_(grown)
        growth_tracker.zero_()
    else:
        growth_tracker.add_(1)
    return scale


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Return the starts of `size` rows in sorted row numbers, followed by the end of the last row."""
    starts = torch.zeros(size + 1, dtype=torch.int64)
    starts[1:] = torch.bincount(input.long(), minlength=size).cumsum(0)
    return starts.int() if out_int32 else starts


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the row number and the column number of each element."""
    rows = torch.repeat_interleave(torch.arange(len(crow_indices) - 1), crow_indices.long().diff())
    found = torch.stack([col_indices.long(), rows] if transpose else [rows, col_indices.long()])
    return found.int() if out_int32 else found


end_at_caller(globals(), *__all__)

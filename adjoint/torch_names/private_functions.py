"""Private functions of `torch` that programs and tests call. They call the public functions.

In PyTorch, the functions are operators that PyTorch itself uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

import adjoint as torch
from adjoint._runtime.tracebacks import end_at_caller
from adjoint.dtypes import C_NAMES
from adjoint.kernels.sparse import layouts as kernels
from adjoint.operators.index.indexing import put_at

Tensor = torch.Tensor
_conj, _conj_physical, _stack, _segment_reduce = torch.conj, torch.conj_physical, torch.stack, torch.segment_reduce
_logcumsumexp, _grid_sampler_2d_cpu_fallback = torch.logcumsumexp, torch.grid_sampler_2d
_adaptive_avg_pool2d = torch.nn.functional.adaptive_avg_pool2d
_adaptive_avg_pool3d = torch.nn.functional.adaptive_avg_pool3d


def _test_check_tensor(input: Tensor) -> Tensor:
    """Return `input`. Raise RuntimeError unless all elements are true."""
    torch._check_tensor_all(input, lambda: "Test message for TORCH_CHECK_TENSOR_ALL")
    return input.clone()


def _weight_int8pack_mm(input: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """Return the product with transposed int8 weights. `scales` has one factor for each row of the weights."""
    if mat2.dtype is not torch.int8:
        raise RuntimeError("_weight_int8pack_mm_cpu : expect B to be int8 tensor.")
    return (input.float() @ mat2.float().mT * scales.float()).to(input.dtype)


# --- attention ------------------------------------------------------------------------------------------------------


def _native_multi_head_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Return multi-head attention in inference, and the weights of attention."""
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (torch.nn.functional.linear(*part).unflatten(-1, (num_head, -1)).transpose(1, 2) for part in parts)
    scores = q * q.shape[-1] ** -0.5 @ k.mT
    weights = scores.softmax(-1) if mask is None else torch._masked_softmax(scores, mask, -1, mask_type)
    found = torch.nn.functional.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    return found, (weights.mean(1) if average_attn_weights else weights) if need_weights else None


def _fused_sdp_choice(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> int:  # fmt: skip
    """Return the number of the backend that PyTorch uses for attention on a CPU: 1 (flash) or 0 (composed)."""
    same = query.ndim == key.ndim == value.ndim == 4 and query.shape[-1] == key.shape[-1] == value.shape[-1]
    return int(same and dropout_p == 0 and torch.backends.cuda.flash_sdp_enabled())


# --- elementwise ----------------------------------------------------------------------------------------------------


def _conj_copy(input: Tensor) -> Tensor:
    """Return the conjugate in separate memory."""
    return input.conj().clone().resolve_conj()


def _neg_view_copy(input: Tensor) -> Tensor:
    """Return the negative in separate memory."""
    return input.neg()


def _is_zerotensor(input: Tensor) -> bool:
    """Return whether the tensor has no memory because all elements are 0. No such tensor exists here."""
    return False


def _efficientzerotensor(size: Sequence[int], **options: Any) -> Tensor:
    """Return a tensor of zeros."""
    return torch.zeros(size, **options)


def _add_relu(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return `relu(input + alpha * other)`."""
    return torch.add(input, other, alpha=alpha).relu_()


def _add_relu_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`_add_relu` in place."""
    return input.add_(other, alpha=alpha).relu_()


def _cast(name: str, kind: torch.dtype) -> Any:
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(kind)

    cast.__name__ = cast.__qualname__ = f"_cast_{name}"
    cast.__doc__ = f"The tensor converted to {kind}."
    return cast


_cast_Byte, _cast_Char, _cast_Short = _cast("Byte", torch.uint8), _cast("Char", torch.int8), _cast("Short", torch.int16)
_cast_Int, _cast_Long, _cast_Half = _cast("Int", torch.int32), _cast("Long", torch.int64), _cast("Half", torch.float16)
_cast_Float, _cast_Double = _cast("Float", torch.float32), _cast("Double", torch.float64)


# --- reductions, rows -----------------------------------------------------------------------------------------------


def _of_bool(name: str, input: Tensor) -> None:
    if input.dtype is not torch.bool:
        raise RuntimeError(f"{name}: expected a tensor of bool, but got {C_NAMES[input.dtype]}")


def _is_all_true(input: Tensor) -> Tensor:
    """Return whether all elements of a bool tensor are true, in all examples of a `vmap`."""
    _of_bool("_is_all_true", input)
    return torch.func.debug_unwrap(input).all()


def _is_any_true(input: Tensor) -> Tensor:
    """Return whether an element of a bool tensor is true, in any example of a `vmap`."""
    _of_bool("_is_any_true", input)
    return torch.func.debug_unwrap(input).any()


def _aminmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the least and the greatest elements."""
    least, greatest = torch.aminmax(input, dim=dim, keepdim=keepdim)
    return least, greatest


def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """Return the distinct elements, and the positions of all elements among them (empty unless requested)."""
    return _unique2(input, sorted, return_inverse)[:2]


def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct elements, the positions of all elements among them, and their counts (empty unless requested)."""
    values, inverse, counts = torch.unique(input, sorted, True, True)
    nothing = torch.empty(0, dtype=torch.int64)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return the softmax along a dimension, as `torch.softmax` does."""
    return torch.softmax(input, dim)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Return the logarithm of the softmax, as `torch.log_softmax` does."""
    return torch.log_softmax(input, dim)


def _expandable(input: Tensor, mask: Tensor, mask_type: int | None) -> Tensor:
    """Return a mask for `_masked_softmax`, in a shape that expands to the shape of the input."""
    if mask_type not in (None, 0, 1, 2):
        raise RuntimeError("Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")
    if mask_type == 0 and mask.shape != input.shape[-2:]:
        raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
    if mask_type == 1 and mask.shape != (input.size(0), input.size(-1)):
        raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
    return mask[:, None, None, :] if mask_type == 1 else mask


def _masked_softmax(input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """Return `softmax` along `dim` (the last by default) without the elements where `mask` is true.

    Args:
        input: a tensor of shape (batch, heads, length, length) if the mask has another shape.
        mask_type: 0 for a mask of shape (length, length), 1 for a mask of keys of shape (batch, length), 2 for a mask
            with the shape of the input.
    """
    if mask.dtype is not torch.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape != input.shape:
        mask = _expandable(input, mask, mask_type)
    rows = input.masked_fill(mask.expand_as(input), -torch.inf)
    dim = input.dim() - 1 if dim is None else dim
    return torch.softmax(rows, dim)


def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Return `v` scaled to the norms `g` along all dimensions except `dim`, and the norms of `v`."""
    norms = torch.norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


# --- matrices -------------------------------------------------------------------------------------------------------


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


def _compute_linear_combination(input: Tensor, coefficients: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return, for each row of `coefficients`, the sum of the items of `input`, weighted by the row."""
    result = torch.tensordot(coefficients, input, dims=1)
    return result if out is None else out.add_(result)


def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the distances of all pairs of rows, computed by matrix products."""
    return torch.cdist(x1, x2, compute_mode="use_mm_for_euclid_dist")


def _addmm_activation(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, use_gelu: bool = False
) -> Tensor:
    """Return `relu` (or `gelu`) of `addmm`."""
    result = torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return torch.nn.functional.gelu(result) if use_gelu else result.relu()


def _lu_with_info(input: Tensor, pivot: bool = True, check_errors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return the LU factors, the pivots and the error codes, as `torch.linalg.lu_factor_ex` does."""
    factors, pivots, info = torch.linalg.lu_factor_ex(input, pivot=pivot, check_errors=check_errors)
    return factors, pivots, info


# --- indices, memory ------------------------------------------------------------------------------------------------


def _unsafe_index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Return the elements at `indices`."""
    return input[tuple(slice(None) if index is None else index for index in indices)]


def _index_put_impl_(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """Write values at the indices in place, as `torch.index_put_` does."""
    return put_at(input, indices, values, accumulate)


def _unsafe_index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Return a copy with values at the indices, as `torch.index_put` does."""
    return put_at(input.clone(), indices, values, accumulate)


def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """Return the indices along a dimension."""
    return torch.arange(like.size(dim))


def _lazy_clone(input: Tensor) -> Tensor:
    """Return a copy. It is made at once, but `_C._is_cow_tensor` is true for both tensors until they are changed."""
    copy = input.clone()
    for tensor in (input, copy):
        tensor.__dict__["_cow_version"] = tensor._version
    return copy


def _to_cpu(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the tensors on the CPU."""
    return tuple(tensor.cpu() for tensor in tensors)


def _reshape_from_tensor(input: Tensor, shape: Tensor) -> Tensor:
    """Reshape to a shape that is given as a tensor."""
    return input.reshape(shape.tolist())


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


def _assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """Raise an error that names the first expected property that a tensor lacks, if there is one."""
    expected = {"sizes": size, "strides": stride, "dtype": dtype, "device": device, "layout": layout}

    def shown(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value

    found = {
        "sizes": tuple(a.shape), "strides": a.stride(), "dtype": a.dtype, "device": a.device, "layout": a.layout,
    }  # fmt: skip
    for name, wanted in expected.items():
        if wanted is not None and found[name] != (tuple(wanted) if isinstance(wanted, (list, tuple)) else wanted):
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {shown(wanted)}, Got: {shown(found[name])}")


# --- Fourier transforms, pooling, attention, sequences --------------------------------------------------------------

_NORMS = ("backward", "ortho", "forward")


def _fft_c2c(input: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """Return the transform of complex numbers.

    `normalization` is 0 (none), 1 (division by the root of the size) or 2 (division by the size).
    """
    if forward:
        return torch.fft.fftn(input, dim=tuple(dim), norm=_NORMS[normalization])
    return torch.fft.ifftn(input, dim=tuple(dim), norm=_NORMS[2 - normalization])


def _fft_r2c(input: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """Return the transform of real numbers. With `onesided`, return only the half that determines the rest."""
    transform = torch.fft.rfftn if onesided else torch.fft.fftn
    return transform(input, dim=tuple(dim), norm=_NORMS[normalization])


def _fft_c2r(input: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    """Return the inverse of `_fft_r2c`, with size `last_dim_size` in the last dimension."""
    sizes = [input.size(each) for each in dim[:-1]] + [last_dim_size]
    return torch.fft.irfftn(input, sizes, tuple(dim), _NORMS[2 - normalization])


def _nnpack_available() -> bool:
    """Return whether NNPACK computes. The answer is always False."""
    return False


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


# --- training in less precision -------------------------------------------------------------------------------------


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


# --- sparse layouts -------------------------------------------------------------------------------------------------


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Return the starts of `size` rows in sorted row numbers, followed by the end of the last row."""
    if input.dim() > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    starts = torch.zeros(size + 1, dtype=torch.int64)
    starts[1:] = torch.bincount(input.long(), minlength=size).cumsum(0)
    return starts.int() if out_int32 else starts


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the row number and the column number of each element, after the indices of its batch."""
    matrix = torch.sparse_csr_tensor(crow_indices, col_indices, torch.ones_like(col_indices))
    array: Any = matrix._array
    found = torch.as_tensor(kernels.places_of(array))
    if transpose:
        found = torch.cat((found[:-2], found[-2:].flip(0)))
    return found.to(torch.int32) if out_int32 else found


def _sparse_csr_sum(input: Tensor, dim: Sequence[int], keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sums along `dim`, in the compressed layout."""
    return torch.sum(input.to_dense(), dim, keepdim, dtype=dtype).to_sparse_csr()


def _sparse_csr_prod(input: Tensor, dim: Sequence[int], keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the products of the stored elements along `dim`, in the compressed layout."""
    there = input.to_dense() != 0
    values = input.to_dense().masked_fill(there.logical_not(), 1)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    for each in dims:
        values = values.prod(each, True, dtype=dtype)
    values = values.masked_fill(there.any(dims, keepdim=True).logical_not(), 0)
    return (values if keepdim else values.squeeze(dims)).to_sparse_csr()


def _validate_sparse_coo_tensor_args(
    indices: Tensor, values: Tensor, size: Sequence[int], is_coalesced: bool | None = None, check_pinning: bool = True
) -> None:
    """Raise an error if indices and values do not fit a tensor of this size."""
    torch.sparse_coo_tensor(indices, values, size, check_invariants=True)


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values: Tensor,
    size: Sequence[int],
    layout: Any,
    pin: bool = True,
) -> None:
    """Raise an error if indices and values do not fit a tensor of this size and layout."""
    torch.sparse_compressed_tensor(
        compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True
    )


_own = [name for name, value in globals().items() if isinstance(value, FunctionType) and value.__module__ == __name__]
end_at_caller(globals(), *_own)

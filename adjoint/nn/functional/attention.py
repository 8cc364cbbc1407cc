"""Attention, with one head or several (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .declared import operators

_SHOWN = {
    "Long": "long int", "Int": "int", "Short": "short int", "Byte": "unsigned char", "Char": "signed char",
    "Half": "c10::Half", "BFloat16": "c10::BFloat16", "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
}  # fmt: skip
"""The names of types in C++ messages. Other names are written in lower case."""


def _shown(dtype: torch.dtype) -> str:
    return _SHOWN.get(dtype.scalar_type, dtype.scalar_type.lower())


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.mT * scale + mask) @ value` (Vaswani et al., 2017).

    Args:
        query: shape `(..., L, E)`.
        key: shape `(..., S, E)`.
        value: shape `(..., S, Ev)`.
        attn_mask: a mask that broadcasts to `(..., L, S)`. A boolean mask excludes the keys that are False. Any other
            mask is added to the scores.
        dropout_p: the probability of dropping an attention weight.
        is_causal: whether each position attends only to itself and to earlier positions.
        scale: the factor of the scores; `1 / sqrt(E)` if None.
        enable_gqa: whether groups of query heads (dimension -3) share one key and value head.

    Raises:
        RuntimeError: if a tensor has fewer than 2 dimensions, or if `attn_mask` and `is_causal` are combined where PyTorch
            refuses it: with dropout, a mask that requires grad, inputs without 4 dimensions, or values of another size.
    """
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.dim()} key.dim: "
            f"{key.dim()} and value.dim: {value.dim()} instead."
        )
    if not query.device == key.device == value.device:
        raise RuntimeError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device} key.device: {key.device} and value.device: {value.device} instead."
        )
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, query.dtype, torch.float32):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{_shown(attn_mask.dtype)} and  query.dtype: {_shown(query.dtype)} instead."
        )
    if is_causal and attn_mask is not None:
        if (
            not query.dim() == key.dim() == 4
            or dropout_p > 0.0
            or query.size(-1) != value.size(-1)
            or attn_mask.requires_grad
        ):
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        later = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).triu(1)
        attn_mask = attn_mask.masked_fill(later, False if attn_mask.dtype == torch.bool else -math.inf)
        is_causal = False
    if scale is None:
        scale = 1 / math.sqrt(max(query.size(-1), 1))  # empty products are 0 too
    found = operators.attention_in_blocks(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if found is not None:
        return found
    if query.dtype in _HALVES and query.dtype == key.dtype == value.dtype:
        # Scores rounded to a half type would change the weights by as much as their last digit.
        mask = attn_mask if attn_mask is None or attn_mask.dtype != query.dtype else attn_mask.float()
        wide = query.float(), key.float(), value.float()
        return scaled_dot_product_attention(*wide, mask, dropout_p, is_causal, scale, enable_gqa).to(query.dtype)
    if enable_gqa:
        if query.size(-3) % key.size(-3) or query.size(-3) % value.size(-3):
            raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    scores = (query @ key.transpose(-2, -1)) * scale
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    alone = None
    if attn_mask is not None:
        attended = attn_mask if attn_mask.dtype == torch.bool else attn_mask != -math.inf
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
        else:
            scores = scores + attn_mask
        if not is_causal:
            # A row that may attend to nothing gives zeros.
            alone = attended.any(-1, keepdim=True).logical_not()
            scores = scores.masked_fill(alone, 0.0)
    weights = torch.operators.softmax(scores, -1)
    weights = weights if alone is None else weights.masked_fill(alone, 0.0)
    if dropout_p > 0.0:
        weights = operators.dropout(weights, dropout_p, True)
    return weights @ value


_HALVES = (torch.float16, torch.bfloat16)

Optional = Tensor | None


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional,
    in_proj_bias: Optional,
    bias_k: Optional,
    bias_v: Optional,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional,
    training: bool = True,
    key_padding_mask: Optional = None,
    need_weights: bool = True,
    attn_mask: Optional = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional = None,
    k_proj_weight: Optional = None,
    v_proj_weight: Optional = None,
    static_k: Optional = None,
    static_v: Optional = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Optional]:
    """Compute `nn.MultiheadAttention` with the same arguments. Return the outputs, and the weights if requested.

    `query`, `key` and `value` have the shape `(length, batch, features)` or `(length, features)`.
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, features = query.shape
    if features != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}")
    if not use_separate_proj_weight and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    given = {"q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight, "v_proj_weight": v_proj_weight}
    if not use_separate_proj_weight:
        given = {"in_proj_weight": in_proj_weight}
    for name, weight in given.items():
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is {use_separate_proj_weight} but {name} is None")
    weights: tuple[Any, ...] = tuple(given.values())
    if not use_separate_proj_weight:
        weights = weights[0].chunk(3)
    else:
        for name, part, weight in zip(("query", "key", "value"), (query, key, value), weights, strict=True):
            if weight.shape != (expected := (features, part.size(-1))):
                raise AssertionError(f"expecting {name} weights shape of {expected}, but got {weight.shape}")
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = (
        torch.nn.functional.linear(part, weight, bias)
        for part, weight, bias in zip((query, key, value), weights, biases, strict=True)
    )
    attn_mask = _checked_mask(attn_mask, length, key.size(0), batch * num_heads)
    if bias_k is not None and bias_v is not None:
        for kind, fixed in (("key", static_k), ("value", static_v)):
            if fixed is not None:
                raise AssertionError(f"bias cannot be added to static {kind}.")
        k, v = torch.cat([k, bias_k.repeat(1, batch, 1)]), torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _wider(attn_mask), _wider(key_padding_mask)
    heads = (batch * num_heads, features // num_heads)
    q = q.reshape(length, *heads).transpose(0, 1)
    k = k.reshape(k.size(0), *heads).transpose(0, 1) if static_k is None else static_k
    v = v.reshape(v.size(0), *heads).transpose(0, 1) if static_v is None else static_v
    if add_zero_attn:
        k, v = (torch.cat([part, part.new_zeros(heads[0], 1, heads[1])], dim=1) for part in (k, v))
        attn_mask, key_padding_mask = _wider(attn_mask), _wider(key_padding_mask)
    mask = _merged_masks(attn_mask, key_padding_mask, batch, num_heads, k.size(1))
    share = dropout_p if training else 0.0
    if need_weights:
        scaled, transposed = q * math.sqrt(1.0 / heads[1]), k.transpose(-2, -1)
        scores = scaled @ transposed if mask is None else torch.baddbmm(mask, scaled, transposed)
        attention = torch.nn.functional.softmax(scores, -1)
        attention = torch.nn.functional.dropout(attention, share) if share > 0.0 else attention
        found = attention @ v
    else:
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, share)
    output = torch.nn.functional.linear(
        found.transpose(0, 1).reshape(length * batch, features), out_proj_weight, out_proj_bias
    )
    output = output.view(length, batch, output.size(1))
    shown = None
    if need_weights:
        shown = attention.view(batch, num_heads, length, k.size(1))
        shown = shown.mean(dim=1) if average_attn_weights else shown
    if batched:
        return output, shown
    return output.squeeze(1), None if shown is None else shown.squeeze(0)


def _check_shapes(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional, attn_mask: Optional, num_heads: int
) -> bool:
    """Check the shapes. Return whether there is a batch dimension."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    kind = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and {value.dim()}-D "
            "tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if key_padding_mask is not None and dims == 3 and key_padding_mask.size(0) != key.size(1):
        raise AssertionError(
            f"Expected key_padded_mask.shape[0] to be {key.size(1)}, but got {key_padding_mask.size(0)}"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and dims == 2 and attn_mask.dim() == 3:
        wanted = (num_heads, query.size(0), key.size(0))
        if tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return dims == 3


def _none_or_dtype(input: Optional) -> torch.dtype | None:
    """Return the dtype of a tensor, or None for None."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Optional,
    mask_name: str,
    other_type: torch.dtype | None,
    other_name: str,
    target_type: torch.dtype,
    check_other: bool = True,
) -> Optional:
    """Return a mask to be added to the scores. True in a boolean mask excludes a key."""
    if mask is None:
        return None
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
        )
    if mask.is_floating_point():
        return mask
    return torch.zeros(mask.shape, dtype=target_type, device=mask.device).masked_fill(mask, -math.inf)


def _checked_mask(mask: Optional, length: int, keys: int, heads: int) -> Optional:
    if mask is None:
        return None
    wanted = (length, keys) if mask.dim() == 2 else (heads, length, keys)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _wider(mask: Optional) -> Optional:
    """Extend a mask by one key that is never excluded."""
    return None if mask is None else torch.nn.functional.pad(mask, (0, 1))


def _merged_masks(attn_mask: Optional, key_padding_mask: Optional, batch: int, num_heads: int, keys: int) -> Optional:
    if key_padding_mask is None:
        return attn_mask
    if key_padding_mask.size(1) != keys:
        raise AssertionError(f"Expected key_padded_mask.shape[1] to be {keys}, but got {key_padding_mask.size(1)}")
    spread = key_padding_mask.view(batch, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, keys)
    return spread if attn_mask is None else attn_mask + spread

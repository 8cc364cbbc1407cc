"""Attention."""

from __future__ import annotations

import math

import adjoint as torch

from .declared import operators


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`softmax(query @ key.mT * scale + mask) @ value` (Vaswani et al., 2017).

    Args:
        query: shape `(..., L, E)`.
        key: shape `(..., S, E)`.
        value: shape `(..., S, Ev)`.
        attn_mask: broadcast to `(..., L, S)`; False in a boolean mask means "do not attend", any other is added.
        dropout_p: probability of dropping an attention weight.
        is_causal: attend only to positions up to one's own.
        scale: `1 / sqrt(E)` if None.
        enable_gqa: let groups of query heads (dimension -3) share one key and value head.

    Raises:
        RuntimeError: if both `attn_mask` and `is_causal` are given.
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    # Half of the scale on either side keeps the products in range.
    root = math.sqrt(1 / math.sqrt(query.size(-1)) if scale is None else scale)
    scores = (query * root) @ (key * root).transpose(-2, -1)
    if is_causal:
        attn_mask = torch.ones(scores.size(-2), scores.size(-1), dtype=torch.bool).tril()
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
        else:
            scores = scores + attn_mask
    weights = operators.softmax(scores, -1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        # A row that may attend to nothing gives zeros.
        weights = weights.masked_fill(attn_mask.any(-1, keepdim=True).logical_not(), 0.0)
    if dropout_p > 0.0:
        weights = operators.dropout(weights, dropout_p, True)
    return weights @ value

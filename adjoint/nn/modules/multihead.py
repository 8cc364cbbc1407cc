"""Multi-head attention."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Several attention heads in parallel, each with a part of the projected inputs (Vaswani et al., 2017).

    Args:
        embed_dim: the number of features of queries and outputs, divided among the heads.
        num_heads: the number of heads.
        dropout: the probability of dropping an attention weight.
        add_bias_kv: whether to append a learned key and value.
        add_zero_attn: whether to append a key and a value of zeros.
        kdim: the number of features of the keys; `embed_dim` if None.
        vdim: the number of features of the values; `embed_dim` if None.
        batch_first: whether inputs and outputs are `(batch, length, features)` instead of `(length, batch, features)`.

    >>> import adjoint as torch
    >>> attention = torch.nn.MultiheadAttention(4, 2)
    >>> x = torch.ones(3, 1, 4)
    >>> outputs, weights = attention(x, x, x)
    >>> outputs.shape, weights.shape
    (torch.Size([3, 1, 4]), torch.Size([1, 3, 3]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        shapes = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
        }
        if self._qkv_same_embed_dim:
            shapes = {"in_proj_weight": (3 * embed_dim, embed_dim)}
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        for name, shape in shapes.items():
            self.register_parameter(name, Parameter(torch.empty(shape, device=device, dtype=dtype)))
        if not self._qkv_same_embed_dim:
            self.register_parameter("in_proj_weight", None)
        in_proj_bias = Parameter(torch.empty(3 * embed_dim, device=device, dtype=dtype)) if bias else None
        self.register_parameter("in_proj_bias", in_proj_bias)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            value = Parameter(torch.empty((1, 1, embed_dim), device=device, dtype=dtype)) if add_bias_kv else None
            self.register_parameter(name, value)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs, with the shape of `query`, and the weights `(batch, length, keys)` if requested.

        Args:
            key_padding_mask: `(batch, keys)`, True for padding, or values that are added to the scores.
            attn_mask: `(length, keys)`, or one mask for each head. True excludes a key. Other values are added to the
                scores.
            average_attn_weights: whether to average the weights over the heads. Otherwise their shape is `(batch,
                heads, length, keys)`.
            is_causal: a hint that `attn_mask` is causal. `attn_mask` must be given.
        """
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = (part.transpose(0, 1) for part in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if turned else output), weights

"""Transformers: the encoder, the decoder, and their layers (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .. import functional as F
from .. import init
from .activation import GELU, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .multihead import MultiheadAttention
from .normalization import LayerNorm

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

Activation = str | Callable[[Tensor], Tensor]
Mask = Tensor | None


def _generate_square_subsequent_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return the causal mask, with zeros on and below the diagonal and -inf above the diagonal."""
    return torch.triu(torch.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """Return the length of the sequences in `src`."""
    sizes = src.size()
    if len(sizes) == 2:
        return sizes[0]
    return sizes[1 if batch_first else 0]


def _get_clones(module: Module, N: int) -> ModuleList:
    """Return copies of a layer with separate parameters of the same values."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        found: Callable[[Tensor], Tensor] = F.gelu
        return found
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _detect_is_causal_mask(mask: Mask, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Return `is_causal` or, if it is None, whether the mask equals a causal mask."""
    if is_causal is not None or mask is None:
        return is_causal is True
    length = size if size is not None else mask.size(-2)
    causal = _generate_square_subsequent_mask(length, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _canonical_masks(src: Tensor, mask: Mask, name: str, key_padding_mask: Mask) -> tuple[Mask, Mask]:
    """Return a mask and the padding mask as numbers that are added to scores. Errors print `name`."""
    other = F._none_or_dtype(mask)
    padding = F._canonical_mask(key_padding_mask, "src_key_padding_mask", other, name, src.dtype)
    return F._canonical_mask(mask, name, None, "", src.dtype, check_other=False), padding


class _Layer(Module):
    """The common parts of encoder and decoder layers: self-attention, the feed-forward block, and the order of the norms."""

    _attentions: tuple[str, ...] = ("self_attn",)
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **made)
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for number in blocks:
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for number in blocks:
            setattr(self, f"dropout{number}", Dropout(dropout))
        function = _get_activation_fn(activation) if isinstance(activation, str) else activation
        # PyTorch's mark of the activations that its fused kernels compute.
        self.activation_relu_or_gelu = (
            1 if function is F.relu or isinstance(function, ReLU)
            else 2 if function is F.gelu or isinstance(function, GELU) else 0
        )  # fmt: skip
        self.activation = function

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _added(self, x: Tensor, norm: LayerNorm, block: Callable[..., Tensor], *others: Any) -> Tensor:
        """Return `x` plus the output of a block. The norm is applied before the block or after the sum."""
        if self.norm_first:
            return x + block(norm(x), *others)
        return norm(x + block(x, *others))

    def _sa_block(self, x: Tensor, attn_mask: Mask, key_padding_mask: Mask, is_causal: bool = False) -> Tensor:
        x, _ = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )
        return self.dropout1(x)

    def _transformed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with a residual connection and layer normalization.

    Args:
        d_model: the number of features of inputs and outputs.
        nhead: the number of attention heads.
        dim_feedforward: the number of features between the two linear maps of the feed-forward block.
        dropout: the probability of dropping an element.
        activation: a function, or "relu" or "gelu".
        layer_norm_eps: a number that is added to the variances.
        batch_first: whether inputs and outputs are `(batch, length, features)` instead of `(length, batch, features)`.
        norm_first: whether to normalize before attention and the feed-forward block instead of after them.
        bias: whether linear maps and norms have biases.

    >>> import adjoint as torch
    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(torch.rand(10, 3, 8)).shape
    torch.Size([10, 3, 8])
    """

    def forward(
        self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False
    ) -> Tensor:
        """Return the transformed sequences, with the shape of `src`.

        Args:
            src_mask: `(length, length)`, or one mask for each head. True excludes a position. Other values are added to
                the scores.
            src_key_padding_mask: `(batch, length)`, True for padding, or values that are added to the scores.
            is_causal: a hint that `src_mask` is causal. `src_mask` must be given.
        """
        src_mask, src_key_padding_mask = _canonical_masks(src, src_mask, "src_mask", src_key_padding_mask)
        x = self._added(src, self.norm1, self._sa_block, src_mask, src_key_padding_mask, is_causal)
        return self._added(x, self.norm2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._transformed(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output and a feed-forward block; see `TransformerEncoderLayer`.

    >>> import adjoint as torch
    >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(torch.rand(5, 3, 8), torch.rand(10, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    _attentions = ("self_attn", "multihead_attn")
    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Mask = None,
        memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the transformed targets, with the shape of `tgt`.

        Args:
            memory: the output of the encoder.
            tgt_mask: the positions of the targets that each position may attend to; see `TransformerEncoderLayer`.
            memory_mask: the positions of `memory` that each position of the targets may attend to.
            tgt_key_padding_mask: the padding of the targets.
            memory_key_padding_mask: the padding of `memory`.
            tgt_is_causal: a hint that `tgt_mask` is causal.
            memory_is_causal: a hint that `memory_mask` is causal.
        """
        x = self._added(tgt, self.norm1, self._sa_block, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = self._added(x, self.norm2, self._mha_block, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        return self._added(x, self.norm3, self._ff_block)

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Mask, key_padding_mask: Mask, is_causal: bool = False
    ) -> Tensor:
        x, _ = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._transformed(x))


def _why_without_nested(layer: Any) -> str:
    """Return the reason why PyTorch's encoder computes on padding with this layer, or an empty string if it skips padding."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not attention.batch_first:
        return "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return "encoder_layer.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return "encoder_layer.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
    return "encoder_layer.self_attn.num_heads is odd" if attention.num_heads % 2 else ""


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: a layer. The stack contains copies of it.
        num_layers: the number of layers.
        norm: a module to apply to the output.
        enable_nested_tensor: whether the output is zero at padding in evaluation without gradients, as in PyTorch.
        mask_check: whether zeros require that padding comes after all other elements.

    >>> import adjoint as torch
    >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> encoder = torch.nn.TransformerEncoder(layer, num_layers=2)
    >>> encoder(torch.rand(3, 10, 8)).shape
    torch.Size([3, 10, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _why_without_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}")

    def _leaves_padding_out(self, src: Tensor, mask: Mask, key_padding_mask: Tensor) -> bool:
        """Return whether PyTorch's encoder would compute on sequences without their padding."""
        if not self.use_nested_tensor or self.training or src.dim() != 3 or mask is not None:
            return False
        if torch.is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in self.parameters())):
            return False
        if not self.mask_check:
            return True
        padding = key_padding_mask != 0
        return not bool((padding[:, :-1] & ~padding[:, 1:]).any())

    def forward(
        self, src: Tensor, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None
    ) -> Tensor:
        """Return the encoded sequences.

        See `TransformerEncoderLayer` for the arguments.

        If `is_causal` is None, the mask is compared with a causal mask.
        """
        mask, src_key_padding_mask = _canonical_masks(src, mask, "mask", src_key_padding_mask)
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        if src_key_padding_mask is not None and self._leaves_padding_out(src, mask, src_key_padding_mask):
            output = output.masked_fill((src_key_padding_mask != 0).unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: a layer. The stack contains copies of it.
        num_layers: the number of layers.
        norm: a module to apply to the output.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Mask = None,
        memory_mask: Mask = None,
        tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded sequences.

        See `TransformerDecoderLayer` for the arguments.

        If `tgt_is_causal` is None, the mask is compared with a causal mask.
        """
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder, and a decoder that attends to the encoder's output (Vaswani et al., 2017).

    Args:
        d_model: the number of features of inputs and outputs.
        nhead: the number of attention heads.
        num_encoder_layers: the number of layers of the encoder.
        num_decoder_layers: the number of layers of the decoder.
        custom_encoder: a module to use instead of the encoder.
        custom_decoder: a module to use instead of the decoder.

    For the other arguments, see `TransformerEncoderLayer`.

    >>> import adjoint as torch
    >>> model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(torch.rand(3, 10, 8), torch.rand(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        options = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.encoder: Any = custom_encoder
        if custom_encoder is None:
            encoder_layer = TransformerEncoderLayer(d_model, nhead, *options, **made)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        self.decoder: Any = custom_decoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(d_model, nhead, *options, **made)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Mask = None,
        tgt_mask: Mask = None,
        memory_mask: Mask = None,
        src_key_padding_mask: Mask = None,
        tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded targets, with the shape of `tgt`. See the encoder and decoder layers for the masks."""
        batched = src.dim() == 3
        batch = 0 if self.batch_first else 1
        if batched and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask `(sz, sz)`, with zeros on and below the diagonal and -inf above the diagonal.

        >>> import adjoint as torch
        >>> torch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

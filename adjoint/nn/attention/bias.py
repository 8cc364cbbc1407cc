"""Causal masks for sequences of queries and keys of different lengths."""

from __future__ import annotations

from enum import IntEnum, auto

import adjoint as torch
from adjoint import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of the score matrix in which the diagonal of a causal mask starts or ends."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


def CausalBias(variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Tensor:
    """The boolean mask `(seq_len_q, seq_len_kv)`. An element is True if the query attends to the key."""
    if not isinstance(variant, CausalVariant):
        raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
    diagonal = 0 if variant == CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
    return torch.ones(seq_len_q, seq_len_kv, dtype=torch.bool).tril(diagonal)


def causal_upper_left(*size: int) -> Tensor:
    """The causal mask whose diagonal starts in the upper left corner."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, size[0], size[1])


def causal_lower_right(*size: int) -> Tensor:
    """The causal mask whose diagonal ends in the lower right corner.

    >>> from adjoint.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, size[0], size[1])

"""Dropout in its forms; the random numbers are drawn in PyTorch's order."""

from __future__ import annotations

import math
import warnings

import adjoint as torch

from ... import operators
from .activation import SELU_ALPHA, SELU_SCALE


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """Set elements to zero with probability `p` and divide the others by `1 - p`; nothing outside training.

    Raises:
        ValueError: if `p` is not between 0 and 1.
    """
    _check_probability(p)
    if not inplace:
        return operators.dropout(input, p, training)
    if not training or p == 0.0:
        return input
    return input.mul_(_noise(input, input.shape, p))


def _noise(input: torch.Tensor, shape: tuple[int, ...], p: float) -> torch.Tensor:
    """Zeros with probability `p`, else `1 / (1 - p)`."""
    if p == 1.0:
        return torch.zeros(shape, dtype=input.dtype)
    return torch.empty(shape, dtype=input.dtype).bernoulli_(1 - p).div_(1 - p)


def _channel_dropout(input: torch.Tensor, p: float, training: bool, inplace: bool, batched: bool) -> torch.Tensor:
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if batched and input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    lead = 2 if batched else 1
    noise = _noise(input, (*input.shape[:lead], *[1] * (input.dim() - lead)), p)
    return input.mul_(noise) if inplace else input * noise


def dropout1d(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """Drop whole channels of an input of shape `(N, C, L)` or `(C, L)`."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channel_dropout(input, p, training, inplace, batched=input.dim() == 3)


def dropout2d(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """Drop whole channels of an input of shape `(N, C, H, W)`."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace, batched=True)


def dropout3d(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """Drop whole channels of an input of shape `(N, C, D, H, W)` or `(C, D, H, W)`."""
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace, batched=input.dim() != 4)


def alpha_dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> torch.Tensor:
    """Dropout that keeps the mean and variance of SELU activations (Klambauer et al., 2017)."""
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, input.shape)


def feature_alpha_dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> torch.Tensor:
    """`alpha_dropout` of whole channels (dimension 1)."""
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, (*input.shape[:2], *[1] * (input.dim() - 2)))


def _alpha_dropout(
    input: torch.Tensor, p: float, training: bool, inplace: bool, noise_shape: tuple[int, ...]
) -> torch.Tensor:
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if p == 1.0:
        zeros = torch.zeros((), dtype=input.dtype)
        return input.mul_(zeros) if inplace else input * zeros
    # Dropped elements become -alpha' = -SELU_ALPHA * SELU_SCALE; then the map a x + b restores mean and variance.
    alpha = SELU_ALPHA * SELU_SCALE
    a = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    noise = torch.empty(noise_shape, dtype=input.dtype).bernoulli_(1 - p)
    b = noise.add(-1).mul_(alpha * a).add_(alpha * a * p)
    noise.mul_(a)
    return input.mul_(noise).add_(b) if inplace else (input * noise).add(b)

"""Variants of dropout. The random numbers are drawn in PyTorch's order."""

from __future__ import annotations

from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .declared import operators


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set elements to zero with probability `p`, and divide the others by `1 - p`. Outside training, return the input.

    Raises:
        ValueError: if `p` is not between 0 and 1.
    """
    _check_probability(p)
    return operators.dropout_(input, p, training) if inplace else operators.dropout(input, p, training)


def _channel_dropout(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    function = operators.feature_dropout_ if inplace else operators.feature_dropout
    if batched:
        return function(input, p, training)
    if inplace:
        return function(input.unsqueeze_(0), p, training).squeeze_(0)
    return function(input.unsqueeze(0), p, training).squeeze(0)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels of an input of shape `(N, C, L)` or `(C, L)`."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channel_dropout(input, p, training, inplace, batched=input.dim() == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels of an input of shape `(N, C, H, W)`."""
    _check_probability(p)
    if input.dim() not in (3, 4):
        warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 3D or 4D inputs)."
        )
    if input.dim() == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _channel_dropout(input, p, training, inplace, batched=True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drop whole channels of an input of shape `(N, C, D, H, W)` or `(C, D, H, W)`."""
    _check_probability(p)
    if input.dim() not in (4, 5):
        warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 4D or 5D inputs)."
        )
    return _channel_dropout(input, p, training, inplace, batched=input.dim() != 4)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of SELU activations (Klambauer et al., 2017)."""
    _check_probability(p)
    function = operators.alpha_dropout_ if inplace else operators.alpha_dropout
    return function(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels (dimension 1)."""
    _check_probability(p)
    function = operators.feature_alpha_dropout_ if inplace else operators.feature_alpha_dropout
    return function(input, p, training)

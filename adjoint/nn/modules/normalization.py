"""Normalization of each sample over its last dimensions or over groups of channels."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]

Shape = int | Sequence[int]


def _shape(normalized_shape: Shape) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, (int, numbers.Integral)) else tuple(normalized_shape)


class Affine(Module):
    """A normalization that scales and shifts each element or channel by parameters, initially 1 and 0."""

    weight: Any
    bias: Any

    def _create_affine(self, shape: Any, affine: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, present in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(torch.empty(shape, device=device, dtype=dtype)) if present else None
            self.register_parameter(name, value)

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(Affine):
    """Normalizes over the last dimensions, of sizes `normalized_shape` (Ba et al., 2016).

    Args:
        eps: a number that is added to the variance.
        elementwise_affine: whether to scale and shift each element by parameters, initially 1 and 0.
        bias: whether to shift.
    """

    normalized_shape: tuple[int, ...]

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._create_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        held = self._parameters
        try:
            weight, bias = held["weight"], held["bias"]
        except KeyError:  # a reparametrization stores them elsewhere
            weight, bias = self.weight, self.bias
        return F.layer_norm(input, self.normalized_shape, weight, bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root mean square over the last dimensions (Zhang and Sennrich, 2019).

    Args:
        eps: a number that is added to the mean square; the machine epsilon of the input's dtype if None.
        elementwise_affine: whether to scale each element by a parameter, initially 1.
    """

    normalized_shape: tuple[int, ...]

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = {"device": device, "dtype": dtype}
        weight = Parameter(torch.empty(self.normalized_shape, **made)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Affine):
    """Normalizes each group of channels of each sample (Wu and He, 2018).

    Args:
        num_groups: the number of groups of channels (dimension 1).
        num_channels: the number of channels, a multiple of `num_groups`.
        eps: a number that is added to the variance.
        affine: whether to scale and shift each channel by parameters, initially 1 and 0.
        bias: whether to shift.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._create_affine(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _ResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """Divides by a power of the mean square over neighbouring channels (Krizhevsky et al., 2012)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """`LocalResponseNorm` with the sums of Torch7.

    Near the last channels, the sums include more of the preceding channels.

    Args:
        size: the number of channels in each sum.
        alpha: the factor of the mean square.
        beta: the exponent.
        k: a number that is added to the mean square.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels, reach = input.size(1), int((self.size - 1) / 2 + 1)
        summed = torch.zeros(channels, channels, dtype=input.dtype, device=input.device)
        for channel in range(channels):
            if channel == 0:
                summed[0, : min(reach, channels)] = 1
                continue
            summed[channel] = summed[channel - 1]
            if channel < channels - reach + 1:
                summed[channel, channel + reach - 1] = 1
            if channel > reach:
                summed[channel, channel - reach] = 0
        squares = torch.einsum("cd,ndhw->nchw", summed, input.square())
        return input * (squares * (self.alpha / self.size) + self.k).pow(-self.beta)

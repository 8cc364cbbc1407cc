"""Instance normalization: each channel of each sample separately."""

from __future__ import annotations

from typing import Any

from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .. import functional as F
from .batchnorm import _NormBase
from .dimensions import OfDimensions

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase, OfDimensions):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self._dims + 1

    def _check_input_dim(self, input: Tensor) -> None:
        low = self._get_no_batch_dim()
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        feature_dim = input.dim() - self._get_no_batch_dim()
        channels = input.size(feature_dim)
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features ({self.num_features}), "
                    f"but got: {channels}."
                )
            warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False"
            )
        if feature_dim == 0:
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _normalize(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm, dims=1):
    """Normalizes each channel of each sample of `(N, C, L)` or `(C, L)`; see `InstanceNorm2d`."""


class InstanceNorm2d(_InstanceNorm, dims=2):
    """Normalizes each channel of each sample of `(N, C, H, W)` or `(C, H, W)` (Ulyanov et al., 2016).

    For the arguments, see `BatchNorm2d`. By default there are no parameters and no running statistics.
    """


class InstanceNorm3d(_InstanceNorm, dims=3):
    """Normalizes each channel of each sample of `(N, C, D, H, W)` or `(C, D, H, W)`; see `InstanceNorm2d`."""

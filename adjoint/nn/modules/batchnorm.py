"""Batch normalization, and the base class that it shares with instance normalization."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from .module import Module
from .normalization import Affine

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Affine):
    """Parameters and running statistics with one value for each channel."""

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._create_affine(num_features, affine, bias, device, dtype)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", torch.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to zeros, the running variance to ones and the count of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # Version 1 did not count batches.
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            count = torch.tensor(0, dtype=torch.long) if self.num_batches_tracked is None else self.num_batches_tracked
            state_dict.setdefault(prefix + "num_batches_tracked", count)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        buffers = self._buffers
        running_mean, running_var = buffers["running_mean"], buffers["running_var"]
        training = self.training
        momentum = self.momentum
        if training and self.track_running_stats and buffers["num_batches_tracked"] is not None:
            buffers["num_batches_tracked"].add_(1)
            if momentum is None:  # a cumulative average
                momentum = 1.0 / float(buffers["num_batches_tracked"])
        use_batch = training or (running_mean is None and running_var is None)
        if training and not self.track_running_stats:
            running_mean = running_var = None
        held = self._parameters
        try:
            weight, bias = held["weight"], held["bias"]
        except KeyError:  # a reparametrization stores them elsewhere
            weight, bias = self.weight, self.bias
        return F.batch_norm(
            input, running_mean, running_var, weight, bias, use_batch, 0.0 if momentum is None else momentum, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel of `(N, C)` or `(N, C, L)` over the batch; see `BatchNorm2d`."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel of `(N, C, H, W)` over the batch (Ioffe and Szegedy, 2015).

    Args:
        num_features: C.
        eps: a number that is added to the variance.
        momentum: the weight of the newest batch in the running statistics. None averages over all batches.
        affine: whether to scale and shift each channel by parameters, initially 1 and 0.
        track_running_stats: whether to update running statistics, and to use them in evaluation.
        bias: whether to shift.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Normalizes each channel of `(N, C, D, H, W)` over the batch; see `BatchNorm2d`."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class SyncBatchNorm(_BatchNorm):
    """Normalizes each channel of `(N, C, ...)` over the batches of all processes of `process_group`; see `BatchNorm2d`.

    Without `adjoint.distributed`, and in evaluation, this is an ordinary batch normalization. The gradients of
    parameters belong to this process. `DistributedDataParallel` averages these gradients.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        distributed = torch.distributed
        if not self.training or not distributed.is_initialized() or distributed.get_world_size(self.process_group) < 2:
            return super().forward(input)
        self._check_input_dim(input)
        exact = input if input.dtype is torch.float64 else input.float()
        mean, variance, count = self._statistics_of_all(exact)
        if self.track_running_stats:
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                momentum = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
                unbiased = variance * (count / (count - 1).clamp(min=1))
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)
        shape = (1, -1, *[1] * (input.dim() - 2))
        scale = (variance + self.eps).rsqrt()
        result = (exact - mean.view(shape)) * (scale if self.weight is None else scale * self.weight).view(shape)
        return (result if self.bias is None else result + self.bias.view(shape)).to(input.dtype)

    def _statistics_of_all(self, input: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the mean and the variance of each channel in all processes, and the number of values.

        The variance is the sum of the variance within the processes and the variance of the means of processes (Chan,
        Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979). One
        exchange between the processes is therefore enough.
        """
        rows = input.movedim(1, 0).flatten(1)
        count = rows.shape[1]
        mean = rows.sum(1) / max(count, 1)
        squares = ((rows - mean[:, None]) ** 2).sum(1)
        own = torch.cat([mean, squares, mean.new_tensor([count])])
        everyone = torch.stack(torch.distributed.nn.functional.all_gather(own, self.process_group))
        means, squares, counts = everyone.split([len(mean), len(mean), 1], 1)
        total = counts.sum()
        mean = (means * counts).sum(0) / total
        variance = (squares.sum(0) + (counts * (means - mean) ** 2).sum(0)) / total
        return mean, variance, total

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace all batch normalizations in `module` by this class, with their parameters and statistics."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                bias=module.bias is not None,
            )  # fmt: skip
            result._parameters.update(module._parameters)
            result._buffers.update(module._buffers)
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result

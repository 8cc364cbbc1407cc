"""A linear layer and the cross entropy of its outputs, computed as one loss."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from ..functional.linear_loss import LinearCrossEntropyOptions, check_options
from .module import Module

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyLoss(Module):
    """The cross entropy of classes. A linear layer of the module computes the scores from the samples.

    Args:
        in_features: the size of a sample.
        num_classes: the number of classes.
        out_features: additional dimensions of the loss.
        bias: whether the linear layer has a bias.
        reduction, weight, label_smoothing: as in `CrossEntropyLoss`.
        ignore_index: the class to ignore (-100).
        options: see `LinearCrossEntropyOptions`.

    >>> import adjoint as torch
    >>> torch.nn.LinearCrossEntropyLoss(3, 4)(torch.zeros(2, 3), torch.tensor([0, 1])).round(decimals=4)
    tensor(1.3863, grad_fn=<RoundBackward1>)
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__()
        check_options(num_classes, weight, label_smoothing)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        count = num_classes
        for length in self.out_features:
            count *= length
        self.linear = torch.nn.Linear(in_features, count, bias, device, dtype)
        self.register_buffer("weight", weight)
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing, self.options = label_smoothing, options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of samples and their classes."""
        shape = (self.num_classes, *self.out_features)
        bias: Any = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )

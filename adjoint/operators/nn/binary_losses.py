"""Binary cross entropies of probabilities and of logits."""

from __future__ import annotations

import math

from ...dispatch.annotations import Array
from ...dispatch.arguments import require
from ...dispatch.decorators import internal, public, tensors
from ...kernels.nn import loss as kernels
from ...tape import modes
from . import batched_losses
from .loss import REDUCTION, reduced, scaled


@internal(kernels.binary_cross_entropy, out=False, batch=batched_losses.elementwise)
class binary_cross_entropy:
    """The cross entropy of probabilities."""

    constants = {"weight": "binary_cross_entropy"}
    saved_display = REDUCTION

    def forward(self: Array, target: Array, weight: Array | None = None, reduction="mean"): ...

    def grad_self(grad, self, target, weight, reduction, xp):
        return xp.binary_cross_entropy_backward(grad, self, target, weight, reduction)

    def grad_target(grad, self, target, weight, reduction, xp):
        slope = xp.clamp(xp.log1p(-self), -100, None) - xp.clamp(xp.log(self), -100, None)
        return _weigh(slope * scaled(grad, reduction, math.prod(self.shape)), weight)


@internal(kernels.binary_cross_entropy_backward, out=False, batch=batched_losses.binary_cross_entropy_backward)
class binary_cross_entropy_backward:
    """The gradient of the probabilities."""

    saved_display = REDUCTION

    def forward(grad_output: Array, self: Array, target: Array, weight: Array | None, reduction): ...

    # 1e-12 keeps second derivatives finite at 0 and 1, as in PyTorch.

    def grad_grad_output(grad, self, target, weight, reduction):
        slope = (self - target) / ((self + 1e-12) * (1 - self + 1e-12))
        return _weigh(slope * scaled(grad, reduction, math.prod(self.shape)), weight)

    def grad_self(grad, grad_output, self, target, weight, reduction):
        bend = (self * self - 2 * self * target + target) / ((self + 1e-12) * (1 - self + 1e-12)) ** 2
        return _weigh(bend * grad * scaled(grad_output, reduction, math.prod(self.shape)), weight)

    def grad_target(grad, grad_output, self, weight, reduction, xp):
        slope = grad * scaled(grad_output, reduction, math.prod(self.shape)) / xp.clamp(self * (1 - self), 1e-12, None)
        return -_weigh(slope, weight)


def _weigh(value, weight):
    return value if weight is None else value * weight


@internal(
    kernels.binary_cross_entropy_with_logits,
    promote="common",
    out=False,
    function_name="binary_cross_entropy_with_logits",
    batch=batched_losses.elementwise,
    node="BinaryCrossEntropyWithLogitsBackward0",
)
class bce_with_logits:
    """The cross entropy of the sigmoid of logits."""

    constants = dict.fromkeys(("weight", "pos_weight"), "binary_cross_entropy_with_logits")
    saved_display = REDUCTION

    def forward(
        self: Array, target: Array, weight: Array | None = None, pos_weight: Array | None = None, reduction="mean"
    ): ...

    def grad_self(grad, self, target, weight, pos_weight, reduction, xp):
        share = scaled(grad, reduction, math.prod(self.shape))
        if pos_weight is None:
            return _weigh((xp.sigmoid(self) - target) * share, weight)
        positive = pos_weight * target
        return _weigh(((positive + 1 - target) * xp.sigmoid(self) - positive) * share, weight)

    def grad_target(grad, self, target, weight, pos_weight, reduction, xp):
        share = scaled(grad, reduction, math.prod(self.shape))
        if pos_weight is None:
            return _weigh(-self * share, weight)
        return _weigh((xp.logsigmoid(-self) - pos_weight * xp.logsigmoid(self)) * share, weight)


@public(namespace=None)
def bce_with_logits_of_floats(input, target, weight=None, pos_weight=None, reduction="mean"):
    """The cross entropy of the sigmoid of logits.

    Raise an error for integer targets, which usually belong to `cross_entropy`.
    """
    if target._array.dtype.kind in "iu" and input._array.dtype.kind not in "iub":
        raise RuntimeError(
            f"result type {input.dtype.scalar_type} can't be cast to the desired output type {target.dtype.scalar_type}"
        )
    if modes.STATE.transforms and not (weight is None and pos_weight is None):  # for gradients of weights too
        factor = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
        loss = (1 - target) * input - factor * tensors.logsigmoid(input)
        return reduced(loss if weight is None else loss * weight, reduction)
    return bce_with_logits(input, target, weight, pos_weight, reduction)


@public(name="binary_cross_entropy_with_logits", namespace="torch")
def unreduced_bce_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """The cross entropy of the sigmoid of logits.

    `reduction` is 1 (mean) or 2 (sum). With any other number, the losses are not reduced.
    """
    require("Int", reduction, "binary_cross_entropy_with_logits", "reduction", 5)
    return bce_with_logits_of_floats(input, target, weight, pos_weight, {1: "mean", 2: "sum"}.get(reduction, "none"))

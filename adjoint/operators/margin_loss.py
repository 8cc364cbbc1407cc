"""Losses that keep scores or distances apart by a margin. `reduction` is "none", "mean" or "sum"."""

from __future__ import annotations

import numpy

from ..kernels import loss as kernels
from .build import operator, public, tensors
from .loss import REDUCTION, reduced, scaled

# --- of scores ------------------------------------------------------------------------------------------------


@operator(kernel=kernels.soft_margin_loss, namespace=None, method=False, out=False)
class soft_margin_loss:
    """`log(1 + exp(-target * input))`, for targets 1 and -1."""

    shown = REDUCTION

    def forward(self: Array, target: Array, reduction="mean"): ...

    def grad_self(grad, self, target, reduction, xp):
        count = 1
        for size in self.shape:
            count *= size
        return xp.sigmoid(-target * self) * -target * scaled(grad, reduction, count)


@operator(kernel=kernels.multi_margin_loss, namespace=None, method=False, out=False)
class multi_margin_loss:
    """The hinge loss of one class for each sample against the others."""

    shown = REDUCTION

    def forward(self: Array, target: Array, p, margin, weight: Array | None, reduction): ...

    def grad_self(grad, self, target, p, margin, weight, reduction, xp):
        return xp.multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction)


@public(namespace=None, on_arrays=kernels.multi_margin_loss_backward)
def multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction):
    """The gradient of the scores in differentiable operations."""
    rows = self.reshape((1, -1)) if self.ndim < 2 else self
    batch, classes = rows.shape
    column = target.reshape((-1, 1))
    hinges = (rows - rows.gather(1, column) + margin).clamp_min(0).scatter(1, column, 0)
    slopes = (hinges > 0).to(rows.dtype) if p == 1 else hinges * 2
    slopes = slopes * (scaled(grad, reduction, batch).reshape((-1, 1)) / classes)
    if weight is not None:
        slopes = slopes * weight[target].reshape((-1, 1))
    return slopes.scatter_add(1, column, -slopes.sum(1, keepdim=True)).reshape(self.shape)


@operator(
    kernel=kernels.multilabel_margin_loss,
    namespace=None,
    method=False,
    out=False,
    name="multilabel_margin_loss_forward",
    node="MultilabelMarginLossBackward0",
    outputs=("result", "is_target"),
)
class multilabel_margin_loss_forward:
    """The hinge loss of several classes for each sample against the others, and which classes these are."""

    shown = REDUCTION
    differentiable = ("self",)
    nondifferentiable = ("is_target",)

    def forward(self: Array, target: Array, reduction): ...

    def grad_inputs(grads, self, target, is_target, reduction, xp):
        if grads[0] is None:
            return (None,)
        return (xp.multilabel_margin_loss_backward(grads[0], self, target, is_target, reduction),)


@public(namespace=None, on_arrays=kernels.multilabel_margin_loss_backward)
def multilabel_margin_loss_backward(grad, self, target, is_target, reduction):
    """The gradient of the scores, which depends on them only through which hinges are bent."""
    slopes = tensors.multilabel_margin_slopes(self, target, is_target)
    share = scaled(grad, reduction, self.shape[0] if self.ndim == 2 else 1)
    return slopes * (share.unsqueeze(-1) if share.ndim else share)


@operator(namespace=None, method=False, out=False)
class multilabel_margin_slopes:
    """The derivative of the sum of the hinges by each score."""

    def forward(self: Array, target: Array, is_target: Array):
        ones = numpy.ones(1, self.dtype)
        return kernels.multilabel_margin_loss_backward(ones, self, target, is_target, "sum")


@public(namespace=None)
def multilabel_margin_loss(input, target, reduction="mean"):
    """The hinge loss of several classes for each sample against the others."""
    return multilabel_margin_loss_forward(input, target, reduction)[0]


@public(namespace=None)
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """`max(0, -target (input1 - input2) + margin)`."""
    loss = -target * (input1 - input2)
    return reduced(tensors.add_number(loss, float(margin)).clamp_min_(0), reduction)


@public(namespace=None)
def hinge_embedding_loss(input, target, margin=1.0, reduction="mean"):
    """`input` where `target` is not -1, and `max(0, margin - input)` where it is not 1."""
    zeros = tensors.zeros_like(input)
    apart = tensors.sub(margin, input).clamp_min_(0)
    return reduced(tensors.where(target != 1, apart, zeros) + tensors.where(target != -1, input, zeros), reduction)


# --- of distances ---------------------------------------------------------------------------------------------


@public(namespace=None)
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """`1 - cos` where `target` is 1, `max(0, cos - margin)` where it is -1."""
    # PyTorch adds this constant to the squared norms of this loss.
    first = tensors.add_number((input1 * input1).sum(-1), 1e-12)
    second = tensors.add_number((input2 * input2).sum(-1), 1e-12)
    cosine = (input1 * input2).sum(-1) / (first * second).sqrt()
    zeros = tensors.zeros_like(cosine)
    alike = tensors.where(target == 1, tensors.sub(1, cosine), zeros)
    apart = tensors.where(target == -1, tensors.sub_number(cosine, margin).clamp_min_(0), zeros)
    return reduced(alike + apart, reduction)


@public(namespace=None)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)` with d the p-norm."""
    near = tensors.pairwise_distance(anchor, positive, p, eps)
    far = tensors.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = tensors.minimum(far, tensors.pairwise_distance(positive, negative, p, eps))
    return reduced(tensors.clamp_min(tensors.add_number(near, margin) - far, 0), reduction)

"""Losses. `reduction` is "none", "mean" or "sum", and applies to gradients too."""

from __future__ import annotations

import math
from typing import Any

from ...aten.torch_dispatch import is_watched
from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array
from ...dispatch.array_functions import computed
from ...dispatch.decorators import internal, operator, public, tensors
from ...dispatch.sequential import is_readable, read_array
from ...kernels.index.places import out_of_bounds
from ...kernels.index.scatter import one_hot as one_hot_array
from ...kernels.nn import loss as kernels
from ...kernels.runtime.shapes import broadcast_shapes
from ...tensor import Tensor, wrap
from ..linalg.matmul import check_tensors
from . import batched_losses

REDUCTION = {"reduction": lambda node: ("none", "mean", "sum").index(node.saved_reduction)}
"""How nodes show each reduction."""


def scaled(grad, reduction, count):
    """Return the gradient of each loss: the gradient of the output, divided by `count` for a mean."""
    return grad / count if reduction == "mean" else grad


@public(namespace=None, on_arrays=kernels.shared_difference)
def shared_difference(first, second, share, divisor=1.0, limit=None):
    """`(first - second) / divisor`, limited to `limit` in magnitude, times `share`. One of the two may be boolean."""
    difference = first - second if first.dtype == second.dtype else first * 1 - second * 1
    if divisor != 1:
        difference = difference / divisor
    if limit is not None:  # with derivative 0 at the limit, where that of `clamp` is 1
        difference = difference.where(difference.abs() < limit, difference.sgn() * limit)
    return difference * share


def _of_difference(grad, first, second, reduction, xp, divisor=1.0, limit=None):
    """Return the gradient of `first` for a loss whose derivative is the limited difference from `second`."""
    count = math.prod(first.shape if first.shape == second.shape else broadcast_shapes(first.shape, second.shape))
    return xp.shared_difference(first, second, scaled(grad, reduction, count), divisor, limit)


@internal(kernels.mse_loss, promote="common", out=False, batch=batched_losses.elementwise)
class mse_loss:
    """The squared difference."""

    saved_display = REDUCTION

    aten_gradients = {
        "self": "mse_loss_backward(grad, self, target, reduction)",
        "target": "mse_loss_backward(grad, target, self, reduction)",
    }

    def forward(self: Array, target: Array, reduction="mean"): ...

    def grad_self(grad, self, target, reduction, xp):
        return _of_difference(grad * 2, self, target, reduction, xp)

    def grad_target(grad, self, target, reduction, xp):
        return _of_difference(grad * 2, target, self, reduction, xp)


@public(namespace=None)
def l1_loss(input, target, reduction="mean"):
    """The absolute difference."""
    return reduced((input - target).abs(), reduction)


@public(namespace=None)
def reduced(loss, reduction):
    """The losses themselves, their mean or their sum."""
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


@internal(kernels.smooth_l1_loss, promote="common", out=False, batch=batched_losses.elementwise)
class smooth_l1_loss:
    """The squared difference near 0, and the absolute difference elsewhere."""

    saved_display = REDUCTION

    aten_gradients = {
        "self": "smooth_l1_loss_backward(grad, self, target, reduction, beta)",
        "target": "smooth_l1_loss_backward(grad, target, self, reduction, beta)",
    }

    def forward(self: Array, target: Array, reduction="mean", beta=1.0): ...

    def grad_self(grad, self, target, reduction, beta, xp):
        return _smooth(grad, self, target, reduction, beta, xp)

    def grad_target(grad, self, target, reduction, beta, xp):
        return _smooth(grad, target, self, reduction, beta, xp)


def _smooth(grad, first, second, reduction, beta, xp):
    if beta == 0:
        difference = first - second
        return xp.sgn(difference) * scaled(grad, reduction, math.prod(difference.shape))
    return _of_difference(grad, first, second, reduction, xp, beta, 1.0)


@internal(kernels.huber_loss, promote="common", out=False, batch=batched_losses.elementwise)
class huber_loss:
    """The squared difference near 0, and the absolute difference elsewhere, scaled by `delta`."""

    saved_display = REDUCTION

    aten_gradients = {
        "self": "huber_loss_backward(grad, self, target, reduction, delta)",
        "target": "huber_loss_backward(grad, target, self, reduction, delta)",
    }

    def forward(self: Array, target: Array, reduction="mean", delta=1.0): ...

    def grad_self(grad, self, target, reduction, delta, xp):
        return _of_difference(grad, self, target, reduction, xp, 1.0, delta)

    def grad_target(grad, self, target, reduction, delta, xp):
        return _of_difference(grad, target, self, reduction, xp, 1.0, delta)


def _check_batch(shape, wanted):
    size = wanted[0] if wanted else 0
    if shape[0] != size:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({size}).")


def _check_nll(self, target, weight, ignore_index, reduction):
    shape, wanted = self._array.shape, target._array.shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) == 1:
        if len(wanted) == 1 and wanted[0] != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {wanted[0]}")
    elif shape:
        _check_batch(shape, wanted)
    if len(shape) < 3 and len(wanted) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")


def _total_weight(node):
    saved = (node._saved_self, node._saved_target, node._saved_weight)
    arrays: list[Any] = [None if tensor is None else tensor._array for tensor in saved]
    input, target, weight = arrays
    return wrap(kernels.nll_loss_forward(input, target, weight, node.saved_reduction, node.saved_ignore_index)[1])


_SHOWN_OF_NLL = REDUCTION | {"total_weight": _total_weight}


def _nll_operator(**options):
    """Declare an operator that computes a likelihood loss."""
    return operator(
        kernel=Kernel(kernels.nll_loss, quiet=True),
        check=_check_nll,
        namespace=None,
        method=False,
        out=False,
        **options,
    )


@_nll_operator(node="NllLossBackward0", batch=batched_losses.nll_loss, aten_name="nll_loss")
class nll_loss_of:
    """The negative log-likelihood of classes."""

    constants = {"weight": "nll_loss_forward"}
    saved_display = _SHOWN_OF_NLL

    def forward(self: Array, target: Array, weight: Array | None, ignore_index, reduction): ...

    def grad_self(grad, self, target, weight, ignore_index, reduction, xp):
        return xp.nll_loss_backward(grad, self, target, weight, ignore_index, reduction)


@_nll_operator(node="NllLoss2DBackward0", batch=batched_losses.nll_loss, aten_name="nll_loss2d")
class nll_loss2d_of:
    """The negative log-likelihood of classes at each position."""

    constants = {"weight": "nll_loss2d_forward"}
    saved_display = _SHOWN_OF_NLL

    def forward(self: Array, target: Array, weight: Array | None, ignore_index, reduction): ...

    def grad_self(grad, self, target, weight, ignore_index, reduction, xp):
        return xp.nll_loss2d_backward(grad, self, target, weight, ignore_index, reduction)


def _nll_backward_operator(dims):
    class declaration:
        """The gradient of the log-probabilities."""

        saved_display = REDUCTION

        def forward(self: Array, log_probs: Array, target: Array, weight: Array | None, ignore_index, reduction): ...

        def grad_self(grad, target, weight, ignore_index, reduction, xp):
            return getattr(xp, f"nll_loss{dims}_of")(grad, target, weight, ignore_index, reduction)

        def grad_log_probs(grad, xp):
            return xp.zeros_like(grad)

    operator(
        kernel=kernels.nll_loss_backward, namespace=None, method=False, out=False, name=f"nll_loss{dims}_backward",
        node=f"NllLoss{dims.upper()}BackwardBackward0", batch=batched_losses.nll_loss_backward,
    )(declaration)  # fmt: skip


_nll_backward_operator("")
_nll_backward_operator("2d")


@public(namespace=None)
def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """The negative log-likelihood of the classes `target` (N, ...) under log-probabilities (N, C, ...)."""
    ndim = input._array.ndim
    if ndim <= 2:
        return nll_loss_of(input, target, weight, ignore_index, reduction)
    if ndim == 4:
        return nll_loss2d_of(input, target, weight, ignore_index, reduction)
    shape = input._array.shape
    _check_batch(shape, target._array.shape)
    if target._array.shape != (shape[0], *shape[2:]):
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(target._array.shape)}")
    places = math.prod(shape[2:])
    flat = nll_loss2d_of(
        input.reshape((shape[0], shape[1], 1, places)),
        target.reshape((shape[0], 1, places)),
        weight,
        ignore_index,
        reduction,
    )
    return flat.reshape((shape[0], *shape[2:])) if reduction == "none" else flat


@public(namespace=None)
def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """The cross entropy of logits (N, C, ...) with classes (N, ...), or with probabilities of the same shape as the logits."""
    if not isinstance(input, Tensor):
        check_tensors("cross_entropy_loss", input=input)
    class_dim = 0 if input._array.ndim == 1 else 1
    if not input._array.ndim and not target._array.ndim and target._array.dtype.kind not in "iu":
        raise IndexError(f"Dimension specified as {class_dim} but tensor has no dimensions")
    if label_smoothing < 0.0 or label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if target._array.dtype.kind not in "iu" and target._array.shape == input._array.shape:
        return _with_probabilities(input, target, weight, ignore_index, reduction, label_smoothing, class_dim)
    if (
        target._array.shape == input._array.shape
        and target._array.ndim == class_dim + 1
        and target._array.dtype.kind in "iu"
    ):
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.scalar_type}"
        )
    log_probs = log_softmax_of_logits(input, class_dim)
    if label_smoothing == 0.0:
        return nll_loss(log_probs, target, weight, ignore_index, reduction)
    return _smoothed(log_probs, target, weight, ignore_index, reduction, label_smoothing, class_dim)


def log_softmax_of_logits(input, class_dim):
    """The log-probabilities of logits."""
    return tensors.log_softmax_of(input, class_dim)


def _smoothed(log_probs, target, weight, ignore_index, reduction, smoothing, class_dim):
    """Return the target with a part `smoothing` spread evenly over the classes (Szegedy et al., 2015)."""
    classes = log_probs._array.shape[class_dim]
    plain = nll_loss(log_probs, target, weight, ignore_index, reduction)
    shape = [1] * log_probs._array.ndim
    shape[class_dim] = classes
    weighted = log_probs if weight is None else log_probs * weight.reshape(tuple(shape))
    even = -weighted.sum(class_dim)
    ignored = target == ignore_index
    even = even.masked_fill(ignored, 0.0)
    if reduction == "sum":
        even = even.sum()
    elif reduction == "mean":
        if weight is None:
            even = even.sum() / (~ignored).sum()
        else:
            chosen = weight.gather(0, target.masked_fill(ignored, 0).flatten()).reshape(target._array.shape)
            even = even.sum() / chosen.masked_fill(ignored, 0.0).sum()
    return tensors.mul_number(plain, 1 - smoothing) + tensors.mul_number(even, smoothing / classes)


def _with_probabilities(input, target, weight, ignore_index, reduction, smoothing, class_dim):
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = input._array.shape[class_dim]
    log_probs = log_softmax_of_logits(input, class_dim)
    if smoothing > 0.0:
        target = tensors.add_number(tensors.mul_number(target, 1 - smoothing), smoothing / classes)
    products = log_probs * target
    if weight is not None:
        if weight._array.shape != (classes,):
            raise RuntimeError(
                f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight "
                f"tensor of shape: {list(weight._array.shape)}"
            )
        shape = [1] * input._array.ndim
        shape[class_dim] = classes
        products = products * weight.reshape(tuple(shape))
    if reduction == "mean":
        count = math.prod(input._array.shape) // classes if classes else 0
        return tensors.div_number(-products.sum(), count)
    return -products.sum() if reduction == "sum" else -products.sum(class_dim)


@public(namespace=None)
def kl_div(input, target, reduction="mean", log_target=False):
    """The Kullback-Leibler divergence of `target` from log-probabilities, pointwise."""
    if input.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = tensors.xlogy(target, target) - target * input
    return reduced(loss, reduction)


@public(namespace=None)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """The negative log-likelihood of the counts `target`."""
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * tensors.log(tensors.add_number(input, eps))
    if full:
        stirling = target * tensors.log(target) - target
        stirling = stirling + tensors.mul_number(tensors.log(tensors.mul_number(target, 2 * math.pi)), 0.5)
        loss += stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@public(namespace="functional", numpy_names=True)
def one_hot(input, num_classes=-1):
    """Zeros with a 1 at the class of each element, in a new last dimension.

    >>> import adjoint as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    array = input._array
    if array.dtype.kind != "i" or array.dtype.itemsize != 8:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if array.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return tensors.zeros((*array.shape, num_classes), dtype=input.dtype)
    if not is_readable(input):
        if is_watched(input):
            count = input.max().item() + 1 if num_classes == -1 else num_classes
            return input.new_zeros((*array.shape, count)).scatter_(-1, input.unsqueeze(-1), 1)
        if num_classes == -1:
            raise RuntimeError(
                "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
            )
        return (input.unsqueeze(-1) == tensors.arange(num_classes)).long()
    return wrap(_one_hot(read_array(input), -1)) if num_classes == -1 else computed(_one_hot, input, num_classes)


def _one_hot(classes, num_classes):
    wrong = out_of_bounds(classes, (1 << 31) - 1 if num_classes == -1 else num_classes)
    if wrong is not None and classes.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = classes.item(classes.argmax()) + 1
    elif wrong is not None:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return one_hot_array(classes, num_classes)


# --- of scores ------------------------------------------------------------------------------------------------


@internal(kernels.soft_margin_loss, out=False, batch=batched_losses.elementwise)
class soft_margin_loss:
    """`log(1 + exp(-target * input))`, for targets 1 and -1."""

    real_derivative = "soft_margin_loss"

    constants = {"target": "soft_margin_loss"}
    saved_display = REDUCTION

    aten_gradients = {"self": "soft_margin_loss_backward(grad, self, target, reduction)"}

    def forward(self: Array, target: Array, reduction="mean"): ...

    def grad_self(grad, self, target, reduction, xp):
        return (xp.sigmoid(-target * self) * -target).conj() * scaled(grad, reduction, math.prod(self.shape))


@internal(kernels.multi_margin_loss, out=False)
class multi_margin_loss:
    """The hinge loss of one class for each sample against the other classes."""

    constants = {"weight": "multi_margin_loss"}
    saved_display = REDUCTION

    aten_gradients = {"self": "multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction)"}

    def forward(self: Array, target: Array, p, margin, weight: Array | None, reduction): ...

    def grad_self(grad, self, target, p, margin, weight, reduction, xp):
        return xp.multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction)


@public(namespace=None, on_arrays=kernels.multi_margin_loss_backward)
def multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction):
    """The gradient of the scores, in differentiable operations."""
    rows = self.reshape((1, -1)) if self.ndim < 2 else self
    batch, classes = rows.shape
    column = target.reshape((-1, 1))
    hinges = (rows - rows.gather(1, column) + margin).clamp_min(0).scatter(1, column, 0)
    slopes = (hinges > 0).to(rows.dtype) if p == 1 else hinges * 2
    slopes = slopes * (scaled(grad, reduction, batch).reshape((-1, 1)) / classes)
    if weight is not None:
        slopes = slopes * weight[target].reshape((-1, 1))
    return slopes.scatter_add(1, column, -slopes.sum(1, keepdim=True)).reshape(self.shape)


@internal(
    kernels.multilabel_margin_loss, out=False, node="MultilabelMarginLossBackward0", outputs=("result", "is_target")
)
class multilabel_margin_loss_forward:
    """The hinge loss of several classes for each sample against the other classes, and a mask of the target classes."""

    saved_display = REDUCTION
    differentiable = ("self",)
    nondifferentiable = ("is_target",)
    aten_gradients = {"self": "multilabel_margin_loss_backward(grads[0], self, target, reduction, is_target)"}

    def forward(self: Array, target: Array, reduction): ...

    def grad_inputs(grads, self, target, is_target, reduction, xp):
        if grads[0] is None:
            return (None,)
        return (xp.multilabel_margin_loss_backward(grads[0], self, target, is_target, reduction),)


@public(namespace=None, on_arrays=kernels.multilabel_margin_loss_backward)
def multilabel_margin_loss_backward(grad, self, target, is_target, reduction):
    """The gradient of the scores, which changes only if the set of active hinges changes."""
    slopes = tensors.multilabel_margin_slopes(self, target, is_target)
    share = scaled(grad, reduction, self.shape[0] if self.ndim == 2 else 1)
    return slopes * (share.unsqueeze(-1) if share.ndim else share)


@internal(kernels.multilabel_margin_slopes, out=False)
class multilabel_margin_slopes:
    """The derivative of the sum of the hinges with respect to each score."""

    def forward(self: Array, target: Array, is_target: Array): ...


@public(namespace=None)
def multilabel_margin_loss(input, target, reduction="mean"):
    """The hinge loss of several classes for each sample against the other classes."""
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
    apart = tensors.sub(tensors.full_like(input, margin), input).clamp_min_(0)
    return reduced(tensors.where(target != 1, apart, zeros) + tensors.where(target != -1, input, zeros), reduction)


# --- of distances ---------------------------------------------------------------------------------------------


@public(namespace=None)
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """`1 - cos` where `target` is 1, and `max(0, cos - margin)` where it is -1."""
    # PyTorch adds this constant to the squared norms of this loss.
    first = tensors.add_number((input1 * input1).sum(-1), 1e-12)
    second = tensors.add_number((input2 * input2).sum(-1), 1e-12)
    cosine = (input1 * input2).sum(-1) / (first * second).sqrt()
    zeros = tensors.zeros_like(cosine)
    alike = tensors.where(target == 1, tensors.sub(tensors.ones_like(cosine), cosine), zeros)
    apart = tensors.where(target == -1, tensors.sub_number(cosine, margin).clamp_min_(0), zeros)
    return reduced(alike + apart, reduction)


@public(namespace=None)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)`, where d is the p-norm."""
    near = tensors.pairwise_distance(anchor, positive, p, eps)
    far = tensors.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = tensors.minimum(far, tensors.pairwise_distance(positive, negative, p, eps))
    return reduced(tensors.clamp_min(tensors.add_number(near, margin) - far, 0), reduction)

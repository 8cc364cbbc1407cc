"""Losses. Losses that are operators get PyTorch's deprecated arguments here. Rarer losses are composed of operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .declared import operators
from .reduction import REDUCTIONS, checked_reduction, weighted


def _of_one_size(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcast input and target together. Warn if a shape changes."""
    if input.shape == target.shape:
        return input, target
    warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
        "This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size."
    )
    input, target = torch.broadcast_tensors(input, target)
    return input, target


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the squared difference. With `weight`, the mean is weighted."""
    reduction = checked_reduction(size_average, reduce, reduction)
    if input.shape != target.shape:
        input, target = _of_one_size(input, target)
    return weighted(operators.mse_loss, input, target, weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the absolute difference. With `weight`, the mean is weighted."""
    reduction = checked_reduction(size_average, reduce, reduction)
    input, target = _of_one_size(input, target)
    return weighted(operators.l1_loss, input, target, weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """`d² / (2 beta)` where the absolute difference d is below `beta`, else `d - beta / 2` (Girshick, 2015)."""
    reduction = checked_reduction(size_average, reduce, reduction)
    input, target = _of_one_size(input, target)
    if beta == 0.0:
        return operators.l1_loss(input, target, reduction=reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return operators.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """`d² / 2` where the absolute difference d is below `delta`, else `delta (d - delta / 2)` (Huber, 1964)."""
    checked_reduction(None, None, reduction)
    input, target = _of_one_size(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    result = weighted(operators.huber_loss, input, target, weight, reduction, by_weight=False, delta=delta)
    if result.dtype is input.dtype:
        return result
    if not torch.can_cast(result.dtype, input.dtype):
        kinds = (result.dtype.scalar_type, input.dtype.scalar_type)
        raise RuntimeError("result type {} can't be cast to the desired output type {}".format(*kinds))
    return result.to(input.dtype)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of the classes `target` `(N, ...)` under log-probabilities `input` `(N, C, ...)`."""
    reduction = checked_reduction(size_average, reduce, reduction)
    return operators.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy between the logits `input` and class indices or class probabilities `target`."""
    reduction = checked_reduction(size_average, reduce, reduction)
    return operators.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy between the probabilities `target` and `input`.

    Raises:
        ValueError: if the sizes of input and target differ.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.scalar_type} but expected {input.dtype.scalar_type}")
    return operators.binary_cross_entropy(input, target, weight=weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of `sigmoid(input)`, without overflow.

    Raises:
        ValueError: if the sizes of input and target differ.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return operators.bce_with_logits_of_floats(input, target, weight=weight, reduction=reduction, pos_weight=pos_weight)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence `target (log target - input)`. `input` contains log-probabilities.

    `reduction="batchmean"` divides the sum by the batch size, which gives the mathematical divergence.
    """
    reduction = checked_reduction(size_average, reduce, reduction, (*REDUCTIONS, "batchmean"))
    if reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release."
        )
    if reduction == "batchmean":
        total = operators.kl_div(input, target, reduction="sum", log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    return operators.kl_div(input, target, reduction=reduction, log_target=log_target)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of Poisson-distributed counts.

    Args:
        log_input: whether `input` is the logarithm of the rate.
        full: whether to add Stirling's approximation of `log(target!)` where `target > 1`.
        eps: a number that is added to the rate before its logarithm is taken.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    return operators.poisson_nll_loss(input, target, log_input, full, eps, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log-likelihood of `target` under normal distributions with means `input` and variances `var`.

    Args:
        var: a number or a tensor. A tensor has the shape of `input`, or this shape without its last dimension, or with
            one dimension of size 1.
        full: whether to add the constant `log(2 π) / 2`.
        eps: the lower limit of the variance. The limit is not differentiated.

    Raises:
        ValueError: if `var` contains negative numbers or has a wrong shape.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * torch.ones_like(input)
    elif torch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = torch.unsqueeze(var, -1)
        elif var.dim() != input.dim() or [v for x, v in zip(input.size(), var.size(), strict=True) if x != v] != [1]:
            raise ValueError("var is of incorrect size")
    if reduction not in REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return operators.reduced(loss, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`1 - cos` where `target` is 1, and `max(0, cos - margin)` where it is -1.

    Raises:
        RuntimeError: if the numbers of dimensions do not fit.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.dim() == input2.dim() == target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    return operators.cosine_embedding_loss(input1, input2, target, margin, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, -target (input1 - input2) + margin)`.

    Raises:
        RuntimeError: if the numbers of dimensions differ.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return operators.margin_ranking_loss(input1, input2, target, margin, reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`input` where `target` is 1, and `max(0, margin - input)` where it is -1."""
    reduction = checked_reduction(size_average, reduce, reduction)
    return operators.hinge_embedding_loss(input, target, margin, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)`, where d is the p-norm (Balntas et al., 2016).

    Args:
        swap: whether to use the distance between positive and negative where it is smaller.

    Raises:
        ValueError: if the margin is not positive.
        RuntimeError: if the numbers of dimensions differ.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    _check_triplet(anchor, positive, negative, margin)
    return operators.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance function, by default `pairwise_distance`."""
    checked_reduction(None, None, reduction)
    _check_triplet(anchor, positive, negative, margin)
    distance = operators.pairwise_distance if distance_function is None else distance_function
    to_positive = distance(anchor, positive)
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = torch.minimum(to_negative, distance(positive, negative))
    return operators.reduced(torch.clamp_min(margin + to_positive - to_negative, 0), reduction)


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """`log(1 + exp(-target * input))` for targets 1 and -1."""
    reduction = checked_reduction(size_average, reduce, reduction)
    return operators.soft_margin_loss(input, target, reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes i ≠ target of `max(0, margin - input[target] + input[i]) ** p`.

    The shapes are: input `(N, C)` or `(C,)`, target `(N,)` or `()`.

    Raises:
        ValueError: if `p` is neither 1 nor 2, or `weight` is not a vector.
        RuntimeError: if the sizes do not match, or a target is not a class.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return operators.multi_margin_loss(input, target, p, margin, weight, reduction)


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """The sum over labels j and other classes i of `max(0, 1 - (input[j] - input[i])) / C`.

    Both shapes are `(N, C)` or `(C,)`. The labels of a row end before the first negative entry.

    Raises:
        RuntimeError: if the sizes differ.
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    return operators.multilabel_margin_loss(input, target, reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of the binary cross entropy between `sigmoid(input)` and `target`."""
    reduction = checked_reduction(size_average, reduce, reduction)
    loss = -(target * torch.nn.functional.logsigmoid(input) + (1 - target) * torch.nn.functional.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return operators.reduced(loss.sum(-1) / input.size(-1), reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of the probability of a sequence of labels, which is a sum over all alignments in time.

    `log_probs` `(T, N, C)` or `(T, C)` contains the log-probabilities of labels at each time. `targets` is `(N, S)`, or
    one vector with the targets of all samples. The mean is the average of each loss divided by the length of its
    target.

    Raises:
        RuntimeError: if lengths and sizes do not fit.
    """
    number = REDUCTIONS.index(checked_reduction(None, None, reduction))
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)

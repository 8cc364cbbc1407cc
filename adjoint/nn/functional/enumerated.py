"""Functions of `torch` whose names also exist in `torch.nn.functional`, with other arguments.

In `torch`, a reduction is a number (0 none, 1 mean, 2 sum), and the order of the arguments differs.
"""

from __future__ import annotations

import adjoint as torch
from adjoint import Tensor

__all__ = [
    "conv_tbc", "cosine_embedding_loss", "hinge_embedding_loss", "instance_norm", "kl_div", "margin_ranking_loss",
    "native_channel_shuffle", "poisson_nll_loss", "triplet_margin_loss",
]  # fmt: skip

_WORDS = {0: "none", 1: "mean", 2: "sum"}


def _word(reduction: int) -> str:
    if reduction not in _WORDS:
        raise RuntimeError(f"{reduction} is not a reduction: 0 is none, 1 mean, 2 sum")
    return _WORDS[reduction]


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """The loss of pairs that should be similar (target 1) or dissimilar (target -1)."""
    return torch.nn.functional.cosine_embedding_loss(input1, input2, target, margin, reduction=_word(reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """The loss of distances that should be small (target 1) or greater than `margin` (target -1)."""
    return torch.nn.functional.hinge_embedding_loss(input, target, margin, reduction=_word(reduction))


def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence, elementwise. `input` contains log-probabilities."""
    return torch.nn.functional.kl_div(input, target, reduction=_word(reduction), log_target=log_target)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """The loss of pairs. The first element should be greater (target 1) or less (target -1)."""
    return torch.nn.functional.margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """The negative log-likelihood of Poisson counts."""
    return torch.nn.functional.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_word(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """The loss of triplets. The anchor should be nearer to the positive than to the negative, by `margin`."""
    return torch.nn.functional.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction)
    )


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Normalize each channel of each sample. `cudnn_enabled` has no effect."""
    return torch.nn.functional.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve `input` of shape (time, batch, channels) over time.

    `weight` has the shape (width, channels in, channels out).
    """
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel; weight: kernel width, in and out channels")
    result = torch.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return result.permute(2, 0, 1).contiguous()


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the channels of groups, like `channel_shuffle`."""
    return torch.channel_shuffle(input, groups)

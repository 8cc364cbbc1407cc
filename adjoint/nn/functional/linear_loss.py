"""The cross entropy of a linear layer's outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn

__all__ = ["LinearCrossEntropyOptions", "linear_cross_entropy"]


@dataclass
class LinearCrossEntropyOptions:
    """The options of `linear_cross_entropy`, which PyTorch computes in chunks of the batch.

    Here all options give the same result.

    `batch_chunk_size` is the number of samples per step, by default all.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        """Refuse values that PyTorch refuses."""
        size: Any = self.batch_chunk_size
        method, policy = self.chunking_method, self.acc_policy
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        if method not in (None, "auto") and not _ASPECT_RATIO.fullmatch(str(method)):
            raise ValueError(f"invalid chunking_method: {method!r}")
        if policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {policy!r}")
        if self.acc_dtype not in _SUM_DTYPES:
            named = "{" + ", ".join(map(str, _SUM_DTYPES)) + "}"
            raise ValueError(
                f"acc_dtype must be one of {named}, got {self.acc_dtype}. "
                "Pass acc_dtype=None to let the op pick automatically."
            )


_ASPECT_RATIO = re.compile(r"aspect_ratio(:[1-9][0-9]*)?")
_SUM_DTYPES = (None, torch.float16, torch.bfloat16, torch.float32, torch.float64)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    Args:
        input: samples, of shape (N, in) or (in,).
        linear_weight: a tensor of shape (C, in), or (C, d1, ..., in) for a loss with more dimensions.
        target: classes or probabilities.
        linear_bias: a tensor with the shape of `linear_weight` without its last dimension.
        weight, reduction, label_smoothing: as in `cross_entropy`.
        ignore_index: the class to ignore (-100).
        options: accepted, but the result does not depend on it.

    >>> import adjoint as torch
    >>> torch.nn.functional.linear_cross_entropy(torch.zeros(2, 3), torch.ones(4, 3), torch.tensor([0, 1]))
    tensor(1.3863)
    """
    _check(input, linear_weight, target, linear_bias, weight, ignore_index, label_smoothing)
    shape = linear_weight.shape[:-1]
    if options is not None:
        _warn_of_ignored(target, tuple(shape[1:]), linear_bias, reduction, label_smoothing)
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = torch.nn.functional.linear(input, linear_weight.flatten(0, -2), bias)
    logits = logits.reshape(*input.shape[:-1], *shape)
    ignored = -100 if ignore_index is None else ignore_index
    return torch.nn.functional.cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def _warn_of_ignored(
    target: Tensor, out_features: tuple[int, ...], bias: Tensor | None, reduction: str, label_smoothing: float
) -> None:
    """Warn if PyTorch computes this loss without regard to the options."""
    if (
        reduction not in ("mean", "sum", "none")
        or label_smoothing != 0
        or target.dtype is not torch.int64
        or out_features
    ):
        warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64, out_features == (). "
            f"Got reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={out_features}, tracing=False, "
            f"linear_bias.shape={None if bias is None else tuple(bias.shape)}.",
            UserWarning,
        )


def check_options(classes: int, weight: Tensor | None, label_smoothing: float) -> None:
    """Raise an error unless there is one weight per class and the smoothing is between 0 and 1."""
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"expected weight shape to be ({classes},), got {tuple(weight.shape)}")
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")


def _check(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int | None,
    label_smoothing: float,
) -> None:
    """Raise an error for arguments that do not match."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    shape, own = tuple(linear_weight.shape), tuple(input.shape)
    if own[-1] != shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{own[-1]} and {shape[-1]}, respectively"
        )
    if len(shape) > 2 and len(own) == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, (N, {shape[-1]}), got "
            f"unbatched input with shape {own}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {shape[:-1]}, got {tuple(linear_bias.shape)}")
    check_options(shape[0], weight, label_smoothing)
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")

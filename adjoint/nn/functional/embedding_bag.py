"""Bags of embeddings: one vector for each bag of indices."""

from __future__ import annotations

import math
from typing import cast

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .declared import operators
from .normalization import embedding, limit_norms

_GATHERED = 1 << 18
"""The number of elements of rows that are copied at a time."""


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sums, means or maxima of the rows of `weight` at each bag of indices.

    Empty bags give zeros.

    Args:
        input: bags of equal size, of shape `(bags, size)`, or all indices in one dimension with the start of each bag
            in `offsets`.
        per_sample_weights: the factor of each row, in the mode "sum".
        include_last_offset: whether the last offset is the end of the last bag instead of the start of another bag.
        padding_idx: an index to ignore.

    >>> import adjoint as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([0, 1, 1]), table, torch.tensor([0, 2]))
    tensor([[2., 3.],
            [3., 4.]])
    """
    if weight.dtype is torch.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`."
        )
        input, weight = weight, input
    _check(input, weight, offsets, mode, per_sample_weights)
    if mode == "max" and (scale_grad_by_freq or sparse):
        unfit = "scaling the gradient by the frequency" if scale_grad_by_freq else "sparse weights"
        raise ValueError(f"max mode does not support {unfit}")
    if max_norm is not None:
        limit_norms(weight.detach(), input, max_norm, norm_type)
    _check_kinds(input, weight, offsets, per_sample_weights)
    plain = mode != "max" and per_sample_weights is None and padding_idx is None and not (scale_grad_by_freq or sparse)
    if plain and (input.dim() == 1 or input.size(1) > 0):
        try:
            return _reduced(input.long(), weight, offsets, mode, include_last_offset)
        except (IndexError, RuntimeError):
            _check_range(input, weight, mode)  # an index out of range is reported first
            raise
    _check_range(input, weight, mode)
    input = input.long()
    if input.dim() == 2 and padding_idx is None and input.size(1) > 0:
        if mode == "max" and input.numel() * weight.size(1) > _GATHERED:
            return weight.gather(0, _largest(input, weight))
        rows = embedding(input, weight, None, None, norm_type, scale_grad_by_freq, sparse)
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(-1)
        return rows.max(1).values if mode == "max" else rows.mean(1) if mode == "mean" else rows.sum(1)
    count = weight.size(0)
    if padding_idx is not None and not -count <= padding_idx < count:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{count} through {count - 1}, but got {padding_idx}"
        )
    if input.dim() == 2:
        if input.size(1) == 0:
            raise RuntimeError("step must be nonzero")
        groups = input.size(0)
        bags = torch.arange(groups, device=input.device).unsqueeze(1).expand_as(input).reshape(-1)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    else:
        bags, groups = _bag_of_each(input, cast("torch.Tensor", offsets), include_last_offset)  # `_check` refuses None
    input = input[: len(bags)]  # indices after the last bag belong to no bag
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights[: len(bags)]
    counted = torch.ones_like(input, dtype=torch.bool)
    if padding_idx is not None:
        padding_idx %= count
        counted = input != padding_idx
    rows = embedding(input, weight, padding_idx, None, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if padding_idx is not None:
        rows = rows.masked_fill(~counted.unsqueeze(-1), -math.inf if mode == "max" else 0)
    result = rows.new_zeros((groups, weight.size(1)))
    sizes = bags.new_zeros(groups).index_add(0, bags, counted.to(bags.dtype)).unsqueeze(-1)
    if mode == "max":
        return result.index_reduce(0, bags, rows, "amax", include_self=False).masked_fill(sizes == 0, 0)
    result = result.index_add(0, bags, rows)
    return result / sizes.clamp(min=1).to(result.dtype) if mode == "mean" else result


def _largest(input: Tensor, weight: Tensor) -> Tensor:
    """Return the index of the largest element of each bag, for all columns. Few rows are copied at a time."""
    step = max(_GATHERED // (input.size(1) * weight.size(1)), 1)
    with torch.no_grad():
        return torch.cat([bags.gather(1, embedding(bags, weight).argmax(1)) for bags in input.split(step)])


def _reduced(input: Tensor, weight: Tensor, offsets: Tensor | None, mode: str, include_last_offset: bool) -> Tensor:
    """Return the sums or means of rows without weights. The rows are not copied first."""
    if offsets is None:
        bounds = torch.arange(0, input.numel() + 1, input.size(1), device=input.device)
    else:
        bounds = _bounds(input, offsets, include_last_offset).long()
    return operators.sum_of_runs(weight, bounds, input.reshape(-1), mode == "mean")


def _check(input: Tensor, weight: Tensor, offsets: Tensor | None, mode: str, per_sample_weights: Tensor | None) -> None:
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape "
            f"as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. "
            f"However, found offsets of type {type(offsets)}"
        )
    if input.dim() == 1 and (offsets is None or offsets.dim() != 1):
        raise ValueError(f"offsets has to be a 1D Tensor{'' if offsets is not None else ' but got None'}")
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )


def _check_kinds(input: Tensor, weight: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None) -> None:
    """Raise an error for dtypes that do not match, and for indices out of range."""
    indices = input if offsets is None else input.to(torch.promote_types(input.dtype, offsets.dtype))
    _require("indices", indices, (torch.long, torch.int), "Long, Int")
    kinds = (torch.half, torch.bfloat16, torch.float, torch.double)
    _require("weight", weight, kinds, "Half, BFloat16, Float, Double")
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but "
            f"type {weight.type()} does not equal {per_sample_weights.type()} (while checking arguments for embedding_bag)"
        )


def _check_range(input: Tensor, weight: Tensor, mode: str) -> None:
    outside = (input < 0) | (input >= weight.size(0))
    if input.is_meta or not outside.any():
        return
    position = int(outside.reshape(-1).int().argmax())
    index, rows = int(input.reshape(-1)[position]), weight.size(0)
    if mode == "max" or weight.dtype is torch.double:
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {index}")
    raise RuntimeError(f"Index {position} of input takes value {index} which is not in the valid range [0, {rows})")


def _require(name: str, tensor: Tensor, kinds: tuple[torch.dtype, ...], named: str) -> None:
    if tensor.dtype not in kinds:
        found = f"CPU{tensor.dtype.scalar_type}Type" if tensor.is_complex() else tensor.type()  # sic
        raise RuntimeError(
            f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: {named}; but got "
            f"{found} instead (while checking arguments for embedding_bag)"
        )


def _bag_of_each(input: Tensor, offsets: Tensor, include_last_offset: bool) -> tuple[Tensor, int]:
    """Return the number of the bag of each index, and the number of bags."""
    sizes = _bounds(input, offsets, include_last_offset).diff().long()
    return torch.arange(sizes.size(0), device=sizes.device).repeat_interleave(sizes), sizes.size(0)


def _bounds(input: Tensor, offsets: Tensor, include_last_offset: bool) -> Tensor:
    """Return the starts of the bags, followed by the end of the last bag."""
    count = offsets.size(0)
    if include_last_offset and not count:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    readable = count and not offsets.is_meta
    if readable and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
            f"{int(offsets[0])}"
        )
    if readable and offsets[-1] > input.size(0):
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {input.size(0)} but got offsets[-1] of {int(offsets[-1])}"
        )
    return offsets if include_last_offset else torch.cat([offsets, offsets.new_full((1,), input.size(0))])

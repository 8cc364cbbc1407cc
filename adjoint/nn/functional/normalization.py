"""Normalization of batches, layers and vectors, and the lookup of embeddings with optional limits on norms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import adjoint as torch
from adjoint import Tensor

from .declared import operators


def _require_several_values(size: Sequence[int], count: int) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel (dimension 1) over all other dimensions (Ioffe and Szegedy, 2015).

    Training uses the statistics of the batch, and moves the running statistics towards the batch by `momentum`.

    Raises:
        ValueError: if `eps` is negative. In training, `eps` 0 and channels with a single value are errors too.
    """
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if training:
        shape = input.shape
        _require_several_values(shape, shape[0] * math.prod(shape[2:]))
    return torch.operators.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample over its spatial dimensions (Ulyanov et al., 2016).

    Raises:
        ValueError: if there is a single spatial value and the statistics come from the input.
    """
    spatial = input.shape[2:]
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if use_input_stats:
        count = 1
        for size in spatial:
            count *= size
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    batch, channels = input.size(0), input.size(1)

    def each_sample(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.repeat(batch)

    mean, var = each_sample(running_mean), each_sample(running_var)
    # One large sample, with the channels of all samples as its channels.
    result = operators.batch_norm(
        input.reshape(1, batch * channels, *spatial),
        each_sample(weight),
        each_sample(bias),
        mean,
        var,
        use_input_stats,
        momentum,
        eps,
        False,
    )
    if use_input_stats:
        for running, repeated in ((running_mean, mean), (running_var, var)):
            if running is not None and repeated is not None:
                operators.average_statistics(running, repeated)
    return result.reshape(input.shape)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """`input / (k + alpha * mean of squares over `size` neighbouring channels) ** beta` (Krizhevsky et al., 2012).

    Raises:
        ValueError: if the input has fewer than 3 dimensions.
    """
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if input.dim() == 3:
        padded = torch.nn.functional.pad(squares.unsqueeze(1), (0, 0, before, after))
        means = torch.nn.functional.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        batch, channels, rows = input.shape[:3]
        padded = torch.nn.functional.pad(squares.view(batch, 1, channels, rows, -1), (0, 0, 0, 0, before, after))
        means = torch.nn.functional.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(input.shape)
    return input / means.mul(alpha).add(k).pow(beta)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices `input`.

    Args:
        padding_idx: the row that gets no gradient.
        max_norm: the largest norm of a row. Rows with a larger norm are scaled down in `weight` itself when they are
            looked up.
        norm_type: the order p of the norm.
        scale_grad_by_freq: whether to divide gradients by the number of occurrences of the index.
        sparse: whether the gradient of `weight` is a sparse tensor.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if padding_idx and not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx += rows * (padding_idx < 0)
    if max_norm is not None:
        limit_norms(weight.detach(), input, max_norm, norm_type)
    return operators.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@torch.no_grad()
def limit_norms(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` at `indices` down to the norm `max_norm`."""
    if indices.dtype not in (torch.long, torch.int):
        raise RuntimeError(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.type()} instead (while checking arguments for embedding_renorm_)"
        )
    used = torch.unique(indices)
    for index in used[:1].tolist() + used[-1:].tolist():
        if index >= weight.size(0) or index < -weight.size(0):
            raise IndexError(
                f"select(): index {index} out of range for tensor of size {list(weight.shape)} at dimension 0"
            )
        if index < 0:  # PyTorch scales rows before it refuses
            raise IndexError("index out of range in self")
    rows = weight[used]
    norms = rows.norm(norm_type, 1, keepdim=True)
    # 1e-7 as in PyTorch, to prevent division by zero.
    weight[used] = torch.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize over the last dimensions, which have the sizes `normalized_shape` (Ba et al., 2016)."""
    return torch.operators.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize each group of channels of each sample together (Wu and He, 2018).

    Raises:
        ValueError: if each group has only one value.
    """
    shape = input.shape
    if len(shape) > 1 and num_groups:
        samples, channels, *places = shape
        size = [samples * channels // num_groups, num_groups, *places]
        _require_several_values(size, size[0] * math.prod(places))
    return torch.operators.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the last dimensions, of sizes `normalized_shape` (Zhang and Sennrich, 2019)."""
    return torch.operators.rms_norm(input, normalized_shape, weight, eps)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where the norm is smaller."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else torch.div(input, norm, out=out)

"""Initialization of parameters. Each function fills its tensor in place without recording, and returns it.

The random numbers are drawn in PyTorch's order, so that the same seed gives the same values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .._runtime.tracebacks import end_at_caller, warn

_LINEAR = frozenset(
    ["linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which a layer before `nonlinearity` preserves the variance of its signal.

    The factor is 1 for linear layers and sigmoid, 5/3 for tanh, √2 for relu, √(2 / (1 + slope²)) for leaky_relu with
    negative slope `param` (0.01 by default), and 3/4 for selu.

    Raises:
        ValueError: if the nonlinearity is unknown, or the slope is not a number.

    >>> from adjoint.nn import init
    >>> init.calculate_gain("leaky_relu", 0.2)
    1.3867504905630728
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif not isinstance(param, bool) and isinstance(param, (int, float)):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@torch.no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """Fill with values from the uniform distribution over `[a, b)`."""
    return tensor.uniform_(a, b, generator=generator)


@torch.no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """Fill with values from the normal distribution."""
    return tensor.normal_(mean, std, generator=generator)


@torch.no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Fill with values from the normal distribution restricted to `[a, b]`."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    accepted = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    # Where few normal values would be accepted, proposals are uniform (Robert, 1995).
    draw = _truncated_by_normal_proposals if accepted >= 0.3 else _truncated_by_uniform_proposals
    return tensor.copy_(draw(tensor, mean, std, a, b, generator))


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _truncated_by_normal_proposals(
    like: Tensor, mean: float, std: float, a: float, b: float, generator: torch.Generator | None
) -> Tensor:
    values = torch.empty_like(like).normal_(mean, std, generator=generator)
    rejected = (values < a) | (values > b)
    while bool(rejected.any()):
        values = torch.where(rejected, torch.empty_like(like).normal_(mean, std, generator=generator), values)
        rejected = (values < a) | (values > b)
    return values


def _truncated_by_uniform_proposals(
    like: Tensor, mean: float, std: float, a: float, b: float, generator: torch.Generator | None
) -> Tensor:
    nearest = min(max(mean, a), b)
    largest_log_density = -0.5 * ((nearest - mean) / std) ** 2
    rejected = torch.ones_like(like, dtype=torch.bool)
    values = like
    while bool(rejected.any()):
        values = torch.where(rejected, torch.empty_like(like).uniform_(a, b, generator=generator), values)
        log_ratio = values.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(largest_log_density)
        threshold = torch.empty_like(like).uniform_(generator=generator).log_()
        rejected = torch.where(rejected, threshold > log_ratio, rejected)
    return values


@torch.no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    return tensor.fill_(val)


@torch.no_grad()
def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return tensor.fill_(1.0)


@torch.no_grad()
def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return tensor.zero_()


@torch.no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity. Raise ValueError for other tensors."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return tensor.copy_(torch.eye(*tensor.shape, dtype=tensor.dtype))


@torch.no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it preserves as many input channels as possible.

    Args:
        tensor: a tensor with 3 to 5 dimensions. The size of the first dimension must be divisible by `groups`.

    Raises:
        ValueError: if the shape does not fit.
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = out_channels // groups
    centre = tuple(size // 2 for size in kernel)
    tensor.zero_()
    for group in range(groups):
        for channel in range(min(per_group, in_channels)):
            tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return how many inputs each output has, and how many outputs each input has, for a weight `(out, in, *kernel)`."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    out_features, in_features, *kernel = tensor.shape
    receptive_field = math.prod(kernel)
    return in_features * receptive_field, out_features * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """Fill with uniform numbers of standard deviation `gain √(2 / (fan_in + fan_out))` (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """Fill with normal numbers of standard deviation `gain √(2 / (fan_in + fan_out))` (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Fill with uniform numbers of standard deviation `gain / √fan` (He et al., 2015).

    Args:
        a: the negative slope of leaky_relu.
        mode: "fan_in" preserves the variance of the forward pass, and "fan_out" preserves the variance of the backward
            pass.
        nonlinearity: the nonlinearity after the layer; see `calculate_gain`.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Fill with normal numbers of standard deviation `gain / √fan` (He et al., 2015); see `kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@torch.no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: torch.Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix (Saxe et al., 2013). Trailing dimensions are flattened.

    The random numbers and the signs are PyTorch's. The last digits depend on NumPy's LAPACK. All dtypes are computed in
    float64.

    Raises:
        ValueError: if there are fewer than 2 dimensions.
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    flattened = torch.empty(rows, columns, dtype=tensor.dtype).normal_(0, 1, generator=generator)
    q, r = torch.linalg.qr(flattened.t() if rows < columns else flattened)
    # The signs make the distribution uniform (Mezzadri, 2006).
    q = q * torch.diag(r, 0).sign()
    return tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape)).mul_(gain)


@torch.no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: torch.Generator | None = None) -> Tensor:
    """Fill a matrix with normal numbers, and set a fraction `sparsity` of each column to zero (Martens, 2010).

    Raises:
        ValueError: if the tensor is not a matrix.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[torch.randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    new_name = function.__name__
    old_name = new_name[:-1]

    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warn(f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning)
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old_name
    deprecated.__doc__ = f"Deprecated name of `{new_name}`."
    return deprecated


end_at_caller(
    globals(), "calculate_gain", *(name for name in list(globals()) if name.endswith("_") and not name.startswith("_"))
)

uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)

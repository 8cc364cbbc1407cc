"""Activations. At the kinks their derivatives are PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import adjoint as torch

from ... import operators

# Klambauer et al., "Self-Normalizing Neural Networks", 2017, equation 14.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946

_SCALAR_TYPES = {
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "Float",
    torch.float64: "Double",
}


def _applied(function: Callable[[torch.Tensor], torch.Tensor], input: torch.Tensor, inplace: bool) -> torch.Tensor:
    """`function(input)`, or `input` after that has been written into it."""
    if not inplace:
        return function(input)
    # Computed from a copy: what the graph saves must not be overwritten.
    return input.copy_(function(input.clone()))


def relu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """Elementwise `max(0, input)`."""
    return operators.relu_(input) if inplace else operators.relu(input)


def threshold(input: torch.Tensor, threshold: float, value: float, inplace: bool = False) -> torch.Tensor:
    """`input` where it is greater than `threshold`, else `value`."""
    return _applied(lambda x: torch.where(x > threshold, x, value), input, inplace)


def hardtanh(
    input: torch.Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> torch.Tensor:
    """`input` limited to the interval from `min_val` to `max_val`; the derivative is 0 at both ends."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _applied(
        lambda x: torch.where(x <= min_val, min_val, torch.where(x >= max_val, max_val, x)), input, inplace
    )


def relu6(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """Elementwise `min(max(0, input), 6)`."""
    return hardtanh(input, 0.0, 6.0, inplace)


def elu(input: torch.Tensor, alpha: float = 1.0, inplace: bool = False) -> torch.Tensor:
    """`input` where positive, else `alpha * (exp(input) - 1)`."""
    return _applied(lambda x: operators.elu(x, alpha), input, inplace)


def selu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """The scaled exponential linear unit of self-normalizing networks (Klambauer et al., 2017)."""
    return _applied(lambda x: SELU_SCALE * operators.elu(x, SELU_ALPHA), input, inplace)


def celu(input: torch.Tensor, alpha: float = 1.0, inplace: bool = False) -> torch.Tensor:
    """`input` where positive, else `alpha * (exp(input / alpha) - 1)` (Barron, 2017)."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    # Limited first, so that the branch not taken cannot overflow and spoil the gradient.
    return _applied(
        lambda x: torch.where(x > 0, x, alpha * torch.expm1(x.clamp(max=0) / alpha)), input, inplace
    )


def leaky_relu(input: torch.Tensor, negative_slope: float = 0.01, inplace: bool = False) -> torch.Tensor:
    """`input` where positive, else `negative_slope * input`."""
    return _applied(lambda x: operators.leaky_relu(x, negative_slope), input, inplace)


def prelu(input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """`input` where positive, else `weight * input`, with one weight for all or one for each channel (dimension 1).

    Raises:
        RuntimeError: if the number of weights is neither one nor that of the channels.
    """
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    channels = input.shape[1] if input.dim() > 1 else 1
    if weight.numel() not in (1, channels):
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. "
            f"Found parameter numbers = {weight.numel()} and channel size = {channels}."
        )
    if weight.dim() == 1:
        weight = weight.reshape(-1, *[1] * (input.dim() - 2)) if input.dim() > 1 else weight.reshape(())
    return torch.where(input > 0, input, weight * input)


def rrelu(
    input: torch.Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> torch.Tensor:
    """Leaky ReLU whose slope is drawn from `[lower, upper)` for each element, and is their mean outside training."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    with torch.no_grad():
        slope = torch.ones_like(input)
        negative = input <= 0
        slope[negative] = torch.empty_like(input[negative]).uniform_(lower, upper)
    return _applied(lambda x: x * slope, input, inplace)


def glu(input: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The first half of `input` along `dim` times the sigmoid of the second.

    Raises:
        RuntimeError: if the dimension is odd or there is none.
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if input.shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % input.dim()} is size {input.shape[dim]}"
        )
    first, second = input.chunk(2, dim)
    return first * torch.sigmoid(second)


def logsigmoid(input: torch.Tensor) -> torch.Tensor:
    """`log(sigmoid(input))`, without overflow."""
    # minimum shares the gradient at 0 between its arguments: 1/2, which is the derivative there.
    return torch.minimum(input, torch.zeros_like(input)) - torch.log1p(torch.exp(-torch.abs(input)))


def hardshrink(input: torch.Tensor, lambd: float = 0.5) -> torch.Tensor:
    """`input`, but 0 where its absolute value is at most `lambd`."""
    return torch.where((input >= -lambd) & (input <= lambd), 0.0, input)


def softshrink(input: torch.Tensor, lambd: float = 0.5) -> torch.Tensor:
    """`input` moved towards 0 by `lambd`, 0 where it would pass it.

    Raises:
        RuntimeError: if `lambd` is negative.
    """
    if lambd < 0:
        raise RuntimeError(
            f"lambda must be in range [0, {torch.finfo(input.dtype).max:g}] for input dtype "
            f"{_SCALAR_TYPES.get(input.dtype, input.dtype)}, but found {lambd:g}"
        )
    return torch.where(input > lambd, input - lambd, torch.where(input < -lambd, input + lambd, 0.0 * input))


def tanhshrink(input: torch.Tensor) -> torch.Tensor:
    """`input - tanh(input)`."""
    return input - torch.tanh(input)


def softsign(input: torch.Tensor) -> torch.Tensor:
    """`input / (1 + |input|)`."""
    return input / (input.abs() + 1)


def tanh(input: torch.Tensor) -> torch.Tensor:
    """Elementwise hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: torch.Tensor) -> torch.Tensor:
    """Elementwise `1 / (1 + exp(-input))`."""
    return input.sigmoid()


def silu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """`input * sigmoid(input)`."""
    return _applied(operators.silu, input, inplace)


def mish(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """`input * tanh(softplus(input))` (Misra, 2019)."""
    return _applied(lambda x: x * torch.tanh(operators.softplus(x)), input, inplace)


def hardsigmoid(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """`min(max(0, input + 3), 6) / 6`."""
    return _applied(lambda x: hardtanh(x + 3, 0.0, 6.0) / 6, input, inplace)


def hardswish(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """`input * hardsigmoid(input)` (Howard et al., 2019)."""
    return _applied(lambda x: x * hardtanh(x + 3, 0.0, 6.0) / 6, input, inplace)


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _along_dim(
    function: Callable[..., torch.Tensor],
    input: torch.Tensor,
    dim: int | None,
    stacklevel: int,
    dtype: torch.dtype | None,
) -> torch.Tensor:
    if dim is None:
        dim = _implicit_dim(function.__name__, input.dim(), stacklevel + 1)
    return function(input, dim) if dtype is None else function(input.to(dtype), dim)


def softmax(
    input: torch.Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """`exp(input)` divided by its sum along `dim`; the input is cast to `dtype` first if that is given."""
    return _along_dim(operators.softmax, input, dim, _stacklevel, dtype)


def log_softmax(
    input: torch.Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The logarithm of `softmax`."""
    return _along_dim(operators.log_softmax, input, dim, _stacklevel, dtype)


def softmin(
    input: torch.Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """`softmax` of the negated input."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return _along_dim(operators.softmax, -input, dim, _stacklevel, dtype)


def gumbel_softmax(
    logits: torch.Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> torch.Tensor:
    """Sample from the Gumbel-Softmax distribution (Jang et al., 2017).

    Args:
        tau: the temperature.
        hard: return one-hot vectors, differentiated as if they were the soft samples.
        eps: has no effect (kept for compatibility).
        dim: the dimension along which softmax is computed.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -torch.empty_like(logits).exponential_().log()
    soft = operators.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft

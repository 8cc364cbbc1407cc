"""Activations. The derivatives at kinks equal PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import adjoint as torch
from adjoint import Tensor

from ..._runtime.tracebacks import warn
from .declared import operators


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Elementwise `max(0, input)`."""
    return operators.relu_(input) if inplace else operators.relu(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it is greater than `threshold`, and `value` elsewhere."""
    return operators.threshold_(input, threshold, value) if inplace else operators.threshold(input, threshold, value)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` limited to the interval from `min_val` to `max_val`. The derivative is 0 at both ends."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return operators.hardtanh_(input, min_val, max_val) if inplace else operators.hardtanh(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Elementwise `min(max(0, input), 6)`."""
    return hardtanh(input, 0.0, 6.0, inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where it is positive, and `alpha * (exp(input) - 1)` elsewhere."""
    return operators.elu_(input, alpha) if inplace else operators.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The scaled exponential linear unit of self-normalizing networks (Klambauer et al., 2017)."""
    return operators.selu_(input) if inplace else operators.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where it is positive, and `alpha * (exp(input / alpha) - 1)` elsewhere (Barron, 2017)."""
    return operators.celu_(input, alpha) if inplace else operators.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input` where it is positive, and `negative_slope * input` elsewhere."""
    return operators.leaky_relu_(input, negative_slope) if inplace else operators.leaky_relu(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU with a random slope from `[lower, upper)` for each element in training, and with the mean slope otherwise."""
    function = operators.rrelu_ if inplace else operators.rrelu
    return function(input, lower, upper, training)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `input` along `dim` times the sigmoid of the second half (Dauphin et al., 2017)."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return operators.glu(input, dim)


def tanhshrink(input: Tensor) -> Tensor:
    """`input - tanh(input)`."""
    return input - torch.tanh(input)


def softsign(input: Tensor) -> Tensor:
    """`input / (1 + |input|)`."""
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent, elementwise."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """Elementwise `1 / (1 + exp(-input))`."""
    return input.sigmoid()


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * sigmoid(input)`."""
    return operators.silu_(input) if inplace else operators.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * tanh(softplus(input))` (Misra, 2019)."""
    return operators.mish_(input) if inplace else operators.mish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(0, input + 3), 6) / 6`."""
    return operators.hardsigmoid_(input) if inplace else operators.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * hardsigmoid(input)` (Howard et al., 2019)."""
    return operators.hardswish_(input) if inplace else operators.hardswish(input)


def _implicit_dim(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def _along_dim(function: Callable[..., Tensor], input: Tensor, dim: int | None, dtype: torch.dtype | None) -> Tensor:
    if dim is None:
        dim = _implicit_dim(function.__name__, input.dim())
    return function(input, dim, dtype)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None) -> Tensor:
    """`exp(input)` divided by its sum along `dim`. If `dtype` is given, the input is cast to it first."""
    return _along_dim(operators.softmax, input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None
) -> Tensor:
    """The logarithm of `softmax`."""
    return _along_dim(operators.log_softmax, input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None) -> Tensor:
    """`softmax` of the negated input."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim())
    return _along_dim(operators.softmax, -input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Sample from the Gumbel-Softmax distribution (Jang et al., 2017).

    Args:
        tau: the temperature.
        hard: whether to return one-hot vectors with the gradients of the soft samples.
        eps: has no effect; accepted for compatibility.
        dim: the dimension along which softmax is computed.
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    gumbels = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    soft = operators.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits, memory_format=torch.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft

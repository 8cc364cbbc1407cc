"""Activations and their derivatives, on arrays. At kinks, the derivatives have PyTorch's values.

`x` in the formulas is `self`. `..._backward` returns the derivative times `grad`, `..._double_backward` the second
derivative times `grad`, and `..._curvature` the second derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...codegen.kernel import Kernel
from ...codegen.pointwise import pointwise
from ...codegen.tracing import xp
from ..math import special  # noqa: F401 - it declares the distribution function
from ..runtime.floating import BFLOAT16, Array, refuse, type_name
from ..runtime.layout import row_major
from ..runtime.parallel import parallel_rows
from ..runtime.shapes import normalize_dim

# Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: x * Phi(x) and its approximation by tanh.
DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715


# --- pieces of lines ------------------------------------------------------------------------------------------


def _refusing(bools: str) -> Callable[[Array], Exception]:
    """Return the function that returns PyTorch's error for complex numbers, or this one for booleans."""
    of_complex = "clamp is not supported for complex types"
    return lambda array: RuntimeError(bools) if array.dtype.kind == "b" else NotImplementedError(of_complex)


@pointwise(_refusing("Boolean inputs not supported for relu"), "fiu")
def relu(self: Array) -> Any:
    """Return `max(x, 0)`."""
    return xp.maximum(self, 0)


@pointwise("threshold_cpu", "fiu")
def threshold(self: Array, threshold: float, value: float) -> Any:
    """Return `x` where it exceeds `threshold`, and `value` elsewhere."""
    return xp.where(self <= threshold, value, self)


@pointwise("leaky_relu_cpu")
def leaky_relu(self: Array, negative_slope: float) -> Any:
    """Return `x` where it is positive, and `negative_slope * x` elsewhere."""
    scaled = self * negative_slope
    if 0 < negative_slope <= 1:
        return xp.maximum(self, scaled)
    return xp.where(self > 0, self, scaled)


@pointwise("leaky_relu_backward_cpu")
def leaky_relu_backward(grad: Array, self: Array, negative_slope: float, self_is_result: bool) -> Any:
    """Return `grad` where `x` (or the result, which has the same sign) is positive, and `negative_slope * grad` elsewhere."""
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This "
            "is caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead. File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place "
            "leakRelu backward calculation with negative slope"
        )
    return xp.where(self > 0, grad, grad * negative_slope)


def _checked(kernel: Kernel, check: Callable[..., None]) -> Kernel:
    """Return the kernel with a `check` of the arguments before its general form and its in-place form."""

    def before(form: Callable[..., Any]) -> Any:
        def checking(*args: Any, **options: Any) -> Any:
            check(*args, **{name: value for name, value in options.items() if name != "out"})
            return form(*args, **options)

        checking.__name__, checking.__doc__ = kernel.name, form.__doc__
        return checking

    result = Kernel(kernel, inplace=before(kernel.inplace))
    result.general = before(kernel.general)
    return result


def _check_hardtanh(self: Array, min_val: float, max_val: float) -> None:
    if self.dtype.kind == "u" and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


@pointwise(_refusing("Bool inputs not supported for hardtanh"), "fiu")
def _hardtanh(self: Array, min_val: float, max_val: float) -> Any:
    """Return `x` limited to `[min_val, max_val]`."""
    return xp.minimum(xp.maximum(self, min_val), max_val)


hardtanh = _checked(_hardtanh, _check_hardtanh)


@pointwise("hardsigmoid_cpu")
def hardsigmoid(self: Array) -> Any:
    """Return `min(max(x + 3, 0), 6) / 6`."""
    return xp.minimum(xp.maximum(self + 3, 0), 6) / 6


@pointwise("hardswish_cpu")
def hardswish(self: Array) -> Any:
    """Return `x * hardsigmoid(x)` (Howard et al., "Searching for MobileNetV3", 2019)."""
    return xp.minimum(xp.maximum(self + 3, 0), 6) * self / 6


@pointwise("hardswish_backward_cpu")
def hardswish_double_backward(grad: Array, self: Array) -> Any:
    """Return `grad / 3` where `x` is between -3 and 3, and 0 elsewhere."""
    return xp.where(~((self > -3) & (self < 3)), 0, grad / 3)


@pointwise("hardshrink_cpu")
def hardshrink(self: Array, lambd: float) -> Any:
    """Return 0 where the magnitude of `x` is at most `lambd`, and `x` elsewhere."""
    return xp.shrink_backward(self, self, lambd)


@pointwise("softshrink_cpu")
def shrink_backward(grad: Array, self: Array, lambd: float) -> Any:
    """Return 0 where the magnitude of `x` is at most `lambd`, and `grad` elsewhere."""
    return xp.where((self >= -lambd) & (self <= lambd), 0, grad)


def _check_softshrink(self: Array, lambd: float) -> None:
    if self.dtype.kind not in "fV":
        raise refuse("softshrink_check", self)
    if not lambd >= 0:
        limit = numpy.finfo(self.dtype).max if self.dtype.kind == "f" else 3.38953e38
        raise RuntimeError(
            f"lambda must be in range [0, {limit:g}] for input dtype {type_name(self.dtype)}, but found {lambd:g}"
        )


@pointwise("softshrink_cpu")
def _softshrink(self: Array, lambd: float) -> Any:
    """Return `x` moved towards 0 by `lambd`, but not beyond 0."""
    if not lambd >= 0:
        raise RuntimeError("lambda must not be negative")  # the check raises the complete message
    return self - xp.minimum(xp.maximum(self, -lambd), lambd)


softshrink = _checked(_softshrink, _check_softshrink)


# --- with exponentials ----------------------------------------------------------------------------------------


@pointwise("elu_cpu")
def elu(self: Array, alpha: float, scale: float, input_scale: float) -> Any:
    """Return `scale * x` where `x` is positive, and `scale * alpha * (exp(input_scale * x) - 1)` elsewhere."""
    negative = xp.minimum(self, 0)
    if input_scale != 1:
        negative = negative * input_scale
    result = xp.expm1(negative)
    if alpha != 1:
        result = result * alpha
    result = result + xp.maximum(self, 0)
    return result if scale == 1 else result * scale


@pointwise("elu_cpu")
def celu(self: Array, alpha: float) -> Any:
    """Return `x` where it is positive, and `alpha * (exp(x / alpha) - 1)` elsewhere."""
    return xp.elu(self, alpha, 1, 1 / alpha)


@pointwise("elu_backward_cpu")
def elu_backward(
    grad: Array, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Array
) -> Any:
    """Return the derivative of `elu` times `grad`, computed from `x`, or from the result if `alpha` is not negative."""
    if is_result:
        if alpha < 0:
            raise RuntimeError(
                "In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
                "caused by calling in-place forward function with a negative slope, please call out-of-place version "
                "instead."
            )
        slope = (self_or_result + alpha * scale) * input_scale
        return grad * xp.where(self_or_result <= 0, slope, scale)
    slope = xp.exp(xp.minimum(self_or_result, 0) * input_scale)
    if alpha * input_scale == 1:
        return slope * grad if scale == 1 else slope * grad * scale
    return grad * xp.where(self_or_result > 0, scale, slope * (alpha * scale * input_scale))


@pointwise("elu_double_backward_cpu")
def elu_double_backward(
    grad: Array, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Array
) -> Any:
    """Return the derivative of `elu_backward` with respect to its last argument, times `grad`."""
    if is_result:
        curved = grad * input_scale
    else:
        curved = xp.exp(xp.minimum(self_or_result, 0) * input_scale)
        curved = curved * (alpha * scale * input_scale * input_scale) * grad
    return xp.where(self_or_result >= 0, 0, curved)


@pointwise("silu_cpu", "fc")
def silu(self: Array) -> Any:
    """Return `x * sigmoid(x)`."""
    return self / (xp.exp(-self) + 1)


@pointwise("silu_backward_cpu", "fc")
def silu_double_backward(grad: Array, self: Array) -> Any:
    """Return `grad * s * (1 - s) * (2 + x * (1 - 2 * s))`, where `s` is `sigmoid(x)`."""
    sigmoid = xp.sigmoid(self)
    return grad * (sigmoid * (1 - sigmoid) * (2 + self * (1 - 2 * sigmoid))).conj()


def tanh_of_softplus(self: Any) -> Any:
    """Return `tanh(log(1 + exp(x)))`, computed as n / (n + 2) with n = exp(x) * (exp(x) + 2). The result is 1 from x = 20 on."""
    exponential = xp.exp(xp.minimum(self, 20))
    result = (exponential + 2) * exponential
    return result / (result + 2)


@pointwise("softplus_cpu")
def softplus(self: Array, beta: float, threshold: float) -> Any:
    """Return `log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` exceeds `threshold`."""
    if beta == 1:
        return xp.where(self > threshold, self, xp.log1p(xp.exp(self)))
    scaled = self * beta
    return xp.where(scaled > threshold, self, xp.log1p(xp.exp(scaled)) / beta)


@pointwise("softplus_double_backward_cpu")
def softplus_double_backward(grad: Array, self: Array, beta: float, threshold: float) -> Any:
    """Return `grad * beta * s * (1 - s)` with `s = sigmoid(beta * x)`, or 0 where `beta * x` exceeds `threshold`."""
    scaled = self * beta
    sigmoid = xp.sigmoid(scaled)
    return xp.where(scaled > threshold, 0, grad * beta * sigmoid * (1 - sigmoid))


@pointwise("mish_cpu")
def mish(self: Array) -> Any:
    """Return `x * tanh(log(1 + exp(x)))` (Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019)."""
    return self * tanh_of_softplus(self)


@pointwise("mish_backward_cpu")
def mish_curvature(self: Array) -> Any:
    """Return the second derivative `s * (1 - t * t) * (2 + x * (1 - s - 2 * t * s))`, with `t` and `s` as in `mish_backward`."""
    tanh, sigmoid = tanh_of_softplus(self), xp.sigmoid(self)
    return sigmoid * (1 - tanh * tanh) * (2 + self * (1 - sigmoid - 2 * tanh * sigmoid))


@pointwise("log_sigmoid_cpu", contiguous=True)
def logsigmoid(self: Array) -> Any:
    """Return `log(sigmoid(x))`, without overflow."""
    return xp.minimum(self, 0) - xp.log1p(xp.exp(-xp.abs(self)))


# --- the Gaussian error linear unit ---------------------------------------------------------------------------


@pointwise("GeluKernelImpl")
def gelu(self: Array, *, approximate: str = "none") -> Any:
    """Return `x * Phi(x)`.

    Phi is the normal distribution function or, if `approximate` is "tanh", its approximation with tanh.
    """
    if approximate == "none":
        return self * xp.normal_cdf(self)
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return (xp.tanh(_tanh_argument(self)) + 1) * 0.5 * self


@pointwise("GeluBackwardKernelImpl")
def gelu_backward(grad: Array, self: Array, *, approximate: str = "none") -> Any:
    """Return `grad * (Phi(x) + x * phi(x))`, or the derivative of the approximation."""
    if approximate == "none":
        return (xp.normal_cdf(self) + self * _normal_density(self)) * grad
    tanh = xp.tanh(_tanh_argument(self))
    return 0.5 * ((1 + tanh) + self * (1 - tanh * tanh) * _tanh_slope(self)) * grad


@pointwise("GeluBackwardKernelImpl")
def gelu_curvature(self: Array, approximate: str) -> Any:
    """Return the second derivative: `phi(x) * (2 - x * x)`, or the second derivative of the approximation."""
    if approximate == "none":
        return _normal_density(self) * (2 - self * self)
    tanh, slope = xp.tanh(_tanh_argument(self)), _tanh_slope(self)
    bend = self * (6 * TANH_SCALE * TANH_CUBIC)
    return (1 - tanh * tanh) * (slope + self * (0.5 * bend - tanh * slope * slope))


def _normal_density(self: Any) -> Any:
    return xp.exp(self * self * -0.5) * DENSITY_AT_0


def _tanh_argument(self: Any) -> Any:
    """Return `sqrt(2 / pi) * (x + 0.044715 * x ** 3)`."""
    return (self * self * TANH_CUBIC + 1) * self * TANH_SCALE


def _tanh_slope(self: Any) -> Any:
    """Return `sqrt(2 / pi) * (1 + 3 * 0.044715 * x ** 2)`, the derivative of `_tanh_argument`."""
    return self * self * (3 * TANH_CUBIC * TANH_SCALE) + TANH_SCALE


# --- with weights, noise or a gate ----------------------------------------------------------------------------


@pointwise("prelu_cpu")
def prelu(self: Array, weight: Array) -> Any:
    """Return `x` where it is positive, and `weight * x` elsewhere."""
    return xp.where(self > 0, self, self * weight)


@pointwise("prelu_backward_cpu")
def prelu_backward(grad: Array, self: Array, weight: Array) -> Any:
    """Return `grad` where `x` is positive, and `weight * grad` elsewhere."""
    return xp.where(self > 0, grad, grad * weight)


def halves(self: Array, dim: int) -> tuple[Array, Array]:
    """Return the first and the second half of an array along `dim`."""
    if self.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if self.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % self.ndim} is size {self.shape[dim]}")
    before, middle = (slice(None),) * (dim % self.ndim), self.shape[dim] // 2
    return self[(*before, slice(middle))], self[(*before, slice(middle, None))]


def glu(self: Array, dim: int) -> Array:
    """Return the first half of `x` along `dim`, times the sigmoid of the second half."""
    first, second = halves(self, normalize_dim(dim, self.ndim))
    return gated(first, second)


@pointwise("glu_cpu")
def gated(first: Array, second: Array) -> Any:
    """Return `first * sigmoid(second)`."""
    return first / (xp.exp(-second) + 1)


@pointwise("glu_backward_cpu")
def _gated_backward(grad: Array, first: Array, second: Array) -> Any:
    sigmoid = xp.reciprocal(xp.exp(-second) + 1)
    return grad * sigmoid, grad * first * sigmoid * (1 - sigmoid)


def glu_backward(grad: Array, self: Array, dim: int) -> Array:
    """Return the gradient of `glu`, whose length along `dim` is half the length of the input."""
    dim = normalize_dim(dim, self.ndim)
    first, second = halves(self, dim)
    result = numpy.empty(self.shape, self.dtype)
    to_first, to_second = numpy.split(result, 2, dim)
    along = int(dim == 0 and self.ndim > 1)

    def part(start: int, stop: int) -> None:
        here = (slice(None),) * along + (slice(start, stop),)
        to_first[here], to_second[here] = _gated_backward(grad[here], first[here], second[here])

    rows = first.shape[along]
    parallel_rows(part, rows, 2 * result.nbytes // max(rows, 1))
    return result


def rrelu_backward(grad: Array, self: Array, noise: Array) -> Array:
    """Return the gradient of an array that was multiplied by `noise`."""
    return grad * noise


def rrelu_mean(self: Array, negative_slope: float) -> Array:
    """Return `leaky_relu`, row by row in memory."""
    return row_major(leaky_relu(self, negative_slope))


def rrelu_with_noise(self: Array, noise: Array) -> Array:
    """Return the product in row-major order, as in PyTorch."""
    return numpy.asarray(numpy.multiply(self, noise, order="C"))


def rrelu_noise(self: Array, slopes: Array) -> Array:
    """Return 1 where `x` is positive, and the next number of `slopes` elsewhere."""
    if self.dtype.char not in "fd" and self.dtype != BFLOAT16:
        raise refuse("rrelu_with_noise_out_cpu", self)
    noise = numpy.ones(self.shape, self.dtype)
    noise[self <= 0] = slopes
    return noise

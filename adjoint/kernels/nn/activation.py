"""Activations and their derivatives, on arrays. At the kinks the derivatives are PyTorch's.

`x` in the formulas is `self`; a `..._backward` gives the derivative times `grad`, a `..._double_backward` the second
one, a `..._curvature` that alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..index.masking import choose, zero_where
from ..math.pointwise import fused, refuse
from ..math.special import erf
from ..runtime.floating import type_name
from ..runtime.scalar import HALF, ONE, TWO, ZERO, typed

Array = numpy.ndarray[Any, Any]

_FEW = 512  # elements up to which one slow ufunc costs less than several fast ones

# Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: x * Phi(x) and its approximation by tanh.
_SQRT_HALF = math.sqrt(0.5)
DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715


# --- pieces of lines ------------------------------------------------------------------------------------------


def positive_part(self: Array) -> Array:
    """`max(x, 0)` of numbers that have an order."""
    return numpy.maximum(self, ZERO[self.dtype])


def relu(self: Array) -> Array:
    """`max(x, 0)`."""
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return positive_part(self)


def threshold(self: Array, threshold: float, value: float) -> Array:
    """`x` where it is greater than `threshold`, else `value`."""
    if self.dtype.kind in "bc":
        raise refuse("threshold_cpu", self)
    return numpy.where(self <= typed(threshold, self.dtype), typed(value, self.dtype), self)


def threshold_backward(grad: Array, self: Array, threshold: float) -> Array:
    """`grad` where `x` is greater than `threshold`, else 0."""
    return zero_where(grad, self <= typed(threshold, self.dtype))


@fused("leaky_relu_cpu", "f")
def leaky_relu(self: Array, negative_slope: float) -> Array:
    """`x` where positive, else `negative_slope * x`."""
    scaled = self * typed(negative_slope, self.dtype)
    if 0 < negative_slope <= 1:
        return numpy.maximum(self, scaled)
    return choose(self > ZERO[self.dtype], self, scaled)


@fused("leaky_relu_backward_cpu", "f")
def leaky_relu_backward(grad: Array, self: Array, negative_slope: float, self_is_result: bool) -> Array:
    """`grad` where `x` (or the result, which then has its sign) is positive, else `negative_slope * grad`."""
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This "
            "is caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead. File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place "
            "leakRelu backward calculation with negative slope"
        )
    return choose(self > ZERO[self.dtype], grad, grad * typed(negative_slope, self.dtype))


def hardtanh(self: Array, min_val: float, max_val: float) -> Array:
    """`x` limited to `[min_val, max_val]`."""
    if self.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if self.dtype.kind == "u" and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return numpy.minimum(numpy.maximum(self, typed(min_val, self.dtype)), typed(max_val, self.dtype))


def hardtanh_backward(grad: Array, self: Array, min_val: float, max_val: float) -> Array:
    """`grad` where `x` is between the bounds, else 0."""
    return zero_where(grad, (self <= typed(min_val, self.dtype)) | (self >= typed(max_val, self.dtype)))


@fused("hardsigmoid_cpu", "f")
def hardsigmoid(self: Array) -> Array:
    """`min(max(x + 3, 0), 6) / 6`."""
    dtype = self.dtype
    result = self + typed(3, dtype)
    result = numpy.minimum(numpy.maximum(result, ZERO[dtype]), typed(6, dtype))
    result /= typed(6, dtype)
    return result


@fused("hardsigmoid_backward_cpu", "f")
def hardsigmoid_backward(grad: Array, self: Array) -> Array:
    """`grad / 6` where `x` is between -3 and 3, else 0."""
    steep = (self > typed(-3, self.dtype)) & (self < typed(3, self.dtype))
    return zero_where(grad / typed(6, self.dtype), ~steep)


@fused("hardswish_cpu", "f")
def hardswish(self: Array) -> Array:
    """`x * hardsigmoid(x)` (Howard et al., "Searching for MobileNetV3", 2019)."""
    dtype = self.dtype
    result = numpy.minimum(numpy.maximum(self + typed(3, dtype), ZERO[dtype]), typed(6, dtype))
    result *= self
    result /= typed(6, dtype)
    return result


@fused("hardswish_backward_cpu", "f")
def hardswish_backward(grad: Array, self: Array) -> Array:
    """0 up to -3, `grad * (x / 3 + 1/2)` up to 3, then `grad`."""
    dtype = self.dtype
    sloped = grad * (self / typed(3, dtype) + HALF[dtype])
    return zero_where(choose(self < typed(3, dtype), sloped, grad), self <= typed(-3, dtype))


@fused("hardswish_backward_cpu", "f")
def hardswish_double_backward(grad: Array, self: Array) -> Array:
    """`grad / 3` where `x` is between -3 and 3, else 0."""
    curved = (self > typed(-3, self.dtype)) & (self < typed(3, self.dtype))
    return zero_where(grad / typed(3, self.dtype), ~curved)


@fused("hardshrink_cpu", "f")
def hardshrink(self: Array, lambd: float) -> Array:
    """`x`, but 0 where its magnitude is at most `lambd`."""
    return shrink_backward(self, self, lambd)


def softshrink(self: Array, lambd: float) -> Array:
    """`x` moved towards 0 by `lambd`, 0 where it would pass it."""
    if self.dtype.kind not in "fV":
        raise refuse("softshrink_check", self)
    if lambd < 0:
        limit = numpy.finfo(self.dtype).max if self.dtype.kind == "f" else 3.38953e38
        raise RuntimeError(
            f"lambda must be in range [0, {limit:g}] for input dtype {type_name(self.dtype)}, but found {lambd:g}"
        )
    return moved_to_zero(self, lambd)


@fused("softshrink_cpu", "f")
def moved_to_zero(self: Array, lambd: float) -> Array:
    """`softshrink` of what has been checked."""
    limit = typed(lambd, self.dtype)
    return self - numpy.minimum(numpy.maximum(self, -limit), limit)


def shrink_backward(grad: Array, self: Array, lambd: float) -> Array:
    """`grad`, but 0 where the magnitude of `x` is at most `lambd`."""
    return zero_where(grad, (self >= typed(-lambd, self.dtype)) & (self <= typed(lambd, self.dtype)))


# --- with exponentials ----------------------------------------------------------------------------------------


@fused("elu_cpu", "f")
def elu(self: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """`scale * x` where positive, else `scale * alpha * (exp(input_scale * x) - 1)`."""
    dtype = self.dtype
    negative = numpy.minimum(self, ZERO[dtype])
    if input_scale != 1:
        negative *= typed(input_scale, dtype)
    result = numpy.expm1(negative)
    if alpha != 1:
        result *= typed(alpha, dtype)
    result += numpy.maximum(self, ZERO[dtype])
    return result if scale == 1 else result * typed(scale, dtype)


@fused("elu_backward_cpu", "f")
def elu_backward(
    grad: Array, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Array
) -> Array:
    """The derivative of `elu` times `grad`, by `x` or by the result, which has its sign unless `alpha` is negative."""
    if is_result and alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
            "caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead."
        )
    dtype = self_or_result.dtype
    if is_result:
        slope = (self_or_result + typed(alpha * scale, dtype)) * typed(input_scale, dtype)
    else:
        slope = numpy.exp(numpy.minimum(self_or_result, ZERO[dtype]) * typed(input_scale, dtype))
        if alpha * input_scale == 1:
            return slope * grad if scale == 1 else slope * grad * typed(scale, dtype)
        slope *= typed(alpha * scale * input_scale, dtype)
    return grad * choose(self_or_result <= ZERO[dtype], slope, _filled(slope, scale))


@fused("elu_double_backward_cpu", "f")
def elu_double_backward(
    grad: Array, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Array
) -> Array:
    """The derivative of `elu_backward` by its last argument, times `grad`."""
    dtype = self_or_result.dtype
    if is_result:
        curved = grad * typed(input_scale, dtype)
    else:
        curved = numpy.exp(numpy.minimum(self_or_result, ZERO[dtype]) * typed(input_scale, dtype))
        curved *= typed(alpha * scale * input_scale * input_scale, dtype)
        curved *= grad
    return zero_where(curved, ~(self_or_result < ZERO[dtype]))


def _filled(like: Array, value: float) -> Array:
    return numpy.full(like.shape, value, like.dtype)


def _logistic(self: Array) -> Array:
    result = numpy.exp(-self)
    result += ONE[self.dtype]
    return numpy.reciprocal(result)


@fused("silu_cpu")
def silu(self: Array) -> Array:
    """`x * sigmoid(x)`."""
    result = numpy.exp(-self)
    result += ONE[self.dtype]
    return self / result


@fused("silu_backward_cpu")
def silu_backward(grad: Array, self: Array) -> Array:
    """`grad * s * (1 + x * (1 - s))`, where `s` is `sigmoid(x)`."""
    sigmoid = _logistic(self)
    result = ONE[self.dtype] - sigmoid
    result *= self
    result += ONE[self.dtype]
    result *= sigmoid
    return grad * (result.conj() if result.dtype.kind == "c" else result)


@fused("silu_backward_cpu")
def silu_double_backward(grad: Array, self: Array) -> Array:
    """`grad * s * (1 - s) * (2 + x * (1 - 2 * s))`, where `s` is `sigmoid(x)`."""
    one, two = ONE[self.dtype], TWO[self.dtype]
    sigmoid = _logistic(self)
    result = sigmoid * (one - sigmoid) * (two + self * (one - two * sigmoid))
    return grad * (result.conj() if result.dtype.kind == "c" else result)


def _tanh_of_softplus(self: Array) -> Array:
    """`tanh(log(1 + exp(x)))`, which is n / (n + 2) with n = exp(x) * (exp(x) + 2); 1 from 20 on."""
    exponential = numpy.exp(numpy.minimum(self, typed(20, self.dtype)))
    result = exponential + TWO[self.dtype]
    result *= exponential
    return result / (result + TWO[self.dtype])


@fused("softplus_cpu", "f")
def softplus(self: Array, beta: float, threshold: float) -> Array:
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is greater than `threshold`."""
    dtype = self.dtype
    scaled = self if beta == 1 else self * typed(beta, dtype)
    if threshold >= 20 and dtype.itemsize == 4 and self.size <= _FEW:  # beyond 20 the two do not differ any more
        result = numpy.logaddexp(scaled, ZERO[dtype])
        return result if beta == 1 else result / typed(beta, dtype)
    result = numpy.log1p(numpy.exp(scaled))
    if beta != 1:
        result /= typed(beta, dtype)
    return choose(scaled > typed(threshold, dtype), self, result)


@fused("softplus_backward_cpu", "f")
def softplus_backward(grad: Array, self: Array, beta: float, threshold: float) -> Array:
    """`grad * sigmoid(beta * x)`, and `grad` where `beta * x` is greater than `threshold`."""
    scaled = self if beta == 1 else self * typed(beta, self.dtype)
    return choose(scaled > typed(threshold, self.dtype), grad, grad * _logistic(scaled))


@fused("softplus_double_backward_cpu", "f")
def softplus_double_backward(grad: Array, self: Array, beta: float, threshold: float) -> Array:
    """`grad * beta * s * (1 - s)`, where `s` is `sigmoid(beta * x)`; 0 where `beta * x` is greater than `threshold`."""
    scaled = self * typed(beta, self.dtype)
    sigmoid = _logistic(scaled)
    curved = grad * typed(beta, self.dtype) * sigmoid * (ONE[self.dtype] - sigmoid)
    return zero_where(curved, scaled > typed(threshold, self.dtype))


@fused("mish_cpu", "f")
def mish(self: Array) -> Array:
    """`x * tanh(log(1 + exp(x)))` (Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019)."""
    return self * _tanh_of_softplus(self)


@fused("mish_backward_cpu", "f")
def mish_backward(grad: Array, self: Array) -> Array:
    """`grad * (t + x * s * (1 - t * t))`, where `t` is `tanh(softplus(x))` and `s` is `sigmoid(x)`."""
    tanh = _tanh_of_softplus(self)
    return grad * (tanh + self * _logistic(self) * (ONE[self.dtype] - tanh * tanh))


@fused("mish_backward_cpu", "f")
def mish_curvature(self: Array) -> Array:
    """The second derivative: `s * (1 - t * t) * (2 + x * (1 - s - 2 * t * s))`, `t` and `s` as in `mish_backward`."""
    one, two = ONE[self.dtype], TWO[self.dtype]
    tanh, sigmoid = _tanh_of_softplus(self), _logistic(self)
    return sigmoid * (one - tanh * tanh) * (two + self * (one - sigmoid - two * tanh * sigmoid))


@fused("log_sigmoid_cpu", "f")
def logsigmoid(self: Array) -> Array:
    """`log(sigmoid(x))`, without overflow."""
    return numpy.minimum(self, ZERO[self.dtype], order="C") - numpy.log1p(numpy.exp(-numpy.absolute(self)))


@fused("log_sigmoid_backward_cpu", "f")
def logsigmoid_backward(grad: Array, self: Array) -> Array:
    """`grad * sigmoid(-x)`."""
    return grad * _logistic(-self)


# --- the Gaussian error linear unit ---------------------------------------------------------------------------


@fused("GeluKernelImpl", "f")
def gelu(self: Array, *, approximate: str = "none") -> Array:
    """`x * Phi(x)`, with the normal distribution function or (`approximate="tanh"`) a form with tanh near it."""
    dtype = self.dtype
    if approximate == "none":
        result = erf(self * typed(_SQRT_HALF, dtype))
    elif approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    else:
        result = numpy.tanh(_tanh_argument(self))
    result += ONE[dtype]
    result *= self
    result *= HALF[dtype]
    return result


@fused("GeluBackwardKernelImpl", "f")
def gelu_backward(grad: Array, self: Array, *, approximate: str = "none") -> Array:
    """`grad * (Phi(x) + x * phi(x))`, or the derivative of the approximation."""
    dtype = self.dtype
    if approximate == "none":
        slope = erf(self * typed(_SQRT_HALF, dtype))
        slope += ONE[dtype]
        slope *= HALF[dtype]
        slope += self * _normal_density(self)
    else:
        tanh = numpy.tanh(_tanh_argument(self))
        slope = HALF[dtype] * ((ONE[dtype] + tanh) + self * (ONE[dtype] - tanh * tanh) * _tanh_slope(self))
    slope *= grad
    return slope


@fused("GeluBackwardKernelImpl", "f")
def gelu_curvature(self: Array, approximate: str) -> Array:
    """The second derivative: `phi(x) * (2 - x * x)`, or that of the approximation."""
    dtype = self.dtype
    if approximate == "none":
        return _normal_density(self) * (TWO[dtype] - self * self)
    tanh, slope = numpy.tanh(_tanh_argument(self)), _tanh_slope(self)
    bend = self * typed(6 * TANH_SCALE * TANH_CUBIC, dtype)
    return (ONE[dtype] - tanh * tanh) * (slope + self * (HALF[dtype] * bend - tanh * slope * slope))


def _normal_density(self: Array) -> Array:
    density = self * self
    density *= typed(-0.5, self.dtype)
    density = numpy.exp(density)
    density *= typed(DENSITY_AT_0, self.dtype)
    return density


def _tanh_argument(self: Array) -> Array:
    """`sqrt(2 / pi) * (x + 0.044715 * x ** 3)`."""
    result = self * self
    result *= typed(TANH_CUBIC, self.dtype)
    result += ONE[self.dtype]
    result *= self
    result *= typed(TANH_SCALE, self.dtype)
    return result


def _tanh_slope(self: Array) -> Array:
    """`sqrt(2 / pi) * (1 + 3 * 0.044715 * x ** 2)`, the derivative of `_tanh_argument`."""
    result = self * self
    result *= typed(3 * TANH_CUBIC * TANH_SCALE, self.dtype)
    result += typed(TANH_SCALE, self.dtype)
    return result


# --- with weights, noise or a gate ----------------------------------------------------------------------------


@fused("prelu_cpu", "f")
def prelu(self: Array, weight: Array) -> Array:
    """`x` where positive, else `weight * x`."""
    return numpy.where(self > ZERO[self.dtype], self, self * weight)


@fused("prelu_backward_cpu", "f")
def prelu_backward(grad: Array, self: Array, weight: Array) -> Array:
    """`grad` where `x` is positive, else `weight * grad`."""
    return numpy.where(self > ZERO[self.dtype], grad, grad * weight)


def halves(self: Array, dim: int) -> tuple[Array, Array]:
    """The first and the second half of an array along `dim`."""
    if self.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if self.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % self.ndim} is size {self.shape[dim]}")
    first, second = numpy.split(self, 2, dim)
    return first, second


def glu(self: Array, dim: int) -> Array:
    """The first half of `x` along `dim` times the sigmoid of the second."""
    first, second = halves(self, dim)
    return gated(first, second)


@fused("glu_cpu", "fc")
def gated(first: Array, second: Array) -> Array:
    """`first * sigmoid(second)`."""
    result = numpy.exp(-second)
    result += ONE[second.dtype]
    return first / result


def joined(first: Array, second: Array, dim: int) -> Array:
    """Two halves put together along `dim`."""
    return numpy.concatenate([first, second], dim)


def rrelu_noise(self: Array, slopes: Array) -> Array:
    """1 where `x` is positive, elsewhere the next of `slopes`."""
    noise = numpy.ones(self.shape, self.dtype)
    noise[self <= 0] = slopes
    return noise

"""Activations. Each derivative that has kinks or several terms is an operator itself, with a derivative of its own."""

from __future__ import annotations

import numpy

from ..kernels import activation as kernels
from ..kernels import random as random_kernels
from ..tensor import wrap, wrap_dim
from .build import PUBLIC, operator, public, tensors
from .pointwise import sigmoid, tanh
from .random import stream_of

# ruff: noqa: D101, N801, F821  (declarations are named as the functions they become)


# --- pieces of lines ------------------------------------------------------------------------------------------


@operator(kernel=kernels.relu, simple=kernels.positive_part, fast="float", inplace=True)
class relu:
    """`max(input, 0)`, elementwise; the derivative at 0 is 0.

    >>> import adjoint as torch
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self: Array): ...

    def grad_self(grad, result, xp):
        return xp.threshold_backward(grad, result, 0)


@operator(kernel=kernels.threshold, inplace=True, method=())
class threshold:
    """`input` where it is greater than `threshold`, else `value`."""

    def forward(self: Array, threshold, value): ...

    def grad_self(grad, self, threshold, xp):
        return xp.threshold_backward(grad, self, threshold)


@operator(kernel=kernels.threshold_backward, namespace=None, method=())
class threshold_backward:
    """`grad_output` where `input` is greater than `threshold`, else 0."""

    def forward(grad_output: Array, self: Array, threshold): ...

    def grad_grad_output(grad, self, threshold, xp):
        return xp.threshold_backward(grad, self, threshold)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(kernel=kernels.leaky_relu, namespace="functional", inplace=True, method=())
class leaky_relu:
    """`input` where positive, else `negative_slope * input`."""

    def forward(self: Array, negative_slope=0.01): ...

    def grad_self(grad, self, negative_slope, xp):
        return xp.leaky_relu_backward(grad, self, negative_slope, False)


@operator(kernel=kernels.leaky_relu, namespace=None, inplace=True, method=(), node="LeakyReluBackward1")
class leaky_relu_in_place:
    """`leaky_relu`, remembering its result instead of its input."""

    def forward(self: Array, negative_slope=0.01): ...

    def grad_self(grad, result, negative_slope, xp):
        return xp.leaky_relu_backward(grad, result, negative_slope, True)


@operator(kernel=kernels.leaky_relu_backward, namespace=None, method=())
class leaky_relu_backward:
    """The derivative of `leaky_relu` times `grad_output`."""

    def forward(grad_output: Array, self: Array, negative_slope, self_is_result): ...

    def grad_grad_output(grad, self, negative_slope, self_is_result, xp):
        return xp.leaky_relu_backward(grad, self, negative_slope, self_is_result)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(kernel=kernels.hardtanh, namespace="functional", inplace=True, method=())
class hardtanh:
    """`input` limited to `[min_val, max_val]`; unlike `clamp`'s, the derivative at the bounds is 0."""

    def forward(self: Array, min_val=-1.0, max_val=1.0): ...

    def grad_self(grad, self, min_val, max_val, xp):
        return xp.hardtanh_backward(grad, self, min_val, max_val)


@operator(kernel=kernels.hardtanh_backward, namespace=None, method=())
class hardtanh_backward:
    """The derivative of `hardtanh` times `grad_output`."""

    def forward(grad_output: Array, self: Array, min_val, max_val): ...

    def grad_grad_output(grad, self, min_val, max_val, xp):
        return xp.hardtanh_backward(grad, self, min_val, max_val)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(kernel=kernels.hardsigmoid, namespace="functional", inplace=True, method=())
class hardsigmoid:
    """`min(max(input + 3, 0), 6) / 6`, elementwise."""

    def forward(self: Array): ...

    def grad_self(grad, self, xp):
        return xp.hardsigmoid_backward(grad, self)


@operator(kernel=kernels.hardsigmoid_backward, namespace=None, method=())
class hardsigmoid_backward:
    """The derivative of `hardsigmoid` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.hardsigmoid_backward(grad, self)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(kernel=kernels.hardswish, namespace="functional", inplace=True, method=())
class hardswish:
    """`input * hardsigmoid(input)`, elementwise (Howard et al., 2019)."""

    def forward(self: Array): ...

    def grad_self(grad, self, xp):
        return xp.hardswish_backward(grad, self)


@operator(kernel=kernels.hardswish_backward, namespace=None, method=())
class hardswish_backward:
    """The derivative of `hardswish` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.hardswish_backward(grad, self)

    def grad_self(grad, grad_output, self, xp):
        return xp.hardswish_double_backward(grad * grad_output, self)


@operator(kernel=kernels.hardswish_double_backward, namespace=None, method=())
class hardswish_double_backward:
    """The second derivative of `hardswish` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.hardswish_double_backward(grad, self)


@operator(kernel=kernels.hardshrink, same_out=True)
class hardshrink:
    """`input`, but 0 where its magnitude is at most `lambd`."""

    def forward(self: Array, lambd=0.5): ...

    def grad_self(grad, self, lambd, xp):
        return xp.hardshrink_backward(grad, self, lambd)


@operator(kernel=kernels.shrink_backward, namespace=None, method=())
class hardshrink_backward:
    """The derivative of `hardshrink` times `grad_output`."""

    def forward(grad_output: Array, self: Array, lambd): ...

    def grad_grad_output(grad, self, lambd, xp):
        return xp.hardshrink_backward(grad, self, lambd)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(kernel=kernels.softshrink, namespace="functional", method=(), same_out=True)
class softshrink:
    """`input` moved towards 0 by `lambd`, 0 where it would pass it."""

    def forward(self: Array, lambd=0.5): ...

    def grad_self(grad, self, lambd, xp):
        return xp.softshrink_backward(grad, self, lambd)


@operator(kernel=kernels.shrink_backward, namespace=None, method=())
class softshrink_backward:
    """The derivative of `softshrink` times `grad_output`."""

    def forward(grad_output: Array, self: Array, lambd): ...

    def grad_grad_output(grad, self, lambd, xp):
        return xp.softshrink_backward(grad, self, lambd)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


# --- with exponentials ----------------------------------------------------------------------------------------


@operator(kernel=kernels.elu, namespace="functional", inplace=True, method=())
class elu:
    """`scale * input` where positive, else `scale * alpha * (exp(input_scale * input) - 1)`."""

    def forward(self: Array, alpha=1.0, scale=1, input_scale=1): ...

    def grad_self(grad, self, alpha, scale, input_scale, xp):
        return xp.elu_backward(grad, alpha, scale, input_scale, False, self)


@operator(kernel=kernels.elu, namespace=None, inplace=True, method=(), node="EluBackward1")
class elu_in_place:
    """`elu`, remembering its result instead of its input."""

    def forward(self: Array, alpha=1.0, scale=1, input_scale=1): ...

    def grad_self(grad, result, alpha, scale, input_scale, xp):
        return xp.elu_backward(grad, alpha, scale, input_scale, True, result)


@operator(kernel=kernels.elu_backward, namespace=None, method=())
class elu_backward:
    """The derivative of `elu`, by its input or its result, times `grad_output`."""

    def forward(grad_output: Array, alpha, scale, input_scale, is_result, self_or_result: Array): ...

    def grad_grad_output(grad, alpha, scale, input_scale, is_result, self_or_result, xp):
        return xp.elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)

    def grad_self_or_result(grad, grad_output, alpha, scale, input_scale, is_result, self_or_result, xp):
        return xp.elu_double_backward(grad * grad_output, alpha, scale, input_scale, is_result, self_or_result)


@operator(kernel=kernels.elu_double_backward, namespace=None, method=())
class elu_double_backward:
    """The derivative of `elu_backward` by its last input, times `grad_output`."""

    def forward(grad_output: Array, alpha, scale, input_scale, is_result, self_or_result: Array): ...

    def grad_grad_output(grad, alpha, scale, input_scale, is_result, self_or_result, xp):
        return xp.elu_double_backward(grad, alpha, scale, input_scale, is_result, self_or_result)

    def grad_self_or_result(grad, grad_output, alpha, scale, input_scale, is_result, self_or_result, xp):
        if is_result:
            return xp.zeros_like(grad)
        return input_scale * xp.elu_double_backward(
            grad * grad_output, alpha, scale, input_scale, False, self_or_result
        )


# Klambauer et al., "Self-Normalizing Neural Networks", 2017, equation 14.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@public()
def selu(input):
    """The scaled exponential linear unit of self-normalizing networks (Klambauer et al., 2017)."""
    return elu(input, SELU_ALPHA, SELU_SCALE)


@public()
def selu_(input):
    """`selu` in place."""
    return elu_in_place.inplace(input, SELU_ALPHA, SELU_SCALE)


def _checked_celu(alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return alpha


@operator(namespace=None, inplace=True, method=(), node="CeluBackward0", out=False)
class celu_of_input:
    """`input` where positive, else `alpha * (exp(input / alpha) - 1)`."""

    def forward(self: Array, alpha):
        return kernels.elu(self, alpha, 1, 1 / alpha)

    def grad_self(grad, self, alpha, xp):
        return xp.elu_backward(grad, alpha, 1, 1 / alpha, False, self)


@operator(namespace=None, inplace=True, method=(), node="CeluBackward1", out=False)
class celu_in_place:
    """`celu`, remembering its result instead of its input."""

    def forward(self: Array, alpha):
        return kernels.elu(self, alpha, 1, 1 / alpha)

    def grad_self(grad, result, alpha, xp):
        return xp.elu_backward(grad, alpha, 1, 1 / alpha, True, result)


@public()
def celu(input, alpha=1.0):
    """`input` where positive, else `alpha * (exp(input / alpha) - 1)` (Barron, 2017)."""
    return celu_of_input(input, _checked_celu(alpha))


@public()
def celu_(input, alpha=1.0):
    """`celu` in place."""
    return celu_in_place.inplace(input, _checked_celu(alpha))


@operator(kernel=kernels.silu, namespace="functional", inplace=True, method=())
class silu:
    """`input * sigmoid(input)`, elementwise."""

    def forward(self: Array): ...

    def grad_self(grad, self, xp):
        return xp.silu_backward(grad, self)


@operator(kernel=kernels.silu_backward, namespace=None, method=())
class silu_backward:
    """The derivative of `silu` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.silu_backward(grad, self.conj())

    def grad_self(grad, grad_output, self, xp):
        return xp.silu_double_backward(grad.conj() * grad_output, self)


@operator(kernel=kernels.silu_double_backward, namespace=None, method=())
class silu_double_backward:
    """The second derivative of `silu` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.silu_double_backward(grad, self.conj())

    def grad_self(grad, grad_output, self, xp):
        sigmoid = xp.sigmoid(self)
        slope = sigmoid * (1 - sigmoid)
        third = slope * ((1 - 2 * sigmoid) * (3 + self * (1 - 2 * sigmoid)) - 2 * self * slope)
        return grad.conj() * grad_output * third.conj()


@operator(kernel=kernels.mish, namespace="functional", inplace=True, method=())
class mish:
    """`input * tanh(softplus(input))`, elementwise (Misra, 2019)."""

    def forward(self: Array): ...

    def grad_self(grad, self, xp):
        return xp.mish_backward(grad, self)


@operator(kernel=kernels.mish_backward, namespace=None, method=())
class mish_backward:
    """The derivative of `mish` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.mish_backward(grad, self)

    def grad_self(grad, grad_output, self, xp):
        return grad * grad_output * xp.mish_curvature(self)


def _mish_curvature(self):
    """The second derivative of `mish`, on tensors as `kernels.mish_double_backward` on arrays."""
    tanh, sigmoid = tensors.tanh(softplus(self)), tensors.sigmoid(self)
    return sigmoid * (1 - tanh * tanh) * (2 + self * (1 - sigmoid - 2 * tanh * sigmoid))


public(namespace=None, name="mish_curvature", on_arrays=kernels.mish_curvature)(_mish_curvature)


@operator(kernel=kernels.softplus, namespace="functional", method=(), same_out=True)
class softplus:
    """`log(1 + exp(beta * input)) / beta`, and `input` itself where `beta * input` is greater than `threshold`."""

    def forward(self: Array, beta=1, threshold=20): ...

    def grad_self(grad, self, beta, threshold, xp):
        return xp.softplus_backward(grad, self, beta, threshold)


@operator(kernel=kernels.softplus_backward, namespace=None, method=())
class softplus_backward:
    """The derivative of `softplus` times `grad_output`."""

    def forward(grad_output: Array, self: Array, beta, threshold): ...

    def grad_grad_output(grad, self, beta, threshold, xp):
        return xp.softplus_backward(grad, self, beta, threshold)

    def grad_self(grad, grad_output, self, beta, threshold, xp):
        return xp.softplus_double_backward(grad * grad_output, self, beta, threshold)


@operator(kernel=kernels.softplus_double_backward, namespace=None, method=())
class softplus_double_backward:
    """The second derivative of `softplus` times `grad_output`."""

    def forward(grad_output: Array, self: Array, beta, threshold): ...

    def grad_grad_output(grad, self, beta, threshold, xp):
        return xp.softplus_double_backward(grad, self, beta, threshold)

    def grad_self(grad, grad_output, self, beta, threshold, xp):
        bend = beta * (1 - 2 * xp.sigmoid(beta * self))
        return xp.softplus_double_backward(grad * grad_output * bend, self, beta, threshold)


@operator(kernel=kernels.logsigmoid, namespace="functional", method=(), node="LogSigmoidBackward0", same_out=True)
class logsigmoid:
    """`log(sigmoid(input))`, elementwise, without overflow."""

    def forward(self: Array): ...

    def grad_self(grad, self, xp):
        return xp.logsigmoid_backward(grad, self)


@operator(kernel=kernels.logsigmoid_backward, namespace=None, method=(), node="LogSigmoidBackwardBackward0")
class logsigmoid_backward:
    """The derivative of `logsigmoid` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.logsigmoid_backward(grad, self)

    def grad_self(grad, grad_output, self, xp):
        sigmoid = xp.sigmoid(self)
        return grad * grad_output * sigmoid * (sigmoid - 1)


# --- the Gaussian error linear unit ---------------------------------------------------------------------------


@operator(kernel=kernels.gelu, namespace="functional", method=(), same_out=True)
class gelu:
    """`input * Phi(input)`, elementwise, with the normal distribution function (Hendrycks and Gimpel, 2016).

    `approximate="tanh"` computes a near form: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`.
    """

    def forward(self: Array, *, approximate="none"): ...

    def grad_self(grad, self, approximate, xp):
        return xp.gelu_backward(grad, self, approximate=approximate)


@operator(kernel=kernels.gelu_backward, namespace=None, method=())
class gelu_backward:
    """The derivative of `gelu` times `grad_output`."""

    def forward(grad_output: Array, self: Array, *, approximate="none"): ...

    def grad_grad_output(grad, self, approximate, xp):
        return xp.gelu_backward(grad, self, approximate=approximate)

    def grad_self(grad, grad_output, self, approximate, xp):
        return grad * grad_output * xp.gelu_curvature(self, approximate)


def _gelu_curvature(self, approximate):
    """The second derivative of `gelu`, on tensors as `kernels.gelu_curvature` on arrays."""
    if approximate == "none":
        return tensors.exp(self * self * -0.5) * kernels.DENSITY_AT_0 * (2 - self * self)
    inner = kernels.TANH_SCALE * (self + kernels.TANH_CUBIC * self * self * self)
    slope = kernels.TANH_SCALE * (1 + 3 * kernels.TANH_CUBIC * self * self)
    tanh, bend = tensors.tanh(inner), 6 * kernels.TANH_SCALE * kernels.TANH_CUBIC * self
    return (1 - tanh * tanh) * (slope + self * (0.5 * bend - tanh * slope * slope))


public(namespace=None, name="gelu_curvature", on_arrays=kernels.gelu_curvature)(_gelu_curvature)


# --- with weights, a gate or noise ----------------------------------------------------------------------------


@operator(kernel=kernels.prelu, namespace=None, method=(), node="PreluKernelBackward0", out=False)
class prelu_kernel:
    """`input` where positive, else `weight * input`, with `weight` of a shape to broadcast."""

    def forward(self: Array, weight: Array): ...

    def grad_self(grad, self, weight, xp):
        return xp.prelu_backward(grad, self, weight)

    def grad_weight(grad, self, xp):
        return xp.zero_where(grad * self, self > 0)


@operator(kernel=kernels.prelu_backward, namespace=None, method=(), node="PreluKernelBackwardBackward0")
class prelu_backward:
    """The derivative of `prelu` by its input, times `grad_output`."""

    def forward(grad_output: Array, self: Array, weight: Array): ...

    def grad_grad_output(grad, self, weight, xp):
        return xp.prelu_backward(grad, self, weight)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)

    def grad_weight(grad, grad_output, self, xp):
        return xp.zero_where(grad * grad_output, self > 0)


@public(method=True, numpy_names=True)
def prelu(input, weight):
    """`input` where positive, else `weight * input`, with one weight for all or one for each channel (dimension 1).

    Raises:
        RuntimeError: if the number of weights is neither one nor that of the channels.
    """
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.scalar_type} and {weight.dtype.scalar_type}"
        )
    shape = input._array.shape
    if weight._array.size != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if weight._array.size != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. "
                f"Found parameter numbers = {weight._array.size} and channel size = {channels}."
            )
    if weight._array.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight._array.ndim}"
        )
    if weight._array.ndim != len(shape):
        weight = weight.reshape((1, -1, *[1] * (len(shape) - 2)) if len(shape) > 1 else (-1,) if shape else ())
    return prelu_kernel(input, weight)


@public(namespace=None, on_arrays=kernels.halves)
def halves(input, dim):
    """The first and the second half of `input` along `dim`."""
    size = input._array.shape[dim] // 2
    return input.narrow(dim, 0, size), input.narrow(dim, size, size)


@public(namespace=None, on_arrays=kernels.joined)
def joined(first, second, dim):
    """The two halves put together again."""
    return tensors.cat([first, second], dim)


@operator(namespace="functional", method=())
class glu:
    """The first half of `input` along `dim` times the sigmoid of the second (Dauphin et al., 2017)."""

    def forward(self: Array, dim=-1):
        return kernels.glu(self, wrap_dim(dim, self.ndim))

    def grad_self(grad, self, dim, xp):
        first, second = xp.halves(self, dim)
        sigmoid = xp.sigmoid(second)
        return xp.joined(grad * sigmoid.conj(), grad * (first * sigmoid * (1 - sigmoid)).conj(), dim)


@operator(namespace=None, method=(), inplace=True, node="RreluWithNoiseBackward0", out=False)
class rrelu_with_noise:
    """`input * noise`: `noise` is 1 where the input is positive, elsewhere the slope drawn for the element."""

    def forward(self: Array, noise: Array):
        return self * noise

    def grad_self(grad, self, noise, xp):
        return xp.rrelu_backward(grad, self, noise)


@operator(namespace=None, method=(), node="RreluWithNoiseBackwardBackward0")
class rrelu_backward:
    """The derivative of `rrelu_with_noise` times `grad_output`."""

    def forward(grad_output: Array, self: Array, noise: Array):
        return grad_output * noise

    def grad_grad_output(grad, self, noise, xp):
        return xp.rrelu_backward(grad, self, noise)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@operator(kernel=kernels.leaky_relu, namespace=None, method=(), inplace=True, node="RreluWithNoiseBackward0", out=False)
class rrelu_mean:
    """`rrelu` outside training: the slope is the mean of the bounds."""

    def forward(self: Array, negative_slope): ...

    def grad_self(grad, self, negative_slope, xp):
        return xp.leaky_relu_backward(grad, self, negative_slope, False)


def _rrelu_operator(input, lower, upper, training, generator):
    """The operator that applies, and its second argument."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return rrelu_mean, (lower + upper) / 2
    draws = random_kernels.rand(stream_of(generator), (int((input._array <= 0).sum()),), numpy.dtype(numpy.float64))
    return rrelu_with_noise, wrap(kernels.rrelu_noise(input._array, lower + draws * (upper - lower)))


@public()
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """Leaky ReLU whose slope is drawn from `[lower, upper)` for each element, and is their mean outside training."""
    function, argument = _rrelu_operator(input, lower, upper, training, generator)
    return function(input, argument)


@public()
def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """`rrelu` in place."""
    function, argument = _rrelu_operator(input, lower, upper, training, generator)
    return function.inplace(input, argument)


PUBLIC["functional"].update(
    relu=relu, relu_=relu.inplace, threshold=threshold, threshold_=threshold.inplace, leaky_relu_=leaky_relu_in_place.inplace,
    hardtanh_=hardtanh.inplace, hardsigmoid_=hardsigmoid.inplace, hardswish_=hardswish.inplace, hardshrink=hardshrink,
    elu_=elu_in_place.inplace, selu=selu, selu_=selu_, celu=celu, celu_=celu_, silu_=silu.inplace, mish_=mish.inplace,
    prelu=PUBLIC["torch"]["prelu"], rrelu=rrelu, rrelu_=rrelu_, tanh=tanh, sigmoid=sigmoid,
)  # fmt: skip
PUBLIC["torch"].update(relu_=relu.inplace, threshold_=threshold.inplace)

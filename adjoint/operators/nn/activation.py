"""Activations. Each derivative with kinks or several terms is an operator with a separate derivative."""

from __future__ import annotations

from ...dispatch.annotations import Array, Number
from ...dispatch.decorators import internal, operator, public, publish, tensors
from ...kernels.nn import activation as kernels
from ..declaring.slopes import with_slope
from ..math.pointwise import sigmoid, tanh

# --- pieces of lines ------------------------------------------------------------------------------------------


@operator(kernel=kernels.relu, inplace=True, out=False, tangent="elementwise", public_inplace=True, sparse="values")
class relu:
    """`max(input, 0)`, elementwise; the derivative at 0 is 0.

    >>> import adjoint as torch
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def grad_self(grad, result, xp):
        return xp.threshold_backward(grad, result, 0)


@with_slope(
    kernels.threshold,
    refusal="threshold_cpu",
    kinds="fiu",
    slope={"tangent": "elementwise", "sparse": "arithmetic.threshold_backward"},
    inplace="uniform",
    method=(),
    tangent="elementwise",
)
class threshold:
    """`input` where it is greater than `threshold`, and `value` elsewhere."""

    def forward(self: Array, threshold: Number, value: Number): ...

    def grad_self(grad, self, threshold, xp):
        return xp.where(self <= threshold, 0, grad)


@operator(kernel=kernels.leaky_relu, namespace="functional", inplace=True, tangent="elementwise")
class leaky_relu:
    """`input` where it is positive, and `negative_slope * input` elsewhere."""

    def forward(self: Array, negative_slope: Number = 0.01): ...

    def grad_self(grad, self, negative_slope, xp):
        return xp.leaky_relu_backward(grad, self, negative_slope, False)


@internal(kernels.leaky_relu, inplace=True, node="LeakyReluBackward1", function_name="leaky_relu", batch="elementwise")
class leaky_relu_in_place:
    """`leaky_relu` in place. The node saves the result instead of the input."""

    def forward(self: Array, negative_slope: Number = 0.01): ...

    def grad_self(grad, result, negative_slope, xp):
        return xp.leaky_relu_backward(grad, result, negative_slope, True)


@internal(kernels.leaky_relu_backward, tangent="elementwise")
class leaky_relu_backward:
    """The derivative of `leaky_relu` times `grad_output`."""

    def forward(grad_output: Array, self: Array, negative_slope: Number, self_is_result): ...

    def grad_grad_output(grad, self, negative_slope, self_is_result, xp):
        return xp.leaky_relu_backward(grad, self, negative_slope, self_is_result)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@with_slope(
    kernels.hardtanh, refusal="hardshrink_backward_cpu", namespace="functional", inplace=True, tangent="elementwise"
)
class hardtanh:
    """`input` limited to `[min_val, max_val]`. Unlike in `clamp`, the derivative at the bounds is 0."""

    def forward(self: Array, min_val: Number = -1.0, max_val: Number = 1.0): ...

    def grad_self(grad, self, min_val, max_val, xp):
        return xp.where((self <= min_val) | (self >= max_val), 0, grad)


@with_slope(
    kernels.hardsigmoid, refusal="hardsigmoid_backward", namespace="functional", inplace=True, tangent="elementwise"
)
class hardsigmoid:
    """`min(max(input + 3, 0), 6) / 6`, elementwise."""

    def grad_self(grad, self, xp):
        return xp.where(~((self > -3) & (self < 3)), 0, grad / 6)


@with_slope(
    kernels.hardswish, refusal="hardswish_backward_cpu", namespace="functional", inplace=True, tangent="elementwise"
)
class hardswish:
    """`input * hardsigmoid(input)`, elementwise (Howard et al., 2019)."""

    def grad_self(grad, self, xp):
        return xp.where(self <= -3, 0, xp.where(self < 3, grad * (self / 3 + 0.5), grad))

    def slope_grad_self(grad, grad_output, self, xp):
        return xp.hardswish_double_backward(grad * grad_output, self)


@internal(kernels.hardswish_double_backward, batch="elementwise")
class hardswish_double_backward:
    """The second derivative of `hardswish` times `grad_output`."""

    def forward(grad_output: Array, self: Array): ...

    def grad_grad_output(grad, self, xp):
        return xp.hardswish_double_backward(grad, self)


@with_slope(kernels.hardshrink, refusal="shrink_backward_cpu", same_out=True, tangent="elementwise")
class hardshrink:
    """`input`, but 0 where its magnitude is at most `lambd`."""

    def forward(self: Array, lambd: Number = 0.5): ...

    def grad_self(grad, self, lambd, xp):
        return xp.shrink_backward(grad, self, lambd)


@with_slope(
    kernels.softshrink, refusal="shrink_backward_cpu", namespace="functional", same_out=True, tangent="elementwise"
)
class softshrink:
    """`input` moved towards 0 by `lambd`. The result is 0 where `input` would cross 0."""

    def forward(self: Array, lambd: Number = 0.5): ...

    def grad_self(grad, self, lambd, xp):
        return xp.shrink_backward(grad, self, lambd)


# --- with exponentials ----------------------------------------------------------------------------------------


@operator(kernel=kernels.elu, namespace="functional", inplace=True, tangent="elementwise")
class elu:
    """`scale * input` where `input` is positive, and `scale * alpha * (exp(input_scale * input) - 1)` elsewhere."""

    def forward(self: Array, alpha: Number = 1.0, scale: Number = 1, input_scale: Number = 1): ...

    def grad_self(grad, self, alpha, scale, input_scale, xp):
        return xp.elu_backward(grad, alpha, scale, input_scale, False, self)


@internal(kernels.elu, inplace=True, node="EluBackward1", function_name="elu", batch="elementwise")
class elu_in_place:
    """`elu` in place. The node saves the result instead of the input."""

    def forward(self: Array, alpha: Number = 1.0, scale: Number = 1, input_scale: Number = 1): ...

    def grad_self(grad, result, alpha, scale, input_scale, xp):
        return xp.elu_backward(grad, alpha, scale, input_scale, True, result)


@internal(kernels.elu_backward, tangent="elementwise")
class elu_backward:
    """The derivative of `elu`, computed from its input or its result, times `grad_output`."""

    def forward(
        grad_output: Array, alpha: Number, scale: Number, input_scale: Number, is_result, self_or_result: Array
    ): ...

    def grad_grad_output(grad, alpha, scale, input_scale, is_result, self_or_result, xp):
        return xp.elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)

    def grad_self_or_result(grad, grad_output, alpha, scale, input_scale, is_result, self_or_result, xp):
        return xp.elu_double_backward(grad * grad_output, alpha, scale, input_scale, is_result, self_or_result)


@internal(kernels.elu_double_backward, batch="elementwise")
class elu_double_backward:
    """The derivative of `elu_backward` with respect to its last input, times `grad_output`."""

    def forward(
        grad_output: Array, alpha: Number, scale: Number, input_scale: Number, is_result, self_or_result: Array
    ): ...

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


@internal(kernels.celu, inplace=True, node="CeluBackward0", out=False, function_name="celu", tangent="elementwise")
class celu_of_input:
    """`input` where it is positive, and `alpha * (exp(input / alpha) - 1)` elsewhere."""

    def forward(self: Array, alpha: Number): ...

    def grad_self(grad, self, alpha, xp):
        return xp.elu_backward(grad, alpha, 1, 1 / alpha, False, self)


@internal(kernels.celu, inplace=True, node="CeluBackward1", out=False, function_name="celu", batch="elementwise")
class celu_in_place:
    """`celu` in place. The node saves the result instead of the input."""

    def forward(self: Array, alpha: Number): ...

    def grad_self(grad, result, alpha, xp):
        return xp.elu_backward(grad, alpha, 1, 1 / alpha, True, result)


@public()
def celu(input, alpha=1.0):
    """`input` where it is positive, and `alpha * (exp(input / alpha) - 1)` elsewhere (Barron, 2017)."""
    return celu_of_input(input, _checked_celu(alpha))


@public()
def celu_(input, alpha=1.0):
    """`celu` in place."""
    return celu_in_place.inplace(input, _checked_celu(alpha))


@with_slope(
    kernels.silu,
    refusal="silu_backward_cpu",
    kinds="fc",
    slope={"tangent": "elementwise"},
    namespace="functional",
    inplace=True,
    tangent="elementwise",
)
class silu:
    """`input * sigmoid(input)`, elementwise."""

    real_derivative = "silu"

    def grad_self(grad, self, xp):
        sigmoid = xp.sigmoid(self)
        return grad * (((1 - sigmoid) * self + 1) * sigmoid).conj()

    def slope_grad_self(grad, grad_output, self, xp):
        return xp.silu_double_backward(grad.conj() * grad_output, self)

    def slope_grad_output(grad, self, xp):
        return xp.silu_backward(grad, self.conj())


@internal(kernels.silu_double_backward, batch="elementwise")
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


@with_slope(kernels.mish, refusal="mish_backward_cpu", namespace="functional", inplace=True, tangent="elementwise")
class mish:
    """`input * tanh(softplus(input))`, elementwise (Misra, 2019)."""

    def grad_self(grad, self, xp):
        tanh = kernels.tanh_of_softplus(self)
        return grad * (tanh + self * xp.sigmoid(self) * (1 - tanh * tanh))

    def slope_grad_self(grad, grad_output, self, xp):
        return grad * grad_output * xp.mish_curvature(self)


@public(namespace=None, on_arrays=kernels.mish_curvature)
def mish_curvature(self):
    """The second derivative of `mish` on tensors. `kernels.mish_double_backward` computes it on arrays."""
    tanh, sigmoid = tensors.tanh(softplus(self)), tensors.sigmoid(self)
    return sigmoid * (1 - tanh * tanh) * (2 + self * (1 - sigmoid - 2 * tanh * sigmoid))


@with_slope(
    kernels.softplus,
    refusal="softplus_backward_cpu",
    slope={"tangent": "elementwise"},
    namespace="functional",
    same_out=True,
    tangent="elementwise",
)
class softplus:
    """`log(1 + exp(beta * input)) / beta`, and `input` where `beta * input` is greater than `threshold`."""

    def forward(self: Array, beta: Number = 1, threshold: Number = 20): ...

    def grad_self(grad, self, beta, threshold, xp):
        scaled = self if beta == 1 else self * beta
        return xp.where(scaled > threshold, grad, grad * xp.sigmoid(scaled))

    def slope_grad_self(grad, grad_output, self, beta, threshold, xp):
        return xp.softplus_double_backward(grad * grad_output, self, beta, threshold)


@internal(kernels.softplus_double_backward, batch="elementwise")
class softplus_double_backward:
    """The second derivative of `softplus` times `grad_output`."""

    def forward(grad_output: Array, self: Array, beta: Number, threshold: Number): ...

    def grad_grad_output(grad, self, beta, threshold, xp):
        return xp.softplus_double_backward(grad, self, beta, threshold)

    def grad_self(grad, grad_output, self, beta, threshold, xp):
        bend = beta * (1 - 2 * xp.sigmoid(beta * self))
        return xp.softplus_double_backward(grad * grad_output * bend, self, beta, threshold)


@with_slope(
    kernels.logsigmoid,
    refusal="log_sigmoid_backward_cpu",
    slope={"node": "LogSigmoidBackwardBackward0", "aten_name": "log_sigmoid_backward"},
    namespace="functional",
    node="LogSigmoidBackward0",
    same_out=True,
    tangent="elementwise",
    aten_name="log_sigmoid",
)
class logsigmoid:
    """`log(sigmoid(input))`, elementwise, without overflow."""

    saved_display = {"buffer": lambda node: tensors.exp(-node._saved_self.detach().abs())}

    def grad_self(grad, self, xp):
        return grad * xp.reciprocal(xp.exp(self) + 1)

    def slope_grad_self(grad, grad_output, self, xp):
        sigmoid = xp.sigmoid(self)
        return grad * grad_output * sigmoid * (sigmoid - 1)


# --- the Gaussian error linear unit ---------------------------------------------------------------------------


@operator(kernel=kernels.gelu, namespace="functional", same_out=True, tangent="elementwise")
class gelu:
    """`input * Phi(input)`, elementwise, where Phi is the normal distribution function (Hendrycks and Gimpel, 2016).

    `approximate="tanh"` computes an approximation: `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`.
    """

    def forward(self: Array, *, approximate="none"): ...

    def grad_self(grad, self, approximate, xp):
        return xp.gelu_backward(grad, self, approximate=approximate)


@internal(kernels.gelu_backward, tangent="elementwise")
class gelu_backward:
    """The derivative of `gelu` times `grad_output`."""

    def forward(grad_output: Array, self: Array, *, approximate="none"): ...

    def grad_grad_output(grad, self, approximate, xp):
        return xp.gelu_backward(grad, self, approximate=approximate)

    def grad_self(grad, grad_output, self, approximate, xp):
        return grad * grad_output * xp.gelu_curvature(self, approximate)


@public(namespace=None, on_arrays=kernels.gelu_curvature)
def gelu_curvature(self, approximate):
    """The second derivative of `gelu` on tensors. `kernels.gelu_curvature` computes it on arrays."""
    if approximate == "none":
        return tensors.exp(self * self * -0.5) * kernels.DENSITY_AT_0 * (2 - self * self)
    inner = kernels.TANH_SCALE * (self + kernels.TANH_CUBIC * self * self * self)
    slope = kernels.TANH_SCALE * (1 + 3 * kernels.TANH_CUBIC * self * self)
    tanh, bend = tensors.tanh(inner), 6 * kernels.TANH_SCALE * kernels.TANH_CUBIC * self
    return (1 - tanh * tanh) * (slope + self * (0.5 * bend - tanh * slope * slope))


publish(
    "functional",
    relu=relu,
    relu_=relu.inplace,
    threshold=threshold,
    threshold_=threshold.inplace,
    leaky_relu_=leaky_relu_in_place.inplace,
    hardtanh_=hardtanh.inplace,
    hardsigmoid_=hardsigmoid.inplace,
    hardswish_=hardswish.inplace,
    hardshrink=hardshrink,
    elu_=elu_in_place.inplace,
    selu=selu,
    selu_=selu_,
    celu=celu,
    celu_=celu_,
    silu_=silu.inplace,
    mish_=mish.inplace,
    tanh=tanh,
    sigmoid=sigmoid,
)
publish("torch", relu_=relu.inplace, threshold_=threshold.inplace)

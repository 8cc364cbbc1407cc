"""Activations with a second input: a learned weight, a gate, or a random slope."""

from __future__ import annotations

import numpy

from ...dispatch.annotations import Array, Int, Number
from ...dispatch.array_functions import computed
from ...dispatch.decorators import PUBLIC, internal, operator, public, publish, tensors
from ...dispatch.sequential import has_elements
from ...kernels.create import random as random_kernels
from ...kernels.nn import activation as kernels
from ..create.random import stream_of


@internal(kernels.prelu, out=False, function_name="prelu", batch="elementwise")
class prelu_kernel:
    """`input` where it is positive, and `weight * input` elsewhere. The shape of `weight` broadcasts."""

    def forward(self: Array, weight: Array): ...

    def grad_self(grad, self, weight, xp):
        return xp.prelu_backward(grad, self, weight)

    def grad_weight(grad, self, xp):
        return xp.zero_where(grad * self, self > 0)


@internal(
    kernels.prelu_backward, node="PreluKernelBackwardBackward0", batch="elementwise", aten_name="_prelu_kernel_backward"
)
class prelu_backward:
    """The derivative of `prelu` with respect to its input, times `grad_output`."""

    def forward(grad_output: Array, self: Array, weight: Array): ...

    def grad_grad_output(grad, self, weight, xp):
        return xp.prelu_backward(grad, self, weight)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)

    def grad_weight(grad, grad_output, self, xp):
        return xp.zero_where(grad * grad_output, self > 0)


@public(method=True, numpy_names=True)
def prelu(input, weight):
    """`input` where it is positive, and `weight * input` elsewhere.

    There is one weight, or one for each channel (dimension 1).

    Raises:
        RuntimeError: if the number of weights is neither one nor the number of channels.
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


@public(namespace=None, on_arrays=kernels.glu_backward)
def glu_backward(grad, input, dim):
    """The gradient of `glu` for both halves of `input` along `dim`."""
    size = input._array.shape[dim] // 2
    first, sigmoid = input.narrow(dim, 0, size), input.narrow(dim, size, size).sigmoid()
    return tensors.cat([grad * sigmoid.conj(), grad * (first * sigmoid * (1 - sigmoid)).conj()], dim)


@operator(kernel=kernels.glu, namespace="functional")
class glu:
    """The first half of `input` along `dim` times the sigmoid of the second half (Dauphin et al., 2017)."""

    aten_gradients = {"self": "glu_backward(grad, self, dim)"}

    def forward(self: Array, dim: Int = -1): ...

    def grad_self(grad, self, dim, xp):
        return xp.glu_backward(grad, self, dim)


@internal(kernels.rrelu_with_noise, inplace=True, out=False, function_name="rrelu")
class rrelu_with_noise:
    """`input * noise`. `noise` is 1 where the input is positive, and the slope drawn for the element elsewhere."""

    def forward(self: Array, noise: Array): ...

    def grad_self(grad, self, noise, xp):
        return xp.rrelu_backward(grad, self, noise)


rrelu_with_noise.operator.random = True


@internal(kernels.rrelu_backward, node="RreluWithNoiseBackwardBackward0", batch="elementwise")
class rrelu_backward:
    """The derivative of `rrelu_with_noise` times `grad_output`."""

    def forward(grad_output: Array, self: Array, noise: Array): ...

    def grad_grad_output(grad, self, noise, xp):
        return xp.rrelu_backward(grad, self, noise)

    def grad_self(grad, xp):
        return xp.zeros_like(grad)


@internal(kernels.rrelu_mean, node="RreluWithNoiseBackward0", out=False, function_name="rrelu", batch="elementwise")
class rrelu_mean:
    """`rrelu` outside training. The slope is the mean of the bounds."""

    def forward(self: Array, negative_slope: Number): ...

    def grad_self(grad, self, negative_slope, xp):
        return xp.leaky_relu_backward(grad, self, negative_slope, False)


@internal(
    kernels.rrelu_mean,
    inplace=True,
    node="RreluWithNoiseBackward1",
    out=False,
    function_name="rrelu",
    batch="elementwise",
)
class rrelu_mean_in_place:
    """`rrelu_mean` in place. The node saves the result instead of the input."""

    def forward(self: Array, negative_slope: Number): ...

    def grad_self(grad, result, negative_slope, xp):
        return xp.leaky_relu_backward(grad, result, negative_slope, True)


def _rrelu_operator(input, lower, upper, training, generator, mean):
    """Return the operator for these arguments, and its second argument. `mean` is the operator outside training."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return mean, (lower + upper) / 2
    if not has_elements(input):
        slopes = tensors.rand_like(input) * (upper - lower) + lower
        return rrelu_with_noise, tensors.where(input <= 0, slopes, tensors.ones_like(slopes))
    return rrelu_with_noise, computed(_drawn_noise, input._array, lower, upper, generator, keeps=True)


def _drawn_noise(array, lower, upper, generator):
    draws = random_kernels.uniform_(stream_of(generator), numpy.empty(int((array <= 0).sum())))
    return kernels.rrelu_noise(array, lower + draws * (upper - lower))


@public()
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training: bool = False, generator=None):
    """Leaky ReLU with a random slope from `[lower, upper)` for each element in training, and with the mean slope otherwise."""
    function, argument = _rrelu_operator(input, lower, upper, training, generator, rrelu_mean)
    return function(input, argument)


@public()
def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training: bool = False, generator=None):
    """`rrelu` in place."""
    function, argument = _rrelu_operator(input, lower, upper, training, generator, rrelu_mean_in_place)
    return function.inplace(input, argument)


publish("functional", prelu=PUBLIC["torch"]["prelu"], rrelu=rrelu, rrelu_=rrelu_)

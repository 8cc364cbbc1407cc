"""Convolutions in one to three dimensions, and transposed ones.

Three operators are each other's derivatives: the convolution, the gradient of its input, the gradient of its weight. A transposed
convolution is the second of them.
"""

from __future__ import annotations

from typing import Any

from ..kernels import convolution as kernels
from .build import operator, public, tensors


@operator(
    kernel=kernels.conv_forward,
    namespace=None,
    method=False,
    out=False,
    name="convolution",
    node="ConvolutionBackward0",
)
class convolution:
    """`input` (N, C, spatial) convolved with `weight` (out, C / groups, kernel), plus `bias` (out)."""

    def forward(input: Array, weight: Array, bias: Array | None, stride, padding, dilation, groups): ...

    def grad_input(grad, input_shape, weight, stride, padding, dilation, groups, xp):
        return xp.conv_input_grad(grad, weight, tuple(input_shape), stride, padding, dilation, groups)

    def grad_weight(grad, input, weight_shape, stride, padding, dilation, groups, xp):
        return xp.conv_weight_grad(grad, input, tuple(weight_shape), stride, padding, dilation, groups)

    def grad_bias(grad, xp):
        return _channel_sums(grad, xp)


def _channel_sums(grad, xp):
    return xp.sum(grad, (0, *range(2, len(grad.shape))), False)


@operator(kernel=kernels.conv_input_grad, namespace=None, method=False, out=False, node="ConvolutionBackwardBackward0")
class conv_input_grad:
    """The gradient of the input of a convolution; as an operation of its own, a transposed convolution."""

    def forward(self: Array, weight: Array, input_shape, stride, padding, dilation, groups): ...

    def grad_self(grad, weight, stride, padding, dilation, groups, xp):
        return xp.convolution(grad, weight, None, stride, padding, dilation, groups)

    def grad_weight(grad, self, weight_shape, stride, padding, dilation, groups, xp):
        return xp.conv_weight_grad(self, grad, tuple(weight_shape), stride, padding, dilation, groups)


@operator(namespace=None, method=False, out=False, node="ConvolutionBackward0")
class transposed_convolution:
    """The transpose of a convolution, plus `bias`."""

    def forward(input: Array, weight: Array, bias: Array | None, output_shape, stride, padding, dilation, groups):
        result = kernels.conv_input_grad(input, weight, output_shape, stride, padding, dilation, groups)
        return result if bias is None else result + bias.reshape((-1,) + (1,) * len(stride))

    def grad_input(grad, weight, stride, padding, dilation, groups, xp):
        return xp.convolution(grad, weight, None, stride, padding, dilation, groups)

    def grad_weight(grad, input, weight_shape, stride, padding, dilation, groups, xp):
        return xp.conv_weight_grad(input, grad, tuple(weight_shape), stride, padding, dilation, groups)

    def grad_bias(grad, xp):
        return _channel_sums(grad, xp)


@operator(kernel=kernels.conv_weight_grad, namespace=None, method=False, out=False, node="ConvolutionBackwardBackward0")
class conv_weight_grad:
    """The gradient of the weight of a convolution."""

    def forward(grad_output: Array, input: Array, weight_shape, stride, padding, dilation, groups): ...

    def grad_grad_output(grad, input, stride, padding, dilation, groups, xp):
        return xp.convolution(input, grad, None, stride, padding, dilation, groups)

    def grad_input(grad, grad_output, input_shape, stride, padding, dilation, groups, xp):
        return xp.conv_input_grad(grad_output, grad, tuple(input_shape), stride, padding, dilation, groups)


# --- the functions --------------------------------------------------------------------------------------------


def per_dimension(value: Any, count: int, name: str) -> tuple[int, ...]:
    """`value`, a number or a sequence, as one number for each of `count` dimensions."""
    if isinstance(value, int):
        return (value,) * count
    values = tuple(value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match the convolution dimensions, but "
            f"got {name}={list(values)}"
        )
    return values


def _check(function, input, weight, bias, stride, padding, dilation, groups, count, transposed=False):
    shape, wshape = input._array.shape, weight._array.shape
    if any(step <= 0 for step in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(step <= 0 for step in dilation):
        raise RuntimeError("dilation should be greater than zero")
    if any(width < 0 for width in padding):
        raise RuntimeError("negative padding is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if wshape[0] % groups or wshape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be {'divisible by' if wshape[0] >= groups else 'at least'} {groups} at "
            f"dimension 0, but got weight of size [{list(wshape)}] instead"
        )
    channels = wshape[0] if transposed else wshape[1] * groups
    if shape[1] != channels:
        raise RuntimeError(
            f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {list(wshape)}, expected "
            f"input{list(shape)} to have {channels} channels, but got {shape[1]} channels instead"
        )
    out_channels = wshape[1] * groups if transposed else wshape[0]
    if bias is not None and bias._array.shape != (out_channels,):
        kind = "transposed=1, weight" if transposed else "weight"
        raise RuntimeError(
            f"Given {kind} of size {list(wshape)}, expected bias to be 1-dimensional with {out_channels} elements, but "
            f"got bias of size {list(bias._array.shape)} instead"
        )
    for other in (weight, bias):
        if other is not None and other._array.dtype != input._array.dtype:
            raise RuntimeError(f"expected scalar type {input.dtype.scalar_type} but found {other.dtype.scalar_type}")
    if transposed:
        return
    padded = [size + 2 * width for size, width in zip(shape[2:], padding, strict=True)]
    spans = [step * (size - 1) + 1 for size, step in zip(wshape[2:], dilation, strict=True)]
    if any(size < span for size, span in zip(padded, spans, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, spans))}). Kernel size can't be greater than actual input size"
        )


def _batched(function, input, count):
    """`input` with a batch dimension, and whether it had none."""
    ndim = input._array.ndim
    if ndim == count + 2:
        return input, False
    if ndim == count + 1:
        return input.unsqueeze(0), True
    raise RuntimeError(
        f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {function}, but got input of size: "
        f"{list(input._array.shape)}"
    )


def _same_padding(input, weight, stride, dilation, count):
    """The padding that keeps sizes, and the input padded by one more at the end where that is uneven."""
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [step * (size - 1) for size, step in zip(weight._array.shape[2:], dilation, strict=True)]
    if any(total % 2 for total in totals):
        extra = [width for total in reversed(totals) for width in (0, total % 2)]
        input = tensors.constant_pad_nd(input, tuple(extra), 0)
    return input, tuple(total // 2 for total in totals)


def _conv(count):
    name = f"conv{count}d"

    def function(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        input, single = _batched(name, input, count)
        stride = per_dimension(stride, weight._array.ndim - 2, "stride")
        dilation = per_dimension(dilation, weight._array.ndim - 2, "dilation")
        if isinstance(padding, str):
            if padding == "same":
                input, padding = _same_padding(input, weight, stride, dilation, count)
            elif padding == "valid":
                padding = (0,) * count
            else:
                raise RuntimeError(f"Invalid padding string: '{padding}'")
        else:
            padding = per_dimension(padding, weight._array.ndim - 2, "padding")
        _check(name, input, weight, bias, stride, padding, dilation, groups, count)
        result = convolution(input, weight, bias, stride, padding, dilation, groups)
        return result.squeeze(0) if single else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The convolution over {count} dimension{'s' if count > 1 else ''} of `input` (N, C, ...) with `weight` (out, "
        f"C / groups, ...); `padding` may be 'same' or 'valid'. Without N for a single sample."
    )
    return public(namespace="torch")(function)


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


def _conv_transpose(count):
    name = f"conv_transpose{count}d"

    def function(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        input, single = _batched(name, input, count)
        stride = per_dimension(stride, count, "stride")
        dilation = per_dimension(dilation, count, "dilation")
        padding = per_dimension(padding, count, "padding")
        extra = per_dimension(output_padding, count, "output_padding")
        _check(name, input, weight, bias, stride, padding, dilation, groups, count, transposed=True)
        if any(more >= max(step, gap) for more, step, gap in zip(extra, stride, dilation, strict=True)):
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got output_padding: {list(extra)} stride: "
                f"{list(stride)} dilation: {list(dilation)}"
            )
        sizes = [
            (size - 1) * step - 2 * width + gap * (kernel - 1) + more + 1
            for size, step, width, gap, kernel, more in zip(
                input._array.shape[2:], stride, padding, dilation, weight._array.shape[2:], extra, strict=True
            )
        ]
        shape = (input._array.shape[0], weight._array.shape[1] * groups, *sizes)
        result = transposed_convolution(input, weight, bias, shape, stride, padding, dilation, groups)
        return result.squeeze(0) if single else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The transposed convolution over {count} dimension{'s' if count > 1 else ''} of `input` (N, C, ...) with "
        "`weight` (C, out / groups, ...): the gradient of a convolution with respect to its input."
    )
    return public(namespace="torch")(function)


conv_transpose1d, conv_transpose2d, conv_transpose3d = _conv_transpose(1), _conv_transpose(2), _conv_transpose(3)

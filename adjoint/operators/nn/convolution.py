"""Convolutions and transposed convolutions in one to three dimensions.

Three operators are derivatives of each other: the convolution, the gradient of its input, and the gradient of its
weight. A transposed convolution is the gradient of the input.
"""

from __future__ import annotations

import functools
import operator as python
from typing import Any

from ..._runtime.tracebacks import warn
from ...codegen.recording import recordable
from ...dispatch.annotations import Array
from ...dispatch.arguments import invalid_arguments, require
from ...dispatch.decorators import internal, public, tensors
from ...dtypes import C_NAMES
from ...kernels.nn import convolution as kernels
from ...kernels.runtime.layout import like_images
from ...tensor import Tensor


@recordable
def _convolved(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if not transposed:
        result = kernels.conv_forward(input, weight, bias, stride, padding, dilation, groups)
        return like_images(result, input, weight)
    sizes = transposed_sizes(input.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    shape = (input.shape[0], weight.shape[1] * groups, *sizes)
    return like_images(kernels.transposed(input, weight, bias, shape, stride, padding, dilation, groups), input, weight)


def transposed_sizes(sizes, kernel, stride, padding, dilation, output_padding):
    """Return the spatial sizes of a transposed convolution's result."""
    return tuple(
        (size - 1) * step - 2 * width + gap * (length - 1) + more + 1
        for size, length, step, width, gap, more in zip(
            sizes, kernel, stride, padding, dilation, output_padding, strict=True
        )
    )


@internal(_convolved, out=False, narrow="halves")
class convolution:
    """`input` (N, C, spatial) convolved with `weight` (out, C / groups, kernel), plus `bias` (out).

    The transposed convolution is the gradient of the input, for a `weight` of shape (C, out / groups, kernel).
    """

    saved_display = {"bias_sym_sizes": None, "bias_sym_sizes_opt": lambda node: node.saved_bias_shape or (0,)}

    aten_gradients = (
        "convolution_backward(grad, input, weight, bias_shape or (0,), stride, padding, dilation, transposed, output_padding, "
        "groups, needs)"
    )

    def forward(
        input: Array, weight: Array, bias: Array | None, stride, padding, dilation, transposed, output_padding, groups
    ): ...

    def grad_input(grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, xp):
        if transposed:
            zeros = (0,) * len(stride)
            result = xp.convolution(grad, weight.conj(), None, stride, padding, dilation, False, zeros, groups)
            return _cropped(result, tuple(input.shape))
        return xp.conv_input_grad(grad, weight.conj(), tuple(input.shape), stride, padding, dilation, groups)

    def grad_weight(grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, xp):
        if transposed:
            return xp.conv_weight_grad(input.conj(), grad, tuple(weight.shape), stride, padding, dilation, groups)
        return xp.conv_weight_grad(grad, input.conj(), tuple(weight.shape), stride, padding, dilation, groups)

    def grad_bias(grad, bias_shape, xp):
        sums = xp.sum(grad, (0, *range(2, len(grad.shape))), False)
        return sums if grad.shape[1] else xp.constant_pad_nd(sums, (0, *bias_shape), 0)

    def batch(op, batch, image, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
        """Move a batch of images into the samples, and a batch of kernels into groups of channels."""
        rest = (stride, padding, dilation, transposed, output_padding)
        size = batch.size
        if not size:
            return None
        if not batch.has(weight) and not batch.has(image):
            result = convolution(image, weight, None, *rest, groups).unsqueeze(0)
        elif not batch.has(weight):
            first = batch.first(image)
            shared = None if batch.has(bias) else bias
            result = convolution(first.flatten(0, 1), weight, shared, *rest, groups)
            result = result.reshape((size, result.shape[0] // size, *result.shape[1:]))
        else:
            images = batch.expanded(image).transpose(0, 1)
            images = images.flatten(1, 2)
            filters = batch.first(weight)
            filters = filters.flatten(0, 1)
            result = convolution(images, filters, None, *rest, groups * size)
            result = result.unflatten(1, (size, result.shape[1] // size)).transpose(0, 1)
            if bias is not None and not batch.has(bias):
                result = result + bias.reshape((-1,) + (1,) * (result._array.ndim - 3))
        if batch.has(bias):
            result = result + batch.first(bias).reshape((size, 1, -1) + (1,) * (result._array.ndim - 3))
        return result


def _cropped(x, shape):
    """Return `x` without the elements that output padding has added at the end."""
    return x if tuple(x.shape) == shape else x[tuple(map(slice, shape))]


def _batch_in_channels(tensor):
    """Move the batch dimension of images (B, N, C, ...) into the channels: (N, B C, ...)."""
    return tensor.transpose(0, 1).flatten(1, 2)


@internal(
    kernels.conv_input_grad, out=False, node="ConvolutionBackwardBackward0", tangent="multilinear", narrow="halves"
)
class conv_input_grad:
    """The gradient of the input of a convolution. This operation is a transposed convolution."""

    def forward(self: Array, weight: Array, input_shape, stride, padding, dilation, groups): ...

    def grad_self(grad, self_shape, weight, stride, padding, dilation, groups, xp):
        zeros = (0,) * len(stride)
        result = xp.convolution(grad, weight.conj(), None, stride, padding, dilation, False, zeros, groups)
        return _cropped(result, tuple(self_shape))

    def grad_weight(grad, self, weight_shape, stride, padding, dilation, groups, xp):
        return xp.conv_weight_grad(self.conj(), grad, tuple(weight_shape), stride, padding, dilation, groups)

    def batch(op, batch, grad, weight, shape, stride, padding, dilation, groups):
        size = batch.size
        gradients = batch.expanded(grad)
        if not gradients._array.size:
            return None
        rest = (stride, padding, dilation)
        if not batch.has(weight):
            joined = (size * shape[0], *shape[1:])
            result = op.apply(gradients.flatten(0, 1), weight, joined, *rest, groups)
            return result.unflatten(0, (size, shape[0]))
        joined = (shape[0], size * shape[1], *shape[2:])
        filters = batch.first(weight).flatten(0, 1)
        result = op.apply(_batch_in_channels(gradients), filters, joined, *rest, groups * size)
        return result.unflatten(1, (size, result.shape[1] // size)).transpose(0, 1)


@internal(
    kernels.conv_weight_grad, out=False, node="ConvolutionBackwardBackward0", tangent="multilinear", narrow="halves"
)
class conv_weight_grad:
    """The gradient of the weight of a convolution."""

    def forward(grad_output: Array, input: Array, weight_shape, stride, padding, dilation, groups): ...

    def grad_grad_output(grad, grad_output_shape, input, stride, padding, dilation, groups, xp):
        zeros = (0,) * len(stride)
        result = xp.convolution(input.conj(), grad, None, stride, padding, dilation, False, zeros, groups)
        return _cropped(result, tuple(grad_output_shape))

    def grad_input(grad, grad_output, input_shape, stride, padding, dilation, groups, xp):
        return xp.conv_input_grad(grad_output.conj(), grad, tuple(input_shape), stride, padding, dilation, groups)

    def batch(op, batch, grad, image, shape, stride, padding, dilation, groups):
        size = batch.size
        gradients, images = batch.expanded(grad), batch.expanded(image)
        if not gradients._array.size or not images._array.size:
            return None
        rest = (stride, padding, dilation, groups * size)
        joined = (size * shape[0], *shape[1:])
        result = op.apply(_batch_in_channels(gradients), _batch_in_channels(images), joined, *rest)
        return result.unflatten(0, (size, shape[0]))


# --- the functions --------------------------------------------------------------------------------------------


def _per_dimension(values: tuple[int, ...], count: int, name: str) -> tuple[int, ...]:
    """Return `values`, which has one or `count` numbers, as `count` numbers."""
    if len(values) == count:
        return values
    if len(values) == 1:
        return values * count
    raise RuntimeError(
        f"expected {name} to be a single integer value or a list of {count} values to match the convolution dimensions, but "
        f"got {name}={list(values)}"
    )


def _integers(value: Any, count: int) -> tuple[int, ...] | None:
    """Return a number or a sequence of numbers as a tuple, or None for anything else. A number gives `count` elements."""
    if type(value) is int:
        return (value,) * count
    if isinstance(value, bool):
        return None
    if isinstance(value, (tuple, list)):
        return tuple(map(python.index, value)) if all(_integers(item, 1) is not None for item in value) else None
    return (python.index(value),) * count if hasattr(value, "__index__") else None


@functools.lru_cache(1024)
def _geometry(shape, wshape, bshape, stride, padding, dilation, transposed, output_padding, groups):
    """Return stride, padding, dilation and output padding for each dimension, if they fit the input."""
    count = len(wshape) - 2
    if count < 1:
        raise RuntimeError("weight should have at least three dimensions")
    stride = _per_dimension(stride, count, "stride")
    dilation = _per_dimension(dilation, count, "dilation")
    padding = _per_dimension(padding, count, "padding")
    output_padding = _per_dimension(output_padding, count, "output_padding")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if min(dilation) <= 0:
        raise RuntimeError("dilation should be greater than zero")
    if len(shape) != len(wshape):
        raise _wrong_ndim(shape, wshape, " ")
    _check_channels(shape, wshape, bshape, transposed, groups)
    if not transposed:
        _check_kernel(shape, wshape, padding, dilation)
    if 0 in shape[2:] and (transposed or 0 not in shape[:2]):
        sizes = [*shape[:2], 1, shape[2]] if count == 1 else list(shape)
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {sizes}")
    if 0 in wshape[2:]:
        height, width = (1, *wshape[2:])[-2:]
        kernel = f" kernel_height: {height} kernel_width: {width}"
        if count > 2:
            kernel = f": {' x '.join(map(str, wshape[2:]))} (TxHxW)"
        raise RuntimeError(f"kernel size should be greater than zero, but got{kernel}")
    if not transposed:
        return stride, padding, dilation, output_padding
    if any(more >= max(step, gap) for more, step, gap in zip(output_padding, stride, dilation, strict=True)):
        axes = {1: ("height", "width"), 2: ("height", "width"), 3: ("depth", "height", "width")}[count]
        ones = (1,) * (len(axes) - count)
        shown = " ".join(
            f"{name}_{axis}: {value}"
            for name, values in (
                ("output_padding", (0,) * len(ones) + output_padding), ("stride", ones + stride), ("dilation", ones + dilation),
            )
            for axis, value in zip(axes, values, strict=True)
        )  # fmt: skip
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {shown}")
    return stride, padding, dilation, output_padding


def _wrong_ndim(shape, wshape, space):
    return RuntimeError(
        f"Expected {len(wshape)}-dimensional input for {len(wshape)}-dimensional weight{space}{list(wshape)}, but got "
        f"{len(shape)}-dimensional input of size {list(shape)} instead"
    )


def _check_channels(shape, wshape, bshape, transposed, groups):
    if wshape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(wshape)} instead"
        )
    if wshape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"[{list(wshape)}] instead"
        )
    channels = wshape[0] if transposed else wshape[1] * groups
    if shape[1] != channels:
        raise RuntimeError(
            f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {list(wshape)}, expected "
            f"input{list(shape)} to have {channels} channels, but got {shape[1]} channels instead"
        )
    out_channels = wshape[1] * groups if transposed else wshape[0]
    if bshape is not None and bshape != (out_channels,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(wshape)}, expected bias to be 1-dimensional "
            f"with {out_channels} elements, but got bias of size {list(bshape)} instead"
        )


def _check_kernel(shape, wshape, padding, dilation):
    padded = [size + 2 * width for size, width in zip(shape[2:], padding, strict=True)]
    spans = [step * (size - 1) + 1 for size, step in zip(wshape[2:], dilation, strict=True)]
    if any(size < span for size, span in zip(padded, spans, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, spans))}). Kernel size can't be greater than actual input size"
        )


def _check_types(input, weight, bias, transposed, dilation):
    kind, names = input._array.dtype, {"bias": bias, "weight": weight}
    dims, dilated = len(dilation), max(dilation) > 1
    if kind.kind == "b" or (kind.kind in "iu" and kind.itemsize < 8 and (transposed or dilated)):
        name = "slow_conv_dilated<>" if dilated else "compute_columns3d" if dims == 3 else "slow_conv2d_cpu"
        if transposed:
            name = f"slow_conv_transpose{max(dims, 2)}d_out_cpu"
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.scalar_type}'")
    for name, other in names.items():
        if other is None or other._array.dtype == kind:
            continue
        if name == "bias" and not transposed:
            raise RuntimeError(
                f"Input type ({C_NAMES[input.dtype]}) and bias type ({C_NAMES[other.dtype]}) should be the same"
            )
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_type} but found {other.dtype.scalar_type}")


def _batched(function, input, count):
    """Return `input` with a batch dimension, and whether the dimension was added."""
    ndim = input._array.ndim
    if ndim == count + 2:
        return input, False
    if ndim == count + 1:
        return input.unsqueeze(0), True
    raise RuntimeError(
        f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {function}, but got input of size: "
        f"{list(input._array.shape)}"
    )


def _same_padding(input, weight, stride, dilation):
    """Return the padding that preserves sizes, and the input, padded by one element first if the padding is uneven."""
    shape, wshape = input._array.shape, weight._array.shape
    if len(shape) != len(wshape):
        raise _wrong_ndim(shape, wshape, "")
    sizes = wshape[2:]
    if any(step != 1 for step in _per_dimension(stride, len(sizes), "stride")):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    dilation = _per_dimension(dilation, len(sizes), "dilation")
    totals = [step * (size - 1) for size, step in zip(sizes, dilation, strict=True)]
    if any(total % 2 for total in totals):
        warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be "
            "created"
        )
        extra = [width for total in reversed(totals) for width in (0, total % 2)]
        input = tensors.constant_pad_nd(input, tuple(extra), 0)
    return input, tuple(total // 2 for total in totals)


def _applied(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Check the arguments and return the convolution."""
    array, kernel, added = input._array, weight._array, None if bias is None else bias._array
    stride, padding, dilation, output_padding = _geometry(
        array.shape, kernel.shape, None if added is None else added.shape, stride, padding, dilation, transposed,
        output_padding, groups,
    )  # fmt: skip
    kind = array.dtype
    if kind is not kernel.dtype or (added is not None and kind is not added.dtype) or kind.kind in "biu":
        _check_types(input, weight, bias, transposed, dilation)
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _conv(count):
    name = f"conv{count}d"

    def function(input=None, weight=None, bias=None, stride=1, padding=0, dilation=1, groups=1):
        by, gap = _integers(stride, count), _integers(dilation, count)
        around = padding if isinstance(padding, str) else _integers(padding, count)
        fits = isinstance(input, Tensor) and isinstance(weight, Tensor) and (bias is None or isinstance(bias, Tensor))
        if not fits or by is None or around is None or gap is None or type(groups) is not int:
            given = [input, weight, bias, stride, padding, dilation, groups]
            while len(given) > 2 and given[-1] is defaults[len(given) - 1]:
                del given[-1]
            raise invalid_arguments(name, *given)
        batch, single = _batched(name, input, count)
        if around == "same":
            batch, around = _same_padding(batch, weight, by, gap)
        elif around == "valid":
            around = (0,) * count
        elif isinstance(around, str):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        result = _applied(batch, weight, bias, by, around, gap, False, (0,) * count, groups)
        return result.squeeze(0) if single else result

    defaults = function.__defaults__ or ()
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The convolution over {count} dimension{'s' if count > 1 else ''} of `input` (N, C, ...) with `weight` (out, C / "
        f"groups, ...); `padding` may be 'same' or 'valid'. Without N for a single sample."
    )
    forms = tuple(
        f"Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, {around}, tuple of ints dilation = 1, "
        "int groups = 1"
        for around in ("tuple of ints padding = 0", 'str padding = "valid"')
    )
    return public(namespace="torch", forms=forms)(function)


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


def _conv_transpose(count):
    name = f"conv_transpose{count}d"

    def function(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        for position, (argument, value) in enumerate((("input", input), ("weight", weight), ("bias", bias)), 1):
            if value is not None or argument != "bias":
                require("Tensor", value, name, argument, position)
        given = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
        by, around, extra, gap = [_integers(value, count) for value in given.values()]
        if by is None or around is None or extra is None or gap is None:
            argument, value = next((name, value) for name, value in given.items() if _integers(value, count) is None)
            raise TypeError(f"{name}(): argument '{argument}' must be tuple of ints, not {type(value).__name__}")
        require("Int", groups, name, "groups")
        batch, single = _batched(name, input, count)
        result = _applied(batch, weight, bias, by, around, gap, True, extra, groups)
        return result.squeeze(0) if single else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The transposed convolution over {count} dimension{'s' if count > 1 else ''} of `input` (N, C, ...) with `weight` (C, "
        "out / groups, ...): the gradient of a convolution with respect to its input."
    )
    return public(namespace="torch")(function)


conv_transpose1d, conv_transpose2d, conv_transpose3d = _conv_transpose(1), _conv_transpose(2), _conv_transpose(3)


@public(name="convolution")
def convolution_of_any_kind(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """A convolution, or a transposed convolution, over the dimensions of `weight` other than channels.

    Options have one number per dimension.

    >>> import adjoint as torch
    >>> torch.convolution(torch.ones(1, 1, 4), torch.ones(1, 1, 2), None, (2,), (0,), (1,), False, (0,), 1)
    tensor([[[2., 2.]]])
    """
    given = {
        4: ("stride", stride),
        5: ("padding", padding),
        6: ("dilation", dilation),
        8: ("output_padding", output_padding),
    }
    for position, (name, value) in given.items():
        require("Ints", value, "convolution", name, position)
    by, around, gap, extra = (tuple(value) for _, value in given.values())
    return _applied(input, weight, bias, by, around, gap, transposed, extra, groups)

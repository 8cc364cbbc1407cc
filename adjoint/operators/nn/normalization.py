"""Normalization over a batch, a layer or groups of channels."""

from __future__ import annotations

import math
from operator import index

from ... import dtypes
from ...array_attributes import wrap_dim
from ...aten.torch_dispatch import is_watched
from ...codegen.kernel import Kernel
from ...codegen.recording import recordable
from ...dispatch.annotations import Array
from ...dispatch.array_functions import computed
from ...dispatch.decorators import internal, public, tensors
from ...dispatch.out import SCALAR_TYPE, all_stored
from ...dispatch.sequential import is_readable
from ...dispatch.steps.promote import check_constant
from ...kernels.nn import normalization as kernels
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.layout import following_images
from ...kernels.runtime.meta_array import Meta
from ...tape import modes
from ...tensor import Tensor, wrap
from ..linalg.matmul import check_tensors

# --- over the batch -------------------------------------------------------------------------------------------


@public(namespace=None, on_arrays=kernels.batch_norm_gradients)
def batch_norm_gradients(grad, input, weight, mean, invstd, running_mean, running_var, training, eps, needs):
    """The gradients of input, weight and bias. In training, the statistics are computed again as functions of the input."""
    dims = (0, *range(2, input._array.ndim))
    if training:
        mean = input.mean(dims)
        invstd = (input.var(dims, correction=0) + eps).rsqrt()
    else:
        mean, invstd = running_mean, (running_var + eps).rsqrt()
    shape = (1, -1, *(1,) * (len(input.shape) - 2))
    count = math.prod(input.shape[dim] for dim in dims)
    invstd = invstd.reshape(shape)
    normalized = (input - mean.reshape(shape)) * invstd
    scaled = grad if weight is None else grad * weight.reshape(shape)
    to_weight = tensors.sum(grad * normalized, dims, False) if needs[1] else None
    to_bias = tensors.sum(grad, dims, False) if needs[2] else None
    to_input = None
    if needs[0] and training:
        mean, slope = (tensors.sum(each, dims, True) / count for each in (scaled, scaled * normalized))
        to_input = (scaled - mean - normalized * slope) * invstd
    elif needs[0]:
        to_input = scaled * invstd
    return to_input, to_weight, to_bias


@recordable
def _normalized(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Compute batch normalization. The caller updates the running statistics, so the momentum is not used."""
    return kernels.batch_norm(input, weight, bias, running_mean, running_var, training, eps)


@internal(_normalized, out=False, outputs=("result0", "result1", "result2"))
class native_batch_norm:
    """The normalized input, the mean, and the inverse standard deviation."""

    differentiable = ("input", "weight", "bias")
    nondifferentiable = ("result1", "result2")
    aten_gradients = (
        "native_batch_norm_backward(grads[0], input, weight, running_mean, running_var, result1, result2, training, eps, "
        "needs)"
    )

    def forward(
        input: Array,
        weight: Array | None,
        bias: Array | None,
        running_mean: Array | None,
        running_var: Array | None,
        training,
        momentum,
        eps,
    ): ...

    def grad_inputs(grads, input, weight, result1, result2, running_mean, running_var, training, eps, needs, xp):
        if grads[0] is None:
            return None, None, None
        return xp.batch_norm_gradients(
            grads[0], input, weight, result1, result2, running_mean, running_var, training, eps, needs
        )

    def batch(op, batch, value, *args):
        """The batch becomes additional channels."""
        *parameters, training, momentum, eps = args
        if not value._array.size or not batch.size:
            return None
        joined = [None if each is None else batch.expanded(each).flatten(0, 1) for each in parameters]
        images = batch.expanded(value).transpose(0, 1).flatten(1, 2)
        output, mean, invstd = op.apply(images, *joined, training, momentum, eps)
        statistics = [batch.unmerged(each) if each._array.size else each for each in (mean, invstd)]
        return output.unflatten(1, (batch.size, -1)).transpose(0, 1), *statistics


@public(namespace="torch")
def batch_norm(input, weight, bias, running_mean, running_var, training: bool, momentum, eps, cudnn_enabled: bool):
    """`input` with each channel (dimension 1) normalized over all other dimensions.

    In training the running statistics are updated.

    `cudnn_enabled` changes nothing. See Ioffe and Szegedy (2015), "Batch Normalization".
    """
    if input._array.size == 0:
        return _of_empty_batch(input, weight, bias)
    return batch_norm_with_statistics(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@public(namespace="torch", name="native_batch_norm")
def batch_norm_with_statistics(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out=None):
    """`batch_norm`, and the means and inverse standard deviations of the channels in training.

    >>> import adjoint as torch
    >>> torch.native_batch_norm(torch.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0)[1]
    tensor([2.])
    """
    shape = input._array.shape
    if 0 in shape and not training:
        return input.clone(), input.new_empty(0), input.new_empty(0)
    if 0 in shape and len(shape) > 1:
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(shape)}")
    channels = shape[1] if len(shape) > 1 else 0
    running = ("running_mean", running_mean), ("running_var", running_var)
    for name, value in (*running, ("weight", weight), ("bias", bias)):
        if value is not None and value._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {value._array.size}")
    if not training:
        for name, value in running:
            if value is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    elif (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if len(shape) < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-1, 0], but got 1): the input has shape {list(shape)}"
        )
    given = input, weight, bias, running_mean, running_var
    # Modes and classes that override the operator update the statistics themselves.
    updates = training and running_mean is not None and not is_watched(*given)
    if updates:
        _check_running(input, running_mean, running_var)
    _check_dtypes(*given)
    for name, value in running:
        check_constant("native_batch_norm", name, value)
    used = (None, None) if updates else (running_mean, running_var)  # in training they change before backward
    output, mean, invstd = native_batch_norm(input, weight, bias, *used, training, momentum, eps)
    if updates and type(running_mean._array) is not Meta:
        if not is_readable(mean) and is_readable(input):  # only weight and bias differ between examples
            _, mean, invstd = native_batch_norm(input.detach(), None, None, None, None, training, momentum, eps)
        _move(running_mean, running_var, mean, invstd, momentum, eps, input._array.size // channels)
    results = (output, *_in_dtype(input, weight, mean, invstd))
    return results if out is None else tuple(all_stored("native_batch_norm", results, out, SCALAR_TYPE))


@public(namespace="torch")
def _native_batch_norm_legit(input, weight, bias, *options, out=None):
    """`native_batch_norm` with the options `(running_mean, running_var, training, momentum, eps)`, or only the last three."""
    running = (None, None) if len(options) == 3 else ()
    results = batch_norm_with_statistics(input, weight, bias, *running, *options)
    name = "_native_batch_norm_legit"
    inputs = () if running else (input, weight, bias)
    return results if out is None else tuple(all_stored(name, results, out, SCALAR_TYPE, underived=inputs))


@public(namespace="aten")
def _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    """`native_batch_norm` with running statistics that stay unchanged."""
    return batch_norm_with_statistics(input, weight, bias, running_mean, running_var, False, momentum, eps)


@public(namespace="aten")
def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """`native_batch_norm` in training, and an empty tensor. Other devices store data in this tensor."""
    return _with_reserve(input, weight, bias, running_mean, running_var, True, momentum, eps)


@public(namespace="aten")
def _batch_norm_no_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """`native_batch_norm` with unchanged running statistics, and an empty tensor."""
    return _with_reserve(input, weight, bias, running_mean, running_var, False, momentum, eps)


def _with_reserve(input, *arguments):
    return *batch_norm_with_statistics(input, *arguments), input.new_empty(0, dtype=dtypes.uint8)


def _in_dtype(input, weight, *statistics):
    """Return statistics in the dtype of PyTorch's public functions: half precision, unless the weight has another dtype."""
    if input._array.itemsize != 2 or (weight is not None and weight.dtype is not input.dtype):
        return statistics
    return tuple(each.to(input.dtype) for each in statistics)


def _of_empty_batch(input, weight, bias):
    """Normalize an empty batch, without statistics. The result depends on weight and bias, as in PyTorch."""
    output = input.clone()
    if weight is not None:
        output = output * weight.select(0, 0)
    return output if bias is None else output + bias.select(0, 0)


def _check_running(input, *running):
    """Raise an error if statistics differ between the examples of a transform, but the running statistics are not batched."""
    if not is_readable(input) and any(is_readable(each) for each in running):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
            "were not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be "
            "False.If you are using a prebuilt module and do not need eval mode, please see the functorch website for "
            "resources on how to patch your module to work with vmap"
        )


def _move(running_mean, running_var, mean, invstd, momentum, eps, count):
    """Move running statistics by `momentum` towards those of a batch. Whole tensors keep their version."""
    running = (running_mean, running_var)
    if is_readable(mean) and all(map(is_readable, running)):
        computed(kernels.move, *running, mean, invstd, momentum, eps, count, keeps=True)
        return
    if is_readable(mean):
        batch = (mean, wrap(kernels.unbiased_variance(invstd._array, eps, count)))
    else:
        batch = (mean.detach(), (invstd.detach() ** -2 - eps) * (count / (count - 1)))
    for each, towards in zip(running, batch, strict=True):
        each.mul_(1 - momentum).add_(towards * momentum)


@public(namespace=None)
def average_statistics(running, repeated):
    """Write the mean of the running statistics of all samples into `running`, in any transform."""
    with modes.switched(transforms=()):
        running.copy_(repeated.view(-1, running._array.shape[0]).mean(0))


# --- over a layer ---------------------------------------------------------------------------------------------


@public(namespace=None, on_arrays=kernels.layer_norm_gradients)
def layer_norm_gradients(grad, input, normalized_shape, weight, mean, rstd, eps, needs):
    """The gradients of input, weight and bias. The statistics are computed again as functions of the input."""
    dims = tuple(range(-len(normalized_shape), 0))
    mean = input.mean(dims, True)
    rstd = (input.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    normalized = (input - mean) * rstd
    scaled = grad if weight is None else grad * weight
    leading = tuple(range(input._array.ndim - len(normalized_shape)))
    to_input = None
    if needs[0]:
        to_input = rstd * (scaled - scaled.mean(dims, True) - normalized * (scaled * normalized).mean(dims, True))
    to_weight = ((grad * normalized).sum(leading) if leading else grad * normalized) if needs[1] else None
    to_bias = (grad.sum(leading) if leading else grad) if needs[2] else None
    return to_input, to_weight, to_bias


@internal(
    Kernel(kernels.layer_norm, rows=kernels.layer_norm_rows, quiet=True),
    out=False,
    outputs=("result0", "result1", "result2"),
)
class native_layer_norm:
    """The normalized input, the mean, and the inverse standard deviation."""

    saved_display = {
        "eps": None,
        "normalized_sym_sizes": None,
        "normalized_shape": lambda node: node.saved_normalized_shape,
    }

    differentiable = ("input", "weight", "bias")
    nondifferentiable = ("result1", "result2")

    aten_gradients = (
        "native_layer_norm_backward(grads[0], input, normalized_shape, result1, result2, weight, bias, needs)"
    )

    def forward(input: Array, normalized_shape, weight: Array | None, bias: Array | None, eps): ...

    def grad_inputs(grads, input, normalized_shape, weight, bias, result1, result2, eps, needs, xp):
        if grads[0] is None:
            return None, None, None
        return xp.layer_norm_gradients(grads[0], input, normalized_shape, weight, result1, result2, eps, needs)

    def batch(op, batch, value, shape, weight, bias, eps):
        if not batch.has(weight) and not batch.has(bias):
            return op.apply(batch.first(value), shape, weight, bias, eps)
        result, mean, rstd = op.apply(batch.expanded(value), shape, None, None, eps)
        rank = result._array.ndim - 1
        if weight is not None:
            result = result * batch.aligned(weight, rank)
        return (result if bias is None else result + batch.aligned(bias, rank)), mean, rstd


def _check_dtypes(input, *parameters):
    """Refuse parameters that have neither the input's dtype nor float32 for a 16-bit input, as PyTorch does."""
    held = input._array.dtype
    for each in parameters:
        if each is not None and each._array.dtype is not held:
            break
    else:
        return
    kinds = [each.dtype for each in parameters if each is not None]
    own = input.dtype
    if all(kind is own for kind in kinds):
        return
    if all(kind is dtypes.float32 for kind in kinds):
        if own not in (dtypes.float16, dtypes.bfloat16):
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
        return
    if kinds[0] is own:
        other = next(kind for kind in kinds if kind is not own)
        raise RuntimeError(f"expected scalar type {own.scalar_type} but found {other.scalar_type}")
    raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


def _checked_shape(input, normalized_shape, leading, weight, bias=None):
    """Return `normalized_shape` as a tuple that fits input, weight and bias. Errors print `leading` before the shape."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value._array.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(value._array.shape)} and normalized_shape = {list(shape)}"
            )
    if not isinstance(input, Tensor):
        check_tensors("layer_norm" if leading else "rms_norm", input=input)
    if not input._array.ndim and leading == "*":
        raise ValueError("Input tensor must have at least 1 dimensions, but got 0")
    if input._array.shape[input._array.ndim - len(shape) :] != shape or input._array.ndim < len(shape):
        shown = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{leading}{shown}], but got input of "
            f"size{list(input._array.shape)}"
        )
    return shape


@public(namespace="torch")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable: bool = True):
    """`input` normalized over the last dimensions, which have the shape `normalized_shape` (Ba et al., 2016)."""
    shape = _checked_shape(input, normalized_shape, "*, ", weight, bias)
    _check_dtypes(input, weight, bias)
    return native_layer_norm(input, shape, weight, bias, eps)[0]


@public(namespace="torch")
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """`input` divided by the root mean square over its last dimensions, `normalized_shape` (Zhang and Sennrich, 2019).

    `eps` is added to the mean square. If `eps` is None, the machine epsilon of the computing dtype is added.
    """
    shape = _checked_shape(input, normalized_shape, "*", weight)
    dtype = input.dtype
    if not dtype.is_floating_point and not dtype.is_complex:
        raise refuse("rms_norm", dtype)
    computed = input.float() if dtype.itemsize == 2 else input
    eps = dtypes.finfo(computed.dtype).eps if eps is None else eps
    dims = tuple(range(-len(shape), 0))
    mean = tensors.mean(tensors.pow(computed, 2), dims, True)
    if is_readable(mean) and kernels.has_infinity(mean._array):
        # The squares of finite numbers have overflowed. Dividing by the largest number first prevents this.
        size = computed.detach().abs().amax(dims, True)
        size = tensors.where(tensors.isinf(mean.detach()) & tensors.isfinite(size), size, tensors.ones_like(size))
        computed, eps = computed / size, eps / size / size
        mean = tensors.mean(tensors.pow(computed, 2), dims, True)
        result = computed * (mean + eps).rsqrt()
    else:
        result = computed * tensors.add_number(mean, eps).rsqrt()
    return (result if weight is None else result * weight).to(dtype)


# --- over groups of channels ----------------------------------------------------------------------------------


@public(namespace=None, on_arrays=kernels.group_norm_gradients)
def group_norm_gradients(grad, input, weight, groups, mean, rstd, eps, needs):
    """The gradients of input, weight and bias. The statistics are computed again as functions of the input."""
    shape = input._array.shape
    per_channel = (1, -1, *(1,) * (len(shape) - 2))
    whole = (shape[0], groups, math.prod(shape[1:]) // groups)
    grouped = input.reshape(whole)
    mean = grouped.mean(-1, True)
    rstd = (grouped.var(-1, correction=0, keepdim=True) + eps).rsqrt()
    normalized = (grouped - mean) * rstd
    scaled = (grad if weight is None else grad * weight.reshape(per_channel)).reshape(whole)
    to_input = None
    if needs[0]:
        to_input = rstd * (scaled - scaled.mean(-1, True) - normalized * (scaled * normalized).mean(-1, True))
        to_input = to_input.reshape(shape)
    dims = (0, *range(2, len(shape)))
    to_weight = (grad * normalized.reshape(shape)).sum(dims) if needs[1] else None
    return to_input, to_weight, grad.sum(dims) if needs[2] else None


@internal(Kernel(following_images(kernels.group_norm)), out=False, outputs=("result0", "result1", "result2"))
class native_group_norm:
    """The normalized input, the mean, and the inverse standard deviation."""

    saved_display = {
        "N": lambda node: node._saved_input.shape[0],
        "C": lambda node: node._saved_input.shape[1],
        "HxW": lambda node: math.prod(node._saved_input.shape[2:]),
    }
    differentiable = ("input", "weight", "bias")
    nondifferentiable = ("result1", "result2")

    aten_gradients = (
        "native_group_norm_backward(grads[0], input, result1, result2, weight, input.shape[0], input.shape[1], "
        "input.shape[2:].numel(), group, needs)"
    )

    def forward(input: Array, weight: Array | None, bias: Array | None, group, eps): ...

    def grad_inputs(grads, input, weight, group, result1, result2, eps, needs, xp):
        if grads[0] is None:
            return None, None, None
        return xp.group_norm_gradients(grads[0], input, weight, group, result1, result2, eps, needs)

    def batch(op, batch, value, weight, bias, group, eps):
        """The batch dimension becomes part of the sample dimension.

        Weights that differ within the batch are applied afterwards.
        """
        images = batch.expanded(value)
        if not images._array.size:
            return None
        own = batch.has(weight) or batch.has(bias)
        given = (None, None) if own else (weight, bias)
        results = op.apply(images.flatten(0, 1), *given, group, eps)
        output, mean, rstd = (each.unflatten(0, images.shape[:2]) for each in results)
        if own:
            shape = (batch.size, 1, -1) + (1,) * (output._array.ndim - 3)
            if weight is not None:
                output = output * batch.expanded(weight).reshape(shape)
            if bias is not None:
                output = output + batch.expanded(bias).reshape(shape)
        return output, mean, rstd


native_group_norm.operator.grad_count = 3  # in PyTorch, unlike for the statistics of other normalizations


@public(namespace="torch")
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled: bool = True):
    """`input` with each group of channels of each sample normalized together (Wu and He, 2018)."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    num_groups = index(num_groups)
    _check_groups(list(shape), shape[1], num_groups, weight, bias)
    _check_dtypes(input, weight, bias)
    return native_group_norm(input, weight, bias, num_groups, eps)[0]


def _check_groups(shape, channels, groups, weight, bias):
    """Raise an error unless the groups divide the channels, and weight and bias have one element per channel."""
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {shape} and "
            f"num_groups={groups}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given._array.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(given._array.shape)} and input of shape {shape}"
            )


@public(namespace="torch", name="native_group_norm")
def group_norm_with_statistics(input, weight, bias, N, C, HxW, group, eps):
    """`group_norm`, and the means and inverse standard deviations of the groups.

    `N` is the number of samples, `C` the number of channels, and `HxW` the number of elements of a channel.
    """
    _check_groups([*input._array.shape], C, group, weight, bias)
    if (N, C, HxW) != (*input._array.shape[:2], math.prod(input._array.shape[2:])):
        raise RuntimeError(f"Expected N x C x HxW to be the shape of the input, but got {N}, {C} and {HxW}")
    output, mean, rstd = native_group_norm(input, weight, bias, group, eps)
    if input.requires_grad or modes.STATE.interpreters:  # here the statistics have derivatives too
        grouped = input.reshape(N, group, C // group * HxW)
        mean, rstd = grouped.mean(-1), tensors.add_number(grouped.var(-1, correction=0), eps).rsqrt()
    return output, *_in_dtype(input, weight, mean, rstd)


@public(namespace="torch", name="native_layer_norm")
def layer_norm_with_statistics(input, normalized_shape, weight, bias, eps):
    """`layer_norm`, and the means and inverse standard deviations.

    >>> import adjoint as torch
    >>> torch.native_layer_norm(torch.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)[1]
    tensor([[2.]])
    """
    shape = _checked_shape(input, normalized_shape, "*, ", weight, bias)
    output, mean, rstd = native_layer_norm(input, shape, weight, bias, eps)
    return output, *_in_dtype(input, weight, mean, rstd)


# --- weights by length and direction -------------------------------------------------------------------------------


@public(namespace="torch")
def norm_except_dim(v, pow=2, dim=0):
    """The norms of order `pow` over all dimensions except `dim`. The reduced dimensions have size 1.

    If `dim` is -1, the result is one norm.
    """
    if dim == -1:
        return v.norm(pow)
    kept = wrap_dim(dim, v._array.ndim)
    flat = v.movedim(kept, 0).flatten(1) if v._array.ndim > 1 else v.unsqueeze(1)
    return flat.norm(pow, 1).view([-1 if d == kept else 1 for d in range(v._array.ndim)])


@public(namespace="torch")
def _weight_norm(v, g, dim=0):
    """The weight with direction `v` and length `g` for each index of `dim` (Salimans and Kingma, 2016)."""
    return v * (g / norm_except_dim(v, 2, dim))

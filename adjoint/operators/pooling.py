"""Pooling: the maximum or the mean of windows, of given or of adapted sizes, in one to three dimensions."""

from __future__ import annotations

from typing import Any

from ..kernels import picking
from ..kernels import window_pooling as kernels
from .build import operator, public

# --- the operators --------------------------------------------------------------------------------------------


def _max_pool_operator(dims):
    class declaration:
        """The largest element of each window, and its index in the flattened spatial dimensions."""

        nondifferentiable = ("result1",)

        def forward(self: Array, kernel_size, stride, padding, dilation, ceil_mode):
            return kernels.max_pool(self, kernel_size, stride, padding, dilation, ceil_mode)

        def grad_self(grads, self_shape, result1, xp):
            return xp.max_pool_backward(grads[0], result1, self_shape)

    return operator(
        namespace=None,
        method=False,
        out=False,
        name=f"max_pool{dims}d_with_indices",
        node=f"MaxPool{dims}DWithIndicesBackward0",
        outputs=("result0", "result1"),
    )(declaration)


_max_pool = {dims: _max_pool_operator(dims) for dims in (1, 2, 3)}


@operator(kernel=kernels.max_pool_backward, namespace=None, method=False, out=False)
class max_pool_backward:
    """Zeros of `input_shape` to which `input` is added at the indices of the maxima."""

    def forward(self: Array, indices: Array, input_shape): ...

    def grad_self(grad, indices, xp):
        return xp.at_indices(grad, indices)


@operator(kernel=picking.at_indices, namespace=None, method=False, out=False)
class at_indices:
    """The elements at indices of the flattened spatial dimensions."""

    def forward(self: Array, indices: Array): ...

    def grad_self(grad, self_shape, indices, xp):
        return xp.max_pool_backward(grad, indices, self_shape)


def _avg_pool_operator(dims):
    class declaration:
        """The mean of each window."""

        def forward(self: Array, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            return kernels.avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

        def grad_self(
            grad, self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, xp
        ):
            return xp.avg_pool_backward(
                grad, self_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )

    return operator(
        namespace=None, method=False, out=False, name=f"avg_pool{dims}d_of", node=f"AvgPool{dims}DBackward0"
    )(declaration)


_avg_pool = {dims: _avg_pool_operator(dims) for dims in (1, 2, 3)}


@operator(kernel=kernels.avg_pool_backward, namespace=None, method=False, out=False)
class avg_pool_backward:
    """Zeros of `input_shape` to which each mean's share is added."""

    def forward(
        self: Array, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    ): ...

    def grad_self(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, xp):
        return xp.avg_pool2d_of(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _adaptive_avg_pool_operator(dims):
    class declaration:
        """The mean of windows that divide the input into `output_size`."""

        def forward(self: Array, output_size):
            return kernels.adaptive_avg_pool(self, output_size)

        def grad_self(grad, self_shape, xp):
            return xp.adaptive_avg_pool_backward(grad, self_shape)

    return operator(
        namespace=None,
        method=False,
        out=False,
        name=f"adaptive_avg_pool{dims}d_of",
        node=f"AdaptiveAvgPool{dims}DBackward0",
    )(declaration)


_adaptive_avg_pool = {dims: _adaptive_avg_pool_operator(dims) for dims in (1, 2, 3)}


@operator(kernel=kernels.adaptive_avg_pool_backward, namespace=None, method=False, out=False)
class adaptive_avg_pool_backward:
    """Zeros of `input_shape` to which each mean's share is added."""

    def forward(self: Array, input_shape): ...

    def grad_self(grad, self_shape, input_shape, xp):
        return xp.adaptive_avg_pool2d_of(grad, tuple(self_shape[-(len(input_shape) - 2) :]))


def _adaptive_max_pool_operator(dims):
    class declaration:
        """The maximum of windows that divide the input into `output_size`, and its index."""

        nondifferentiable = ("result1",)

        def forward(self: Array, output_size):
            return kernels.adaptive_max_pool(self, output_size)

        def grad_self(grads, self_shape, result1, xp):
            return xp.max_pool_backward(grads[0], result1, self_shape)

    return operator(
        namespace=None,
        method=False,
        out=False,
        name=f"adaptive_max_pool{dims}d_of",
        node=f"AdaptiveMaxPool{dims}DBackward0",
        outputs=("result0", "result1"),
    )(declaration)


_adaptive_max_pool = {dims: _adaptive_max_pool_operator(dims) for dims in (1, 2, 3)}


# --- the functions --------------------------------------------------------------------------------------------


def sizes(value: Any, count: int, name: str, function: str) -> tuple[int, ...]:
    """`value`, a number or a sequence of one or `count`, as `count` numbers."""
    if isinstance(value, int):
        return (value,) * count
    values = tuple(value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(
            f"{function}: {name} must either be a single int, or a tuple of {'two' if count == 2 else count} ints"
        )
    return values


def _batched(function, input, count):
    """`input` with a batch dimension, and whether it had none."""
    ndim = input._array.ndim
    if ndim not in (count + 1, count + 2):
        raise RuntimeError(f"non-empty {count + 1}D or {count + 2}D (batch mode) tensor expected for input")
    return (input, False) if ndim == count + 2 else (input.unsqueeze(0), True)


def _max_pool_function(dims):
    name = f"max_pool{dims}d_with_indices"

    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        batch, single = _batched(name, input, dims)
        kernel = sizes(kernel_size, dims, "kernel_size", name)
        step = kernel if stride is None or stride == [] or stride == () else sizes(stride, dims, "stride", name)
        values, indices = _max_pool[dims](
            batch,
            kernel,
            step,
            sizes(padding, dims, "padding", name),
            sizes(dilation, dims, "dilation", name),
            bool(ceil_mode),
        )
        return (values.squeeze(0), indices.squeeze(0)) if single else (values, indices)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The maximum of each window and its flat index in the spatial dimensions."
    with_indices = public(namespace="functional")(function)

    def plain(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]

    plain.__name__ = plain.__qualname__ = f"max_pool{dims}d"
    plain.__doc__ = "The maximum of each window."
    public(namespace="torch")(plain)


def _avg_pool_function(dims):
    name = f"avg_pool{dims}d"

    def function(
        input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        batch, single = _batched(name, input, dims)
        kernel = sizes(kernel_size, dims, "kernel_size", name)
        step = kernel if stride is None or stride == [] or stride == () else sizes(stride, dims, "stride", name)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        result = _avg_pool[dims](
            batch,
            kernel,
            step,
            sizes(padding, dims, "padding", name),
            bool(ceil_mode),
            bool(count_include_pad),
            divisor_override,
        )
        return result.squeeze(0) if single else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The mean of each window; padding counts as zeros if `count_include_pad`."
    public(namespace="functional")(function)


def _adaptive_function(dims, kind, target):
    name = f"adaptive_{kind}_pool{dims}d"

    def function(input, output_size):
        batch, single = _batched(name, input, dims)
        wanted = (output_size,) * dims if isinstance(output_size, int) or output_size is None else tuple(output_size)
        if len(wanted) == 1:
            wanted = wanted * dims
        own = batch._array.shape[2:]
        wanted = tuple(size if want is None else want for want, size in zip(wanted, own, strict=True))
        if kind == "avg" and dims == 2 and wanted == (1, 1):
            result = batch.mean((-2, -1), True)
            return result.squeeze(0) if single else result
        result = target(batch, wanted)
        if kind == "avg":
            return result.squeeze(0) if single else result
        return (result[0].squeeze(0), result[1].squeeze(0)) if single else (result[0], result[1])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {'mean' if kind == 'avg' else 'maximum'} of windows that divide the input into `output_size`."
    )
    public(namespace="functional")(function)


for _dims in (1, 2, 3):
    _max_pool_function(_dims)
    _avg_pool_function(_dims)
    _adaptive_function(_dims, "avg", _adaptive_avg_pool[_dims])
    _adaptive_function(_dims, "max", _adaptive_max_pool[_dims])

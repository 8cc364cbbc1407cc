"""Pooling: the maximum or the mean of windows, of given or adaptive sizes, in one to three dimensions.

One-dimensional pooling is two-dimensional pooling along the second dimension.
"""

from __future__ import annotations

import functools
import operator as python
from typing import Any

from numpy import ndarray

from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array
from ...dispatch.arguments import MISSING, require, wrong_type
from ...dispatch.decorators import operator, public, tensors
from ...kernels.nn import pooling as kernels
from ...kernels.nn.windows import check_adaptive, pooled_size
from ...kernels.runtime.floating import refuse
from ...kernels.runtime.layout import following_images
from ...tape import modes
from ...tensor import Tensor, wrap

# --- the operators --------------------------------------------------------------------------------------------


def _declare(declaration, kernel, name, node, dims, **options):
    """Declare an operator that pools `dims` dimensions, or its gradient."""
    options = {"out": False, **options}
    return operator(
        kernel=kernel, namespace=None, method=False, name=name, node=node, batch=f"samples of {dims + 1}", **options
    )(declaration)


def _max_pool_operators(dims):
    name = f"max_pool{dims}d_with_indices"
    node = f"MaxPool{dims}DWithIndices"

    class declaration:
        """The largest element of each window, and its index in the flattened spatial dimensions."""

        nondifferentiable = ("result1",)

        def forward(self: Array, kernel_size, stride, padding, dilation, ceil_mode): ...

        def grad_self(grads, self, result1, kernel_size, stride, padding, dilation, ceil_mode, xp):
            return getattr(xp, f"{name}_backward")(grads[0], self, result1)  # type: ignore[index]

    _scattering_operator(f"{name}_backward", f"{node}BackwardBackward0", dims)
    outputs = ("result0", "result1")
    return _declare(declaration, kernels.max_pooling(dims), name, f"{node}Backward0", dims, outputs=outputs)


def _scattering_operator(name, node, dims):
    class declaration:
        """Zeros like the input of max pooling, with `grad_output` added at the indices of the maxima."""

        def forward(grad_output: Array, self: Array, indices: Array): ...

        def grad_grad_output(grad, indices, xp):
            return xp.at_indices(grad, indices, dims)

        def grad_self(grad, xp):
            return xp.zeros_like(grad)

    _declare(declaration, kernels.max_scattering(name, dims), name, node, dims)


@public(namespace=None, on_arrays=kernels.at_indices)
def at_indices(input, indices, dims):
    """The elements at indices of the `dims` flattened spatial dimensions."""
    leading = indices._array.shape[:-dims]
    count = indices._array.size // (max(_product(leading), 1))
    flat = input.reshape((*leading, _product(input._array.shape[-dims:])))
    return flat.gather(-1, indices.reshape((*leading, count))).reshape(indices._array.shape)


def _product(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


_max_pool = {dims: _max_pool_operators(dims) for dims in (2, 3)}


def _avg_pool_operators(dims):
    name, node = f"avg_pool{dims}d", f"AvgPool{dims}DBackward"
    kernel, backward = kernels.avg_pooling(dims)

    class forward_declaration:
        """The mean of each window."""

        def forward(self: Array, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override): ...

        def grad_self(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, xp):
            return getattr(xp, f"{name}_backward")(
                grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )

    class backward_declaration:
        """Zeros like the input of mean pooling, with a share of each gradient added to all elements of the window."""

        def forward(
            grad_output: Array,
            self: Array,
            kernel_size,
            stride,
            padding,
            ceil_mode,
            count_include_pad,
            divisor_override,
        ): ...

        def grad_grad_output(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, xp):
            return getattr(xp, f"{name}_of")(
                grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )

        def grad_self(grad, xp):
            return xp.zeros_like(grad)

    _declare(backward_declaration, backward, f"{name}_backward", f"{node}Backward0", dims)
    return _declare(
        forward_declaration, kernel, f"{name}_of", f"{node}0", dims, out=True, same_out=True, aten_name=name
    )


_avg_pool = {dims: _avg_pool_operators(dims) for dims in (2, 3)}


def _adaptive_avg_pool_operators(dims):
    name, node = f"adaptive_avg_pool{dims}d", f"AdaptiveAvgPool{dims}DBackward"

    class forward_declaration:
        """The mean of each of `output_size` windows, which cover the input."""

        def forward(self: Array, output_size): ...

        def grad_self(grad, self, xp):
            return getattr(xp, f"{name}_backward")(grad, self)

    class backward_declaration:
        """Zeros like the input of mean pooling, with a share of each gradient added to all elements of the window."""

        saved_display = {
            "grad_output_sym_sizes": None,
            **{
                f"grad_output_sym_argsize_minus_{i}": lambda node, i=i: node.saved_grad_output_shape[-i]
                for i in range(1, dims + 1)
            },
        }

        def forward(grad_output: Array, self: Array): ...

        def grad_grad_output(grad, grad_output_shape, xp):
            return getattr(xp, f"{name}_of")(grad, tuple(grad_output_shape[-dims:]))

        def grad_self(grad, xp):
            return xp.zeros_like(grad)

    averaging, backward = kernels.adaptive_averaging(dims), f"{name}_backward"
    _declare(backward_declaration, averaging, backward, f"{node}Backward0", dims, aten_name=f"_{backward}")
    kernel = following_images(kernels.adaptive_avg_pool) if dims == 2 else kernels.adaptive_avg_pool
    return _declare(forward_declaration, kernel, f"{name}_of", f"{node}0", dims, aten_name=f"_{name}")


_adaptive_avg_pool = {dims: _adaptive_avg_pool_operators(dims) for dims in (2, 3)}


def _adaptive_max_pool_operators(dims):
    name, node = f"adaptive_max_pool{dims}d", f"AdaptiveMaxPool{dims}DBackward"

    class declaration:
        """The maximum of each of `output_size` windows, which cover the input, and its index."""

        nondifferentiable = ("result1",)

        def forward(self: Array, output_size): ...

        def grad_self(grads, self, result1, xp):
            return getattr(xp, f"{name}_backward")(grads[0], self, result1)  # type: ignore[index]

    _scattering_operator(f"{name}_backward", f"{node}Backward0", dims)
    outputs = ("result0", "result1")
    return _declare(
        declaration,
        Kernel(kernels.adaptive_max_pool, quiet=True),
        f"{name}_of",
        f"{node}0",
        dims,
        outputs=outputs,
        aten_name=name,
    )


_adaptive_max_pool = {dims: _adaptive_max_pool_operators(dims) for dims in (2, 3)}


# --- their arguments ------------------------------------------------------------------------------------------


def _sizes(value: Any, dims: int, function: str, name: str, position: int | None) -> tuple[int, ...]:
    """Return `value`, a number or a sequence of numbers, as a tuple. A number gives `dims` elements."""
    kind = type(value)
    if kind is int:
        return (value,) * dims
    if kind is not tuple and kind is not list:
        require("Dims", value, function, name, position)
        return (python.index(value),) * dims
    for item in value:
        if type(item) is bool or not hasattr(item, "__index__"):
            raise wrong_type(function, name, f" (position {position or 2})", "Ints", value)
    return tuple(map(python.index, value))


def _flag(value: Any, function: str, name: str, position: int | None) -> bool:
    require("Bool", value, function, name, position)
    return value


def _one(value: Any, function: str, name: str, position: int | None) -> tuple[int, ...]:
    """Return `value`, a number or a sequence of one number, as a tuple of one number."""
    values = _sizes(value, 1, function, name, position)
    if len(values) != 1:
        raise RuntimeError(f"{function}() argument '{name}' should contain one int (got {len(values)})")
    return values


def _check_tensor(input: Any, kernel_size: Any, function: str) -> None:
    require("Tensor", input, function, "input", 1)
    if kernel_size is MISSING:
        raise TypeError(f'{function}() missing 1 required positional arguments: "kernel_size"')  # sic


def _check_ndim(input: Tensor, function: str) -> None:
    ndim = input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {function})"
        )


# --- the functions --------------------------------------------------------------------------------------------


def _max_pool_functions(dims):
    target = _max_pool[dims]

    def pooling(function):
        def pool(input, kernel_size=MISSING, stride=None, padding=0, dilation=1, ceil_mode=False):
            if kernel_size is MISSING or not isinstance(input, Tensor):
                _check_tensor(input, kernel_size, function)
            return target(
                input,
                _sizes(kernel_size, dims, function, "kernel_size", 2),
                () if stride is None else _sizes(stride, dims, function, "stride", 3),
                _sizes(padding, dims, function, "padding", 4),
                _sizes(dilation, dims, function, "dilation", 5),
                ceil_mode if ceil_mode is False else _flag(ceil_mode, function, "ceil_mode", 6),
            )

        return pool

    name = f"max_pool{dims}d"
    with_indices = pooling(f"{name}_with_indices")
    pool = pooling(name)

    def plain(input, kernel_size=MISSING, stride=None, padding=0, dilation=1, ceil_mode=False):
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode)[0]

    _publish(with_indices, f"{name}_with_indices", "functional", _WITH_INDICES)
    _publish(plain, name, "torch", "The maximum of each window.")


def _publish(function, name, namespace, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public(namespace=namespace)(function)


def _max_pool_backward(dims):
    name = f"max_pool{dims}d_with_indices_backward"
    backward = getattr(tensors, name)

    def pool_backward(grad_output, input, kernel_size, stride, padding, dilation, ceil_mode, indices):
        return backward(grad_output, input, indices)

    _publish(pool_backward, name, "aten", "The gradient of the input of pooling whose maxima are at `indices`.")


_WITH_INDICES = "The maximum of each window and its flat index in the spatial dimensions."


@public(namespace="torch")
def max_pool1d_with_indices(input, kernel_size=MISSING, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The maximum of each window and its index."""
    function = "max_pool1d_with_indices"
    _check_tensor(input, kernel_size, function)
    kernel = _sizes(kernel_size, 1, function, "kernel_size", 2)
    step = () if stride is None else _sizes(stride, 1, function, "stride", 3)
    pad, gap = _sizes(padding, 1, function, "padding", 4), _sizes(dilation, 1, function, "dilation", 5)
    _flag(ceil_mode, function, "ceil_mode", 6)
    for name, values in (("kernel_size", kernel), ("padding", pad), ("dilation", gap), ("stride", step or kernel)):
        if len(values) != 1:
            raise RuntimeError(f"max_pool1d() argument '{name}' should contain one int (got {len(values)})")
    return _max_of_rows(input, (1, *kernel), (1, *(step or kernel)), (0, *pad), (1, *gap), ceil_mode)


def _max_of_rows(input, *sizes_and_mode):
    _check_ndim(input, "max_pool1d")
    values, indices = _max_pool[2](input.unsqueeze(-2), *sizes_and_mode)
    return values.squeeze(-2), indices.squeeze(-2)


@public(namespace="torch")
def max_pool1d(input, kernel_size=MISSING, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The maximum of each window."""
    _check_tensor(input, kernel_size, "max_pool1d")
    arguments = _checked_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
    if (modes.FLAGS.special and modes.STATE.interpreters) or (input.requires_grad and modes.is_grad_enabled()):
        return _max_of_rows(input, *arguments)[0]
    array = input._array
    if array.dtype.kind in "biuc":
        raise refuse("max_pool1d_impl", input._array)
    if array.ndim == 3 and type(array) is ndarray and array.flags.c_contiguous:  # no gradient will need the indices
        values, _ = kernels.max_pool(array[..., None, :], 2, *arguments, False)
        return wrap(values[..., 0, :])
    rows = input.detach()
    if array.ndim == 2:
        values, _ = _max_pool[2](rows.unsqueeze(-2), *arguments)
        return values.squeeze_(-2)
    return _max_of_rows(rows, *arguments)[0].detach()


_WANTED_BY_MAX_POOL1D = (
    ("kernel_size", "an int, list of ints or tuple of ints"),
    ("stride", "None, an int, list of ints, or tuple of ints"),
    ("padding", "an int, list of ints, or tuple of ints"),
    ("dilation", "an int, list of ints or tuple of ints"),
)


def _checked_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Check the arguments of `max_pool1d` and return them as arguments of `max_pool2d`."""
    function, shape = "max_pool1d", input._array.shape
    kernel = _sizes(kernel_size, 1, function, "kernel_size", 2)
    step = () if stride is None else _sizes(stride, 1, function, "stride", 3)
    pad, gap = _sizes(padding, 1, function, "padding", 4), _sizes(dilation, 1, function, "dilation", 5)
    _flag(ceil_mode, function, "ceil_mode", 6)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"[{', '.join(map(str, shape))}]"
        )
    return _of_rows(shape, kernel, step or kernel, pad, gap, ceil_mode)


@functools.lru_cache(1024)
def _of_rows(shape, *given_and_mode):
    """Return the tuples `kernel, step, pad, gap`, followed by `ceil_mode`, for two dimensions, or raise an error.

    The error says that they do not fit an input of this shape.
    """
    *given, ceil_mode = given_and_mode
    if [*map(len, given)] != [1, 1, 1, 1]:
        (name, wanted), values = next(
            pair for pair in zip(_WANTED_BY_MAX_POOL1D, given, strict=True) if len(pair[1]) != 1
        )
        raise RuntimeError(f"max_pool1d() {name} must be {wanted} of size 1 but got size {len(values)}")
    (width,), (by,), (around,), (apart,) = given
    for name, value in (("kernel_size", width), ("stride", by)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if around < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {around}")
    if around > width // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={around} and kernel_size={width}"
        )
    if apart <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {apart}")
    count = pooled_size(shape[-1], width, by, around, apart, ceil_mode)
    if count <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")
    return (1, width), (1, by), (0, around), (1, apart), ceil_mode


def _avg_pool_function(dims):
    name, target = f"avg_pool{dims}d", _avg_pool[dims]

    def pool(
        input,
        kernel_size=MISSING,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
        *,
        out=None,
    ):
        if kernel_size is MISSING or not isinstance(input, Tensor):
            _check_tensor(input, kernel_size, name)
        kernel = _sizes(kernel_size, dims, name, "kernel_size", None)
        step = () if stride is None else _sizes(stride, dims, name, "stride", None)
        pad = _sizes(padding, dims, name, "padding", None)
        _flag(ceil_mode, name, "ceil_mode", None)
        _flag(count_include_pad, name, "count_include_pad", None)
        if divisor_override is not None:
            if type(divisor_override) is not int:
                raise wrong_type(name, "divisor_override", "", "Int", divisor_override)
            if divisor_override == 0:
                raise RuntimeError("divisor must be not zero")
        return target(input, kernel, step, pad, ceil_mode, count_include_pad, divisor_override, out=out)

    _publish(pool, name, "functional", "The mean of each window; padding counts as zeros if `count_include_pad`.")


@public(namespace="torch")
def avg_pool1d(input, kernel_size=MISSING, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window. With `count_include_pad`, padding counts as zeros."""
    _check_tensor(input, kernel_size, "avg_pool1d")
    kernel = _one(kernel_size, "avg_pool1d", "kernel_size", None)
    step = () if stride is None else _sizes(stride, 1, "avg_pool1d", "stride", None)
    step = _one(step or kernel, "avg_pool1d", "stride", None)
    pad = _one(padding, "avg_pool1d", "padding", None)
    _flag(ceil_mode, "avg_pool1d", "ceil_mode", None)
    _flag(count_include_pad, "avg_pool1d", "count_include_pad", None)
    _check_ndim(input, "avg_pool1d")
    rows = _avg_pool[2](input.unsqueeze(-2), (1, *kernel), (1, *step), (0, *pad), ceil_mode, count_include_pad, None)
    return rows.squeeze(-2)


def _filled_in(output_size: Any, input: Tensor) -> Any:
    """Return `output_size` with the input's size in place of None."""
    if type(output_size) is int:
        return output_size
    if isinstance(output_size, bool):
        return output_size
    shape = input.shape
    if len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    own = shape[len(shape) - len(output_size) :]
    return [length if size is None else size for size, length in zip(output_size, own, strict=True)]


def _adaptive_functions(dims):
    def average(input, output_size):
        name = f"adaptive_avg_pool{dims}d"
        size = _sizes(_filled_in(output_size, input), dims, name, "output_size", 2)
        if size == (1,) * dims:
            return input.mean(tuple(range(-1, -dims - 1, -1)), True)
        check_adaptive(name, input._array.shape, size)
        return _adaptive_avg_pool[dims](input, size)

    def largest(input, output_size):
        name = f"adaptive_max_pool{dims}d"
        size = _sizes(_filled_in(output_size, input), dims, name, "output_size", 2)
        check_adaptive(name, input._array.shape, size)
        return _adaptive_max_pool[dims](input, size)

    _publish(
        average,
        f"adaptive_avg_pool{dims}d",
        "functional",
        "The mean of windows that divide the input into `output_size`.",
    )
    _publish(
        largest, f"adaptive_max_pool{dims}d", "functional",
        "The maximum of windows that divide the input into `output_size`, and its flat index.",
    )  # fmt: skip
    return average, largest


for _dims in (2, 3):
    _max_pool_functions(_dims)
    _max_pool_backward(_dims)
    _avg_pool_function(_dims)
    _adaptive_functions(_dims)


@public(namespace="torch")
def adaptive_avg_pool1d(input, output_size):
    """The mean of each of `output_size` windows, which cover the input."""
    size = _one(output_size, "adaptive_avg_pool1d", "output_size", 2)
    _check_ndim(input, "adaptive_avg_pool1d")
    return tensors.adaptive_avg_pool2d(input.unsqueeze(-2), (1, *size)).squeeze(-2)


@public(namespace="torch")
def adaptive_max_pool1d(input, output_size):
    """The maximum of each of `output_size` windows, which cover the input, and its index."""
    size = _one(output_size, "adaptive_max_pool1d", "output_size", 2)
    _check_ndim(input, "adaptive_max_pool1d")
    shape = input._array.shape
    for dim in range(1, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                "adaptive_max_pool1d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {dim} being empty"
            )
    values, indices = tensors.adaptive_max_pool2d(input.unsqueeze(-2), (1, *size))
    return values.squeeze(-2), indices.squeeze(-2)

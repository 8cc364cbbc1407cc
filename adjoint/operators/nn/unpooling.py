"""The partial inverse of max pooling: values are placed at the positions of the maxima, and zeros elsewhere."""

from __future__ import annotations

from ..._runtime.determinism import alert_not_deterministic
from ...dispatch.annotations import Array
from ...dispatch.decorators import operator, public
from ...kernels.nn import pooling as kernels
from ...kernels.runtime.layout import following_images


def _declare(dims):
    class unpool:
        """Zeros in the shape of images, with the values at flat indices."""

        saved_display = {"output_size": lambda node: tuple(node.saved_output_size)}

        def forward(self: Array, indices: Array, output_size): ...

        def grad_self(grad, indices, output_size, xp):
            return xp.at_indices(grad, indices, dims)

    return operator(
        kernel=following_images(kernels.max_unpool) if dims == 2 else kernels.max_unpool,
        namespace=None,
        method=False,
        name=f"max_unpool{dims}d_of",
        node=f"MaxUnpool{dims}DBackward0",
        tangent="linear",
        aten_name=f"max_unpool{dims}d",
    )(unpool)


_UNPOOLINGS = {dims: _declare(dims) for dims in (2, 3)}


def _numbers(value, dims):
    return (value,) * dims if isinstance(value, int) else tuple(value)


def _output_size(input, kernel_size, stride, padding, output_size):
    """Return the output size, after checking that pooling maps it to about the size of the input."""
    dims = len(kernel_size)
    spatial = tuple(input.shape)[-dims:]
    if min(len(spatial), len(stride), len(padding)) < dims:
        raise IndexError("tuple index out of range")
    default = tuple(
        (length - 1) * step + width - 2 * pad
        for length, width, step, pad in zip(spatial, kernel_size, stride, padding, strict=False)
    )
    if output_size is None:
        return default
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for dim, (size, usual, step) in enumerate(zip(output_size, default, stride, strict=True)):
        if not usual - step < size < usual + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between {usual - step} and {usual + step})'
            )
    return tuple(output_size)


def _unpooled(dims, input, indices, size):
    alert_not_deterministic(f"max_unpooling{dims}d_forward_out")
    shape = tuple(input.shape)
    for dim in range(1, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but got "
                f"{list(shape)} with dimension {dim} being empty."
            )
    if len(size) != dims:
        words = "two elements (height, width)" if dims == 2 else "three elements (depth, height, width)"
        raise RuntimeError(f"There should be exactly {words} in output_size, but got {len(size)} elements.")
    return _UNPOOLINGS[dims](input, indices, size)


def _function(dims):
    def unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel = _numbers(kernel_size, dims)
        step = kernel if stride is None else _numbers(stride, dims)
        size = _output_size(input, kernel, step, _numbers(padding, dims), output_size)
        if dims > 1:
            return _unpooled(dims, input, indices, size)
        return _unpooled(2, input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1)).squeeze(-1)

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{dims}d"
    unpool.__doc__ = """The partial inverse of maximum pooling: values back at their indices, among zeros.

    `output_size` is the size of the images that were pooled, where several are possible.
    """
    return public(namespace="functional")(unpool)


for _dims in (1, 2, 3):
    _function(_dims)

"""Images sampled at the positions of a grid, and the grids of affine maps (Jaderberg et al., "Spatial transformer networks")."""

from __future__ import annotations

import math

from ..._runtime.tracebacks import warn
from ...dispatch.annotations import Array
from ...dispatch.decorators import internal, operator, public, tensors
from ...kernels.nn import grid_sampling as kernels
from ...kernels.nn.grid_sampling import Sampling


@internal(kernels.weights, out=False)
class grid_weights:
    """Return the weights of the pixels around each grid position, or derivatives of the orders `orders`, one per dimension."""

    def forward(grid: Array, sizes, sampling, orders): ...

    def grad_grid(grad, grid, sizes, sampling, orders, xp):
        parts = []
        for raised in kernels.raised(orders):
            part = (grad * xp.grid_weights(grid, sizes, sampling, raised)).sum(1)
            parts.append(part.reshape(grid.shape[:-1]))
        return xp.stack(parts, -1)


@internal(kernels.pixels, out=False)
class grid_pixels:
    """The pixels around each position of a grid."""

    def forward(input: Array, grid: Array, sampling): ...

    def grad_input(grad, grid, input_shape, sampling, xp):
        return xp.grid_scattered(grad, grid, tuple(input_shape[2:]), sampling)


@internal(kernels.scattered, out=False)
class grid_scattered:
    """Images of sums of the values for the pixels around each grid position."""

    def forward(self: Array, grid: Array, sizes, sampling): ...

    def grad_self(grad, grid, sampling, xp):
        return xp.grid_pixels(grad, grid, sampling)


@public(namespace=None, on_arrays=kernels.grid_sampler_gradients)
def grid_sampler_gradients(grad, input, grid, sampling, needs):
    """The gradients of images and grid."""
    sizes = tuple(input.shape[2:])
    zeros = (0,) * len(sizes)
    at_places = grad.reshape((*input.shape[:2], 1, math.prod(grid.shape[1:-1])))
    to_input = to_grid = None
    if needs[0]:
        counted = tensors.grid_weights(grid, sizes, sampling, zeros)
        to_input = tensors.grid_scattered(at_places * counted[:, None], grid, sizes, sampling)
    if needs[1]:
        products = (at_places * tensors.grid_pixels(input, grid, sampling)).sum(1)
        parts = [
            (products * tensors.grid_weights(grid, sizes, sampling, each)).sum(1) for each in kernels.raised(zeros)
        ]
        to_grid = tensors.stack([part.reshape(grid.shape[:-1]) for part in parts], -1)
    return to_input, to_grid


def _declare(dims):
    class grid_sampler:
        """Images at the positions of a grid.

        `kernels.nn.grid_sampling` lists the numbers of the modes and of the paddings.
        """

        def forward(input: Array, grid: Array, interpolation_mode, padding_mode, align_corners): ...

        differentiable = ("input", "grid")
        aten_gradients = (
            f"grid_sampler_{dims}d_backward(grad, input, grid, interpolation_mode, padding_mode, align_corners, needs)"
        )

        def grad_inputs(grad, input, grid, interpolation_mode, padding_mode, align_corners, needs, xp):
            sampling = Sampling(interpolation_mode, padding_mode, bool(align_corners))
            return xp.grid_sampler_gradients(grad, input, grid, sampling, needs)

    grid_sampler.__name__ = f"grid_sampler_{dims}d"
    return operator(
        kernel=kernels.grid_sampler,
        namespace=None,
        method=False,
        out=False,
        name=f"grid_sampler_{dims}d_of",
        node=f"GridSampler{dims}DBackward0",
        aten_name=f"grid_sampler_{dims}d",
    )(grid_sampler)


_SAMPLERS = {dims: _declare(dims) for dims in (2, 3)}


def _sampled(dims, input, grid, interpolation_mode, padding_mode, align_corners):
    shape, places = input._array.shape, grid._array.shape
    if shape[:1] != places[:1]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {list(shape)} and grid "
            f"with sizes {list(places)}"
        )
    if len(shape) > 2 and places[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got grid with sizes "
            f"{list(places)}"
        )
    for dim in range(2, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(shape)} with "
                f"dimension {dim} being empty"
            )
    if len(shape) != dims + 2 or len(places) != dims + 2:
        raise RuntimeError(
            f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, but got input with sizes "
            f"{list(shape)} and grid with sizes {list(places)}"
        )
    if dims == 3 and interpolation_mode == kernels.BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input._array.dtype is not grid._array.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.scalar_type} but found {grid.dtype.scalar_type}"
        )  # fmt: skip
    return _SAMPLERS[dims](input, grid, interpolation_mode, padding_mode, bool(align_corners))


@public()
def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """Images `(N, C, H, W)` at the positions of a grid `(N, h, w, 2)`; see `nn.functional.grid_sample`."""
    return _sampled(2, input, grid, interpolation_mode, padding_mode, align_corners)


@public()
def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """Volumes `(N, C, D, H, W)` at the positions of a grid `(N, d, h, w, 3)`; see `nn.functional.grid_sample`."""
    return _sampled(3, input, grid, interpolation_mode, padding_mode, align_corners)


@public()
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners: bool):
    """Images or volumes at the positions of a grid; see `nn.functional.grid_sample`."""
    return _sampled(3 if input.ndim == 5 else 2, input, grid, interpolation_mode, padding_mode, align_corners)


def _chosen(align_corners):
    """Return the option, or False with a warning if it is None."""
    if align_corners is None:
        warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
        )
    return align_corners or False


_MODES = {"bilinear": kernels.BILINEAR, "nearest": kernels.NEAREST, "bicubic": kernels.BICUBIC}
_PADDINGS = {"zeros": kernels.ZEROS, "border": kernels.BORDER, "reflection": kernels.REFLECTION}


@public(namespace="functional")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Images `(N, C, H, W)` at the positions of a grid `(N, h, w, 2)`, or volumes at the positions of a grid `(N, d, h, w, 3)`.

    A position consists of x, y (and z) from -1 to 1. With `align_corners`, -1 and 1 are the centres of the edge pixels.
    Otherwise they are the outer edges of these pixels. Outside the image, `padding_mode` selects zeros, the edge
    pixels, or the reflected image.

    >>> import adjoint as torch
    >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> torch.nn.functional.grid_sample(image, torch.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[2.5000]]]])
    """
    if mode not in _MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    align_corners = _chosen(align_corners)
    return tensors.grid_sampler(input, grid, _MODES[mode], _PADDINGS[padding_mode], align_corners)


# --- affine maps as grids -------------------------------------------------------------------------------------------


@operator(kernel=kernels.affine_grid, method=False, out=False, tangent="linear")
class affine_grid_generator:
    """The grid of positions that affine maps assign to the pixels of images of a size."""

    saved_display = {"size": lambda node: tuple(node.saved_size)}

    def forward(theta: Array, size, align_corners): ...

    def grad_theta(grad, size, align_corners, xp):
        return xp.affine_grid_backward(grad, size, align_corners)


@internal(kernels.affine_grid_backward, out=False, tangent="linear")
class affine_grid_backward:
    """The gradient of the maps."""

    def forward(self: Array, size, align_corners): ...

    def grad_self(grad, size, align_corners, xp):
        return xp.affine_grid_generator(grad, size, align_corners)


@public(namespace="functional")
def affine_grid(theta, size, align_corners=None):
    """The grid for `grid_sample` from affine maps `(N, 2, 3)` or `(N, 3, 4)`, for images or volumes of the given size.

    >>> import adjoint as torch
    >>> torch.nn.functional.affine_grid(torch.eye(2, 3)[None], (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    align_corners = _chosen(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    dims = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
            "intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if theta.shape[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {dims + 1}] but got: "
            f"[{theta.shape[0]}, {dims + 1}]."
        )
    return tensors.affine_grid_generator(theta, size, align_corners)

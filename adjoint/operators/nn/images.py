"""Rearranging and resizing images: sliding blocks as columns, channels as pixels, interpolation (one operator per mode)."""

from __future__ import annotations

from typing import Any

from ...codegen.kernel import Kernel
from ...dispatch.annotations import Array, Int
from ...dispatch.arguments import is_of_type
from ...dispatch.decorators import internal, operator, public, tensors
from ...kernels.nn import images as kernels
from ...kernels.nn import resampling
from ...kernels.runtime.layout import following_images


@internal(kernels.im2col, out=False, node="Im2ColBackward0", tangent="linear", batch="samples of 3")
class im2col:
    """The elements of the sliding blocks of images, as columns."""

    saved_display = {
        "self_sym_sizes": None,
        "self_sym_argsize_minus_2": lambda node: node.saved_self_shape[-2],
        "self_sym_argsize_minus_1": lambda node: node.saved_self_shape[-1],
    }

    def forward(self: Array, kernel_size, dilation, padding, stride): ...

    def grad_self(grad, self_shape, kernel_size, dilation, padding, stride, xp):
        return xp.col2im(grad, tuple(self_shape[-2:]), kernel_size, dilation, padding, stride)


@internal(kernels.col2im, out=False, node="Col2ImBackward0", tangent="linear", batch="samples of 2")
class col2im:
    """Images in which each element is the sum of its values in the columns."""

    def forward(self: Array, output_size, kernel_size, dilation, padding, stride): ...

    def grad_self(grad, kernel_size, dilation, padding, stride, xp):
        return xp.im2col(grad, kernel_size, dilation, padding, stride)


def _pair(name, value):
    """Return a number for each of the two dimensions."""
    values = (value, value) if is_of_type(value, "Int") else tuple(value)
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    return values


@public(namespace="functional")
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The elements of each sliding block of `(N, C, H, W)`, as columns `(N, C * kh * kw, blocks)`.

    >>> import adjoint as torch
    >>> torch.nn.functional.unfold(torch.arange(6.0).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    return tensors.im2col(
        input, _pair("kernel_size", kernel_size), _pair("dilation", dilation), _pair("padding", padding),
        _pair("stride", stride),
    )  # fmt: skip


@public(namespace="functional")
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The image `(N, C, *output_size)`. Each element is the sum of its values in the columns `(N, C * kh * kw, blocks)`.

    >>> import adjoint as torch
    >>> torch.nn.functional.fold(torch.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    return tensors.col2im(
        input, _pair("output_size", output_size), _pair("kernel_size", kernel_size), _pair("dilation", dilation),
        _pair("padding", padding), _pair("stride", stride),
    )  # fmt: skip


_MOVES: Any = {"method": False, "out": False, "tangent": "linear"}


@operator(
    kernel=Kernel(following_images(kernels.pixel_shuffle), quiet=True), batch="leading", narrow="trivial", **_MOVES
)
class pixel_shuffle:
    """`(..., C r², H, W)` rearranged to `(..., C, H r, W r)` (Shi et al., 2016).

    >>> import adjoint as torch
    >>> torch.pixel_shuffle(torch.arange(8).reshape(4, 1, 2), 2)
    tensor([[[0, 2, 1, 3],
             [4, 6, 5, 7]]])
    """

    def forward(self: Array, upscale_factor: Int): ...

    def grad_self(grad, upscale_factor, xp):
        return xp.pixel_unshuffle(grad, upscale_factor)


@operator(
    kernel=Kernel(following_images(kernels.pixel_unshuffle), quiet=True), batch="leading", narrow="trivial", **_MOVES
)
class pixel_unshuffle:
    """`(..., C, H r, W r)` rearranged to `(..., C r², H, W)`: the inverse of `pixel_shuffle`."""

    def forward(self: Array, downscale_factor: Int): ...

    def grad_self(grad, downscale_factor, xp):
        return xp.pixel_shuffle(grad, downscale_factor)


@operator(kernel=following_images(kernels.channel_shuffle), batch="samples", **_MOVES)
class channel_shuffle:
    """The channels (dimension 1) of `groups` groups interleaved: first the first channel of each group, then the second, ..."""

    def forward(self: Array, groups: Int): ...

    def grad_self(grad, groups, xp):
        return xp.channel_shuffle(grad, grad.shape[1] // groups)


WAYS = {
    **{(mode, dims): f"upsample_{mode.replace('-', '_')}{dims}d" for mode in resampling.NEAREST for dims in (1, 2, 3)},
    ("linear", 1): "upsample_linear1d",
    ("linear", 2): "upsample_bilinear2d",
    ("linear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}
"""The name of the operator for each mode and number of dimensions."""


def _shown(mode, dims):
    """Return the options that nodes show: one scale per dimension, and `align_corners` in modes that have it."""
    names = ("scales",) if dims == 1 else ("scales_d", "scales_h", "scales_w")[-dims:]
    shown: dict[str, Any] = {} if dims == 1 else {"scales": None}
    for number, name in enumerate(names):
        shown[name] = lambda node, number=number: node.saved_scales[number]
    return {**shown, "align_corners": None} if mode in resampling.NEAREST else shown


def _declare(name, mode, antialias):
    """Declare the operator of this name and mode. Its gradient is computed by `resample_gradient`."""
    shown = "".join(part.capitalize() for part in name.replace("nearest_exact", "nearestExact").split("_"))
    node = f"{shown.replace('Nearestexact', 'NearestExact').removesuffix('d')}D{'Aa' if antialias else ''}Backward0"
    full_name = f"{name}_aa" if antialias else name
    in_aten = f"_{full_name}" if antialias or mode == "nearest-exact" else full_name
    options = "" if mode in resampling.NEAREST else "align_corners, "

    class upsample:
        aten_gradients = {"self": f"{in_aten}_backward(grad, output_size, self_shape, {options}*(scales or ()))"}

        def forward(self: Array, output_size, align_corners, scales): ...

        def grad_self(grad, self_shape, output_size, align_corners, scales, xp):
            return xp.resample_gradient(grad, tuple(self_shape[2:]), mode, align_corners, antialias, scales)

        saved_display = _shown(mode, int(name[-2]))

    upsample.__doc__ = f"`(N, C, *)` of another size, mode {mode}{', averaging' if antialias else ''}."
    operator(
        kernel=following_images(resampling.resampling(mode, antialias)),
        namespace=None,
        method=False,
        out=False,
        name=full_name,
        node=node,
        tangent="linear",
        batch="samples",
        aten_name=in_aten,
    )(upsample)


def _publish(name, mode, dims):
    """Return the operator as a function with the parameters of PyTorch's dispatcher."""
    sides = ("scales",) if dims == 1 else ("scales_d", "scales_h", "scales_w")[-dims:]
    parameters = (*(() if mode in resampling.NEAREST else ("align_corners",)), *sides)

    def upsample(input, output_size, *options, scale_factors=None, **named):
        named.update(zip(parameters, options, strict=False))
        factors = named.get(parameters[-dims]) if scale_factors is None else scale_factors
        for given, what in (output_size, "output_size"), (scale_factors, "scale_factors"):
            if given is not None and len(given) != dims:
                raise RuntimeError(
                    f"Expected static_cast<int64_t>({what}->size()) == spatial_dimensions to be true, but got false."
                )
        if input._array.ndim != dims + 2:
            raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {input._array.ndim}")
        if not isinstance(factors, list | tuple):
            scales = tuple(named.get(side) for side in sides)
            return getattr(tensors, name)(input, tuple(output_size), named.get("align_corners", False), scales)
        if output_size is not None:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        size = tuple(int(n * factor) for n, factor in zip(input._array.shape[2:], factors, strict=True))
        return getattr(tensors, name)(input, size, named.get("align_corners", False), tuple(factors))

    private = name.endswith("_aa") or mode == "nearest-exact"
    upsample.__name__ = upsample.__qualname__ = f"_{name}" if private else name
    upsample.__doc__ = f"`(N, C, *)` of `output_size`, or of sizes multiplied by `scale_factors`, mode {mode}."
    public(namespace="aten")(upsample)


for (_mode, _dims), _name in WAYS.items():
    _declare(_name, _mode, False)
    _publish(_name, _mode, _dims)
for _name, _mode in (
    ("upsample_bilinear2d", "linear"),
    ("upsample_bicubic2d", "bicubic"),
    ("upsample_lanczos2d", "lanczos"),
):
    _declare(_name, _mode, True)
    _publish(f"{_name}_aa", _mode, 2)


@internal(resampling.resample_backward, out=False, tangent="linear", batch="samples")
class resample_gradient:
    """The gradient of an interpolation. Each element of the input gets the sum of its contributions to the output."""

    def forward(self: Array, size, mode, align_corners, antialias, scales): ...

    def grad_self(grad, self_shape, mode, align_corners, antialias, scales, xp):
        name = "upsample_lanczos2d_aa" if mode == "lanczos" else WAYS[mode, len(scales)] + ("_aa" if antialias else "")
        return getattr(xp, name)(grad, tuple(self_shape[2:]), align_corners, scales)

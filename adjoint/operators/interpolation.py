"""Images of another size: one operator for each way to interpolate and each number of dimensions."""

from __future__ import annotations

from ..kernels import images as kernels
from .build import operator

WAYS = {
    **{(mode, dims): f"upsample_{mode.replace('-', '_')}{dims}d" for mode in kernels.NEAREST for dims in (1, 2, 3)},
    ("linear", 1): "upsample_linear1d",
    ("linear", 2): "upsample_bilinear2d",
    ("linear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}
"""The name of the operator for each mode and number of dimensions."""


def _shown(mode, dims):
    """What nodes show: one scale for each dimension; ways without corners to align show nothing of them."""
    names = ("scales",) if dims == 1 else ("scales_d", "scales_h", "scales_w")[-dims:]
    shown = {} if dims == 1 else {"scales": None}
    for number, name in enumerate(names):
        shown[name] = lambda node, number=number: node.saved_scales[number]
    return {**shown, "align_corners": None} if mode in kernels.NEAREST else shown


def _declare(name, mode, antialias):
    """The operator of this name and mode; its gradient is that of `resample_gradient`."""
    shown = "".join(part.capitalize() for part in name.replace("nearest_exact", "nearestExact").split("_"))
    node = f"{shown.replace('Nearestexact', 'NearestExact').removesuffix('d')}D{'Aa' if antialias else ''}Backward0"

    class upsample:
        def forward(self: Array, output_size, align_corners, scales):
            return kernels.resample(self, output_size, mode, align_corners, antialias, scales)

        def grad_self(grad, self_shape, output_size, align_corners, scales, xp):
            return xp.resample_gradient(grad, tuple(self_shape[2:]), mode, align_corners, antialias, scales)

        shown = _shown(mode, int(name[-2]))

    upsample.__doc__ = f"`(N, C, *)` of another size, mode {mode}{', averaging' if antialias else ''}."
    full_name = f"{name}_aa" if antialias else name
    operator(namespace=None, method=False, out=False, name=full_name, node=node, tangent="linear")(upsample)


for (_mode, _dims), _name in WAYS.items():
    _declare(_name, _mode, False)
for _name, _mode in (("upsample_bilinear2d", "linear"), ("upsample_bicubic2d", "bicubic")):
    _declare(_name, _mode, True)


@operator(kernel=kernels.resample_backward, namespace=None, method=False, out=False, tangent="linear")
class resample_gradient:
    """The gradient of an interpolation: what each element gave is gathered where it came from."""

    def forward(self: Array, size, mode, align_corners, antialias, scales): ...

    def grad_self(grad, self_shape, mode, align_corners, antialias, scales, xp):
        name = WAYS[mode, len(scales)] + ("_aa" if antialias else "")
        return getattr(xp, name)(grad, tuple(self_shape[2:]), align_corners, scales)

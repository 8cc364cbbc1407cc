"""Channels rearranged into pixels, and back, and among themselves."""

from __future__ import annotations

from ..kernels import images as kernels
from .build import operator


@operator(kernel=kernels.pixel_shuffle, method=False, out=False, tangent="linear")
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


@operator(kernel=kernels.pixel_unshuffle, method=False, out=False, tangent="linear")
class pixel_unshuffle:
    """`(..., C, H r, W r)` rearranged to `(..., C r², H, W)`: the inverse of `pixel_shuffle`."""

    def forward(self: Array, downscale_factor: Int): ...

    def grad_self(grad, downscale_factor, xp):
        return xp.pixel_shuffle(grad, downscale_factor)


@operator(kernel=kernels.channel_shuffle, method=False, out=False, tangent="linear")
class channel_shuffle:
    """The channels (dimension 1) of `groups` groups interleaved: the first of each group, the second, ..."""

    def forward(self: Array, groups: Int): ...

    def grad_self(grad, groups, xp):
        return xp.channel_shuffle(grad, grad.shape[1] // groups)

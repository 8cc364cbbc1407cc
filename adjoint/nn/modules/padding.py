"""Padding, and the rearrangement of channels and pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from adjoint import Tensor

from .. import functional as F
from .dimensions import OfDimensions
from .module import Module

__all__ = [
    "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
    "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

Size = int | Sequence[int]


class _Pad(OfDimensions):
    """`padding` is one number for all sides, or `(before, after)` for the last dimension, then for the dimension before it."""

    _mode: ClassVar[str]

    def __init__(self, padding: Size) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    _mode = "constant"

    def __init__(self, padding: Size, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd, dims=1):
    """Pads the last dimension with `value`."""


class ConstantPad2d(_ConstantPadNd, dims=2):
    """Pads the last two dimensions with `value`."""


class ConstantPad3d(_ConstantPadNd, dims=3):
    """Pads the last three dimensions with `value`."""


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Size) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads the last dimension with zeros."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads the last two dimensions with zeros."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads the last three dimensions with zeros."""


class _ReflectionPad(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPad, dims=1):
    """Pads the last dimension with its mirror image."""


class ReflectionPad2d(_ReflectionPad, dims=2):
    """Pads the last two dimensions with their mirror image."""


class ReflectionPad3d(_ReflectionPad, dims=3):
    """Pads the last three dimensions with their mirror image."""


class _ReplicationPad(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPad, dims=1):
    """Pads the last dimension with its outermost values."""


class ReplicationPad2d(_ReplicationPad, dims=2):
    """Pads the last two dimensions with their outermost values."""


class ReplicationPad3d(_ReplicationPad, dims=3):
    """Pads the last three dimensions with their outermost values."""


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        low, high = self._dims + 1, self._dims + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad, dims=1):
    """Pads the last dimension with values from the opposite end."""


class CircularPad2d(_CircularPad, dims=2):
    """Pads the last two dimensions with values from the opposite ends."""


class CircularPad3d(_CircularPad, dims=3):
    """Pads the last three dimensions with values from the opposite ends."""


class PixelShuffle(Module):
    """Rearranges `(..., C r², H, W)` to `(..., C, H r, W r)`."""

    _repr_names = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """Rearranges `(..., C, H r, W r)` to `(..., C r², H, W)`."""

    _repr_names = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """Interleaves the channels of `groups` groups."""

    _repr_names = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

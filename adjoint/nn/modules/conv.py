"""Convolutions and transposed convolutions over one, two or three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .dimensions import OfDimensions
from .lookup import unusual

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
]  # fmt: skip

Size = int | Sequence[int]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(OfDimensions):
    """The base of convolutions of all dimensions: parameters, their initialization, and printing."""

    bias: Tensor | None

    def _setup(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: str | Size,
        dilation: Size,
        transposed: bool,
        output_padding: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(step != 1 for step in self._repeated(stride)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._repeated(kernel_size)
        self.stride = self._repeated(stride)
        self.padding: Any = padding if isinstance(padding, str) else self._repeated(padding)
        self.dilation = self._repeated(dilation)
        self.transposed = transposed
        self.output_padding = self._repeated(output_padding)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(torch.empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _padding_for_pad(self) -> list[int]:
        """Return the padding in the order of the argument of `pad`: before and after the last dimension first."""
        if isinstance(self.padding, str):
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            if self.padding == "valid":
                total = [0] * len(total)
            return [part for t in reversed(total) for part in (t // 2, t - t // 2)]
        return [p for p in reversed(self.padding) for _ in range(2)]

    def reset_parameters(self) -> None:
        # With a = √5, Kaiming's bound is 1 / √fan_in.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _held(self) -> tuple[Tensor, Tensor | None]:
        held: dict[str, Any] = self._parameters
        try:
            return held["weight"], held["bias"]
        except KeyError:  # a reparametrization stores them elsewhere
            return self.weight, self.bias

    def extra_repr(self) -> str:
        zeros, ones = (0,) * len(self.kernel_size), (1,) * len(self.dilation)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += unusual(self, padding=zeros, dilation=ones, output_padding=zeros, groups=1)
        return text + ", bias=False" * (self.bias is None) + unusual(self, padding_mode="zeros")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    _stem = "conv"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: str | Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = (groups, bias, padding_mode, device, dtype)
        self._setup(in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, *made)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._dims
        return getattr(F, self._function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = self._held()
        return self._conv_forward(input, weight, bias)


class Conv1d(_Conv, dims=1):
    """Cross-correlation of `(N, in_channels, L)` with a kernel `(out_channels, in_channels / groups, k)`."""


class Conv2d(_Conv, dims=2):
    """Cross-correlation of `(N, in_channels, H, W)` with a kernel `(out_channels, in_channels / groups, kH, kW)`.

    Args:
        padding: the number of zeros on both sides of each dimension, or "valid" (no padding) or "same" (preserves the
            size).
        dilation: the distance between the elements of the kernel.
        groups: the number of groups of input and output channels that are computed independently.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    >>> import adjoint as torch
    >>> torch.nn.Conv2d(1, 4, 3, padding=1)(torch.ones(2, 1, 8, 8)).shape
    torch.Size([2, 4, 8, 8])
    """


class Conv3d(_Conv, dims=3):
    """Cross-correlation of `(N, in_channels, D, H, W)`; see `Conv2d`."""


class _ConvTransposeNd(_ConvNd):
    _stem = "conv_transpose"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        made = (groups, bias, padding_mode, device, dtype)
        self._setup(in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, *made)

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """Return the additional size on one side that gives the output the requested size."""
        if output_size is None:
            return self._repeated(self.output_padding)
        n = self._dims
        spatial = list(output_size)
        if len(spatial) == input.dim() != n:
            spatial = spatial[-n:]
        if len(spatial) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {input.dim()} elements "
                f"(got {len(spatial)})"
            )
        smallest = [
            (size - 1) * self.stride[i] - 2 * self.padding[i] + self.dilation[i] * (self.kernel_size[i] - 1) + 1
            for i, size in enumerate(input.shape[-n:])
        ]
        largest = [size + step - 1 for size, step in zip(smallest, self.stride, strict=True)]
        if not all(low <= size <= high for low, size, high in zip(smallest, spatial, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(spatial, smallest, strict=True))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        weight, bias = self._held()
        return getattr(F, self._function)(
            input,
            weight,
            bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd, dims=1):
    """The gradient of `Conv1d` with respect to its input, as a layer; see `ConvTranspose2d`."""


class ConvTranspose2d(_ConvTransposeNd, dims=2):
    """The gradient of `Conv2d` with respect to its input, as a layer.

    Args:
        output_padding: an additional size on one side of the output. Several output sizes are possible, because a
            convolution maps them to the same size. This argument selects one. Alternatively, pass `output_size` to
            `forward`.
    """


class ConvTranspose3d(_ConvTransposeNd, dims=3):
    """The gradient of `Conv3d` with respect to its input, as a layer; see `ConvTranspose2d`."""

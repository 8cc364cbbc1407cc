"""Pooling: one value for each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjoint import Tensor

from .. import functional as F
from .dimensions import OfDimensions

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip

Size = int | Sequence[int]


class _MaxPoolNd(OfDimensions):
    _repr_names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    _stem = "max_pool"

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool1d(_MaxPoolNd, dims=1):
    """The maximum of each window of the last dimension; see `MaxPool2d`."""


class MaxPool2d(_MaxPoolNd, dims=2):
    """The maximum of each window of the last two dimensions.

    Args:
        kernel_size: the size of the window.
        stride: the distance between windows; `kernel_size` by default.
        padding: the number of minus infinities on both sides, at most half of the window.
        dilation: the distance between the elements of a window.
        return_indices: whether to return the flat index of each maximum too.
        ceil_mode: whether to use windows that extend beyond the end.
    """


class MaxPool3d(_MaxPoolNd, dims=3):
    """The maximum of each window of the last three dimensions; see `MaxPool2d`."""


class _AvgPoolNd(OfDimensions):
    _repr_names = ("kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd, dims=1):
    """The mean of each window of the last dimension; see `AvgPool2d`."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = self._repeated(kernel_size)
        self.stride = self._repeated(stride if stride is not None else kernel_size)
        self.padding = self._repeated(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(_AvgPoolNd):
    _stem = "avg_pool"

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolWithDivisor, dims=2):
    """The mean of each window of the last two dimensions.

    Args:
        kernel_size: the size of the window.
        stride: the distance between windows; `kernel_size` by default.
        padding: the number of zeros on both sides, at most half of the window.
        ceil_mode: whether to use windows that extend beyond the end.
        count_include_pad: whether the divisor includes the padding.
        divisor_override: a divisor to use instead of the size of the window.
    """


class AvgPool3d(_AvgPoolWithDivisor, dims=3):
    """The mean of each window of the last three dimensions; see `AvgPool2d`."""


class _AdaptiveAvgPoolNd(OfDimensions):
    _repr_names = ("output_size",)
    _stem = "adaptive_avg_pool"

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, dims=1):
    """Averages over windows. The size of the last dimension becomes `output_size`."""


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, dims=2):
    """Averages over windows. The sizes of the last two dimensions become `output_size` (None keeps a size)."""


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, dims=3):
    """Averages over windows. The sizes of the last three dimensions become `output_size`."""


class _AdaptiveMaxPoolNd(OfDimensions):
    _repr_names = ("output_size",)
    _stem = "adaptive_max_pool"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, dims=1):
    """The maxima of windows. The size of the last dimension becomes `output_size`."""


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, dims=2):
    """The maxima of windows. The sizes of the last two dimensions become `output_size`."""


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, dims=3):
    """The maxima of windows. The sizes of the last three dimensions become `output_size`."""


class _MaxUnpoolNd(OfDimensions):
    _repr_names = ("kernel_size", "stride", "padding")
    _stem = "max_unpool"

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        self.kernel_size = self._repeated(kernel_size)
        self.stride = self._repeated(kernel_size if stride is None else stride)
        self.padding = self._repeated(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return getattr(F, self._function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd, dims=1):
    """The partial inverse of `MaxPool1d`; see `MaxUnpool2d`."""


class MaxUnpool2d(_MaxUnpoolNd, dims=2):
    """The partial inverse of `MaxPool2d`. The output contains the maxima at their indices, and zeros elsewhere.

    >>> import adjoint as torch
    >>> images = torch.tensor([[[[1.0, 2.0], [4.0, 3.0]]]])
    >>> torch.nn.MaxUnpool2d(2)(*torch.nn.MaxPool2d(2, return_indices=True)(images))
    tensor([[[[0., 0.],
              [4., 0.]]]])
    """


class MaxUnpool3d(_MaxUnpoolNd, dims=3):
    """The partial inverse of `MaxPool3d`; see `MaxUnpool2d`."""


class _LPPoolNd(OfDimensions):
    _repr_names = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _stem = "lp_pool"

    def __init__(
        self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd, dims=1):
    """The p-norm of each window of the last dimension; see `LPPool2d`."""


class LPPool2d(_LPPoolNd, dims=2):
    """The p-norm of each window of the last two dimensions, where p is `norm_type`.

    >>> import adjoint as torch
    >>> torch.nn.LPPool2d(2, 2)(torch.tensor([[[[1.0, 1.0], [1.0, 1.0]]]]))
    tensor([[[[2.]]]])
    """


class LPPool3d(_LPPoolNd, dims=3):
    """The p-norm of each window of the last three dimensions; see `LPPool2d`."""


class _FractionalMaxPoolNd(OfDimensions):
    _stem = "fractional_max_pool"

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._repeated(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._repeated(output_size)
        self.output_ratio = None if output_ratio is None else self._repeated(output_ratio)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd, dims=2):
    """The maximum of windows at random positions. Each call draws new positions (Graham, 2014).

    Args:
        output_size: the size of the output. Alternatively:
        output_ratio: the ratio of the output size to the input size.
        return_indices: whether to return the flat indices of the maxima too.

    >>> import adjoint as torch
    >>> torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)(torch.rand(1, 1, 8, 8)).shape
    torch.Size([1, 1, 4, 4])
    """


class FractionalMaxPool3d(_FractionalMaxPoolNd, dims=3):
    """The maximum of windows at random positions in three dimensions; see `FractionalMaxPool2d`."""

"""The choice of an algorithm for convolutions, under the names of `torch._C`. Here, one algorithm computes all of them."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from adjoint.tensor import Tensor

_ConvBackend = IntEnum(
    "_ConvBackend",
    "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise MiopenTranspose Mkldnn "
    "MkldnnTranspose MkldnnEmpty NnpackSpatial Overrideable Slow2d Slow3d SlowDilated2d SlowDilated3d SlowTranspose2d "
    "SlowTranspose3d Winograd3x3Depthwise Xnnpack2d Mps MpsTranspose",
    start=0,
)
"""The algorithms that PyTorch chooses from."""


def select_conv_backend(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    bias_sizes: Any = None,
) -> _ConvBackend:
    """Return the algorithm that PyTorch chooses if it has no library for convolutions."""
    if 0 in input.shape[:2]:
        return _ConvBackend.Empty
    kind = "Transpose" if transposed else "Dilated" if max(dilation) > 1 else ""
    return _ConvBackend[f"Slow{kind}{max(input.dim() - 2, 2)}d"]

"""Maximum pooling, with or without the indices of the maxima. The other pooling functions are operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch

from .declared import operators

Size = int | Sequence[int]


def _max_pool(name: str, plain: Callable[..., Any], with_indices: Callable[..., Any]) -> Callable[..., Any]:
    def max_pool(
        input: torch.Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        function = with_indices if return_indices else plain
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = name
    max_pool.__doc__ = (
        "The maximum of each window; with `return_indices` also its flat index in the spatial dimensions."
    )
    return max_pool


def _adaptive_max_pool(name: str, with_indices: Callable[..., Any]) -> Callable[..., Any]:
    def adaptive_max_pool(input: torch.Tensor, output_size: Any, return_indices: bool = False) -> Any:
        result = with_indices(input, output_size)
        return result if return_indices else result[0]

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = name
    adaptive_max_pool.__doc__ = (
        "The maximum of windows chosen so that the output has `output_size`; with `return_indices` also its flat index."
    )
    return adaptive_max_pool


max_pool1d = _max_pool("max_pool1d", operators.max_pool1d, operators.max_pool1d_with_indices)
max_pool2d = _max_pool("max_pool2d", operators.max_pool2d, operators.max_pool2d_with_indices)
max_pool3d = _max_pool("max_pool3d", operators.max_pool3d, operators.max_pool3d_with_indices)
adaptive_max_pool1d = _adaptive_max_pool("adaptive_max_pool1d", operators.adaptive_max_pool1d)
adaptive_max_pool2d = _adaptive_max_pool("adaptive_max_pool2d", operators.adaptive_max_pool2d)
adaptive_max_pool3d = _adaptive_max_pool("adaptive_max_pool3d", operators.adaptive_max_pool3d)

"""Maximum pooling, with or without the indices of the maxima. Norms of windows. The other pooling functions are operators."""

from __future__ import annotations

import math
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


max_pool1d, max_pool2d, max_pool3d, max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _max_pool(
        f"max_pool{dims}d{form}",
        getattr(operators, f"max_pool{dims}d{form}"),
        getattr(operators, f"max_pool{dims}d_with_indices"),
    )
    for form in ("", "_with_indices")
    for dims in (1, 2, 3)
)
adaptive_max_pool1d = _adaptive_max_pool("adaptive_max_pool1d", operators.adaptive_max_pool1d)
adaptive_max_pool2d = _adaptive_max_pool("adaptive_max_pool2d", operators.adaptive_max_pool2d)
adaptive_max_pool3d = _adaptive_max_pool("adaptive_max_pool3d", operators.adaptive_max_pool3d)


def _lp_pool(name: str, average: Callable[..., torch.Tensor], dims: int) -> Callable[..., torch.Tensor]:
    def lp_pool(
        input: torch.Tensor,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ) -> torch.Tensor:
        sizes = (kernel_size,) * dims if isinstance(kernel_size, int) else kernel_size
        means = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (torch.sign(means) * torch.relu(torch.abs(means))).mul(math.prod(sizes)).pow(1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = name
    lp_pool.__doc__ = "The p-norm of each window: `sum(x ** p) ** (1 / p)`, for p the `norm_type`."
    return lp_pool


lp_pool1d = _lp_pool("lp_pool1d", operators.avg_pool1d, 1)
lp_pool2d = _lp_pool("lp_pool2d", operators.avg_pool2d, 2)
lp_pool3d = _lp_pool("lp_pool3d", operators.avg_pool3d, 3)


def _fractional_max_pool(name: str, dims: int) -> Callable[..., Any]:
    def fractional_max_pool(
        input: torch.Tensor,
        kernel_size: Size,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: torch.Tensor | None = None,
    ) -> Any:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if len(output_ratio) != dims:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(input.size(dim - dims) * ratio) for dim, ratio in enumerate(output_ratio)]
        if _random_samples is None:
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            _random_samples = torch.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype)
        found = getattr(operators, name)(input, kernel_size, output_size, _random_samples)
        return found if return_indices else found[0]

    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    fractional_max_pool.__doc__ = (
        "The maximum of windows whose places are drawn, of `output_size` or `output_ratio` times the input's size; with "
        "`return_indices` also its flat index (Graham, 2014)."
    )
    return fractional_max_pool


fractional_max_pool2d = _fractional_max_pool("fractional_max_pool2d", 2)
fractional_max_pool3d = _fractional_max_pool("fractional_max_pool3d", 3)


def _always_with_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    def with_indices(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{**kwargs, "return_indices": True})

    with_indices.__name__ = with_indices.__qualname__ = f"{function.__name__}_with_indices"
    with_indices.__doc__ = f"`{function.__name__}` with `return_indices`."
    return with_indices


adaptive_max_pool1d_with_indices = _always_with_indices(adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _always_with_indices(adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _always_with_indices(adaptive_max_pool3d)
fractional_max_pool2d_with_indices = _always_with_indices(fractional_max_pool2d)
fractional_max_pool3d_with_indices = _always_with_indices(fractional_max_pool3d)

"""Max pooling, with or without the indices of the maxima, and norms of windows. The other pooling functions are operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import adjoint as torch
from adjoint import Tensor

from .declared import operators

Size = int | Sequence[int]


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _max_pool(name: str, plain: Callable[..., Any], with_indices: Callable[..., Any]) -> Callable[..., Any]:
    def max_pool(
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        function = with_indices if return_indices else plain
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)

    doc = "The maximum of each window; with `return_indices` also its flat index in the spatial dimensions."
    return _named(max_pool, name, doc)


def _adaptive_max_pool(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the function with this name, and the one with indices, which it calls by its public name."""

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return getattr(operators, name)(input, output_size)

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        found = getattr(torch.nn.functional, f"{name}_with_indices")(input, output_size)
        return found if return_indices else found[0]

    doc = (
        "The maximum of windows chosen so that the output has `output_size`; with `return_indices` also its flat index."
    )
    return (
        _named(adaptive_max_pool, name, doc),
        _named(with_indices, f"{name}_with_indices", f"`{name}` with `return_indices`."),
    )


max_pool1d, max_pool2d, max_pool3d, max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    _max_pool(
        f"max_pool{dims}d{form}",
        getattr(operators if form else torch.operators, f"max_pool{dims}d{form}"),
        getattr(operators, f"max_pool{dims}d_with_indices"),
    )
    for form in ("", "_with_indices")
    for dims in (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool("adaptive_max_pool1d")
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool("adaptive_max_pool2d")
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool("adaptive_max_pool3d")


def _lp_pool(name: str, dims: int) -> Callable[..., Tensor]:
    def lp_pool(
        input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> Tensor:
        sizes = (kernel_size,) * dims if isinstance(kernel_size, int) else kernel_size
        means = getattr(torch.nn.functional, f"avg_pool{dims}d")(
            input.pow(norm_type), kernel_size, stride, 0, ceil_mode
        )
        return (
            (torch.sign(means) * torch.nn.functional.relu(torch.abs(means))).mul(math.prod(sizes)).pow(1.0 / norm_type)
        )

    return _named(lp_pool, name, "The p-norm of each window: `sum(x ** p) ** (1 / p)`, for p the `norm_type`.")


lp_pool1d = _lp_pool("lp_pool1d", 1)
lp_pool2d = _lp_pool("lp_pool2d", 2)
lp_pool3d = _lp_pool("lp_pool3d", 3)


def _fractional_max_pool(name: str, dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the function with this name, and the function with the suffix `_with_indices`."""

    def with_indices(
        input: Tensor,
        kernel_size: Size,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if len(output_ratio) != dims:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(input.size(dim - dims) * ratio) for dim, ratio in enumerate(output_ratio)]
        if _random_samples is None:
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            _random_samples = torch.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
        return getattr(operators, name)(input, kernel_size, output_size, _random_samples)

    def fractional_max_pool(
        input: Tensor,
        kernel_size: Size,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        found = getattr(torch.nn.functional, f"{name}_with_indices")(
            input, kernel_size, output_size, output_ratio, return_indices, _random_samples
        )
        return found if return_indices else found[0]

    doc = (
        "The maximum of windows whose places are drawn, of `output_size` or `output_ratio` times the input's size; with "
        "`return_indices` also its flat index (Graham, 2014)."
    )
    return (
        _named(fractional_max_pool, name, doc),
        _named(with_indices, f"{name}_with_indices", f"`{name}` with `return_indices`."),
    )


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max_pool("fractional_max_pool2d", 2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max_pool("fractional_max_pool3d", 3)

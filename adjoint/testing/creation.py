"""Tensors of random values for tests."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch

from .. import Tensor


def make_tensor(
    *shape: Any,
    dtype: torch.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: torch.memory_format | None = None,
) -> Tensor:
    """A tensor of this shape with values drawn uniformly from [low, high).

    The default interval is from -9 to 9 for floating-point numbers, and from -9 (0 if unsigned) to 9 for integers.
    Bools are drawn from both values. `noncontiguous` gives the last dimension a stride of 2 elements. `exclude_zero`
    replaces zeros by the smallest positive normal number, or by 1 for integers.

    >>> from adjoint.testing import make_tensor
    >>> make_tensor((2, 3), dtype=torch.float64, device="cpu", low=0, high=1).shape
    torch.Size([2, 3])

    Raises:
        ValueError: if `low` is not less than `high`, or if it is outside the range of the dtype.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    numeric = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not numeric:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    low, high = _interval(low, high, dtype)
    apart = noncontiguous and math.prod(sizes) > 1
    drawn = torch.float32 if dtype.is_floating_point and dtype.itemsize == 1 else dtype
    result = torch.empty((*sizes[:-1], 2 * sizes[-1]) if apart else sizes, dtype=drawn, device=device)
    if dtype.is_complex:
        torch.view_as_real(result).uniform_(low, high)
    elif dtype.is_floating_point:
        result = result.uniform_(low, high).to(dtype)
    elif dtype is torch.bool:
        result.random_(0, 2)
    else:
        result.random_(math.floor(low), math.ceil(high))
    if apart:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = torch.finfo(dtype).tiny if numeric else 1
    return result.requires_grad_(requires_grad)


def _interval(low: float | None, high: float | None, dtype: torch.dtype) -> tuple[float, float]:
    """Return the interval of values: the requested interval, restricted to the range of the dtype."""
    lowest, highest, default_low, default_high = _range(dtype)
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < lowest or low > highest or (dtype is torch.bool and low >= highest):
        end = highest if dtype is torch.bool else f"{highest}]"
        interval = f"[{lowest}, {highest})" if dtype is torch.bool else f"[{lowest}, {end}"
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports {interval}"
        )
    return max(low, lowest), min(high, highest)


def _range(dtype: torch.dtype) -> tuple[float, float, float, float]:
    """Return the smallest number, the largest number, and the default interval."""
    if dtype is torch.bool:
        return 0, 2, 0, 2
    if (dtype.is_floating_point or dtype.is_complex) and dtype not in (torch.float8_e8m0fnu, torch.float4_e2m1fn_x2):
        limits = torch.finfo(dtype)
        return limits.min, limits.max, -9, 9
    if dtype.roles is not None:
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor().")
    bounds = torch.iinfo(dtype)
    return bounds.min, bounds.max, max(bounds.min, -9), 10

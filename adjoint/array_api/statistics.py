"""Reductions and cumulative results under the standard's names, over any number of axes, including none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import adjoint as torch

from .data_types import summed_dtype
from .manipulation import Axes, concat

__all__ = """
    all any argmax argmin count_nonzero cumulative_prod cumulative_sum diff max mean min prod std sum var
""".split()


def _reduced(
    function: Callable[..., torch.Tensor], x: torch.Tensor, axis: Axes | None, keepdims: bool, **options: Any
) -> torch.Tensor:
    """Return the reduction over all axes if the axis is None, and over no axis if it is `()`."""
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if not axes:
        return function(x.unsqueeze(0), dim=0, **options)
    return function(x, dim=axes, keepdim=keepdims, **options)


def all(x: torch.Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> torch.Tensor:
    """Whether all elements are true."""
    return _reduced(torch.all, x, axis, keepdims).to(torch.bool)


def any(x: torch.Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> torch.Tensor:
    """Whether at least one element is true."""
    return _reduced(torch.any, x, axis, keepdims).to(torch.bool)


def max(x: torch.Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> torch.Tensor:
    """The largest elements."""
    return _reduced(torch.amax, x, axis, keepdims)


def min(x: torch.Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> torch.Tensor:
    """The smallest elements."""
    return _reduced(torch.amin, x, axis, keepdims)


def mean(x: torch.Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> torch.Tensor:
    """The means."""
    return _reduced(torch.mean, x, axis, keepdims)


def var(
    x: torch.Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> torch.Tensor:
    """The variances: the sums of squared distances from the mean, divided by `n - correction`."""
    return _reduced(torch.var, x, axis, keepdims, correction=correction)


def std(
    x: torch.Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> torch.Tensor:
    """The standard deviations, with the divisor `n - correction`."""
    return _reduced(torch.std, x, axis, keepdims, correction=correction)


def sum(
    x: torch.Tensor, /, *, axis: Axes | None = None, dtype: torch.dtype | None = None, keepdims: bool = False
) -> torch.Tensor:
    """The sums. Integers are summed in 64 bits."""
    return _reduced(torch.sum, x, axis, keepdims, dtype=dtype or summed_dtype(x))


def prod(
    x: torch.Tensor, /, *, axis: Axes | None = None, dtype: torch.dtype | None = None, keepdims: bool = False
) -> torch.Tensor:
    """The products. Integers are multiplied in 64 bits."""
    return _reduced(_product, x, axis, keepdims, dtype=dtype or summed_dtype(x))


def _product(x: torch.Tensor, dim: Axes, keepdim: bool = False, *, dtype: torch.dtype) -> torch.Tensor:
    """Return the product over several dimensions, starting with the last."""
    dims = (dim,) if isinstance(dim, int) else dim
    for each in sorted((each % x.ndim for each in dims), reverse=True):
        x = torch.prod(x, each, keepdim=keepdim, dtype=dtype)
    return x


def count_nonzero(x: torch.Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> torch.Tensor:
    """The number of nonzero elements."""
    return _reduced(torch.sum, x != 0, axis, keepdims)


def argmax(x: torch.Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """The index of the first largest element. If the axis is None, it is the index in the flattened tensor."""
    return torch.argmax(x, axis, keepdim=keepdims)


def argmin(x: torch.Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """The index of the first smallest element. If the axis is None, it is the index in the flattened tensor."""
    return torch.argmin(x, axis, keepdim=keepdims)


def cumulative_sum(
    x: torch.Tensor, /, *, axis: int | None = None, dtype: torch.dtype | None = None, include_initial: bool = False
) -> torch.Tensor:
    """The cumulative sums. With `include_initial`, the sums start with zero."""
    return _running(torch.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: torch.Tensor, /, *, axis: int | None = None, dtype: torch.dtype | None = None, include_initial: bool = False
) -> torch.Tensor:
    """The cumulative products. With `include_initial`, the products start with one."""
    return _running(torch.cumprod, x, axis, dtype, 1 if include_initial else None)


def _running(
    function: Callable[..., torch.Tensor],
    x: torch.Tensor,
    axis: int | None,
    dtype: torch.dtype | None,
    initial: int | None,
) -> torch.Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"a running total of {x.ndim} dimensions needs an axis")
        axis = 0
    running = function(x, axis, dtype=dtype or summed_dtype(x))
    if initial is None:
        return running
    shape = list(running.shape)
    shape[axis] = 1
    return torch.cat([torch.full(shape, initial, dtype=running.dtype, device=running.device), running], axis)


def diff(
    x: torch.Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: torch.Tensor | None = None,
    append: torch.Tensor | None = None,
) -> torch.Tensor:
    """The differences of neighbours, computed `n` times."""
    return torch.diff(concat([each for each in (prepend, x, append) if each is not None], axis=axis), n, axis)

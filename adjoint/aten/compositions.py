"""Operators without a counterpart in PyTorch, as the operators that PyTorch composes in their place.

Modes and classes receive these operators. Each function takes the arguments of the declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..dispatch.decorators import PUBLIC, tensors
from ..kernels.memory.storage import overlaps
from ..kernels.shape.view import memory_of_both
from ..tensor import Tensor


def _filled_with_zeros(self: Tensor, mask: Tensor) -> Tensor:
    zero = PUBLIC["torch"]["scalar_tensor"](0, dtype=self.dtype)
    result: Tensor = tensors.where(mask, zero, self)
    return result


def _zeros(grad: Tensor, shape: Any) -> Tensor:
    zeros: Tensor = grad.new_zeros(list(shape))
    return zeros


# --- linear algebra, transforms -----------------------------------------------------------------------------------


def _checked(name: str, result: Tensor, info: Tensor) -> Tensor:
    """Return the result after a check of the numbers of the matrices."""
    PUBLIC["aten"]["_linalg_check_errors"](info, name, is_matrix=not info._array.ndim)
    return result


def _inverse(A: Tensor) -> Tensor:
    return _checked("linalg.inv", *tensors.linalg_inv_ex(A))


def _solution(A: Tensor, B: Tensor, left: bool) -> Tensor:
    return _checked("torch.linalg.solve", *tensors.linalg_solve_ex(A, B, left=left))


def _cholesky(self: Tensor, upper: bool) -> Tensor:
    return _checked("linalg.cholesky", *tensors.linalg_cholesky_ex(self, upper=upper))


def _onesided(self: Tensor, dim: Any, normalization: int) -> Tensor:
    """The transform, with elements doubled that also represent a mirror image."""
    result: Tensor = tensors.fft_r2c(self, dim, normalization, True)
    last, doubled = dim[-1], (self._array.shape[dim[-1]] - 1) // 2
    result.narrow(last, 1, doubled).mul_(2)
    return result


def _frame(A: Tensor) -> tuple[Tensor, ...]:
    """The bases in which matrices are diagonal, by their singular values."""
    left, values, right = tensors.linalg_svd(A)
    kept = (values > dtypes.finfo(values.dtype).eps ** (2 / 3) * values[..., :1]) | values.isnan()
    count = values._array.shape[-1] - kept.sum(-1)
    most = int(count.max()) if count._array.size else 0
    order = (count.unsqueeze(-1) == tensors.arange(most + 1)).to(A.dtype)
    if not most:
        return A[..., :0, :0], A[..., :0, :0], kept.to(A.dtype), order
    turned = (tensors.linalg_det(left) * tensors.linalg_det(right))[..., None, None]
    adjoint = left.mH
    return tensors.cat([adjoint[..., :1, :] * turned, adjoint[..., 1:, :]], -2), right.mH, kept.to(A.dtype), order


def _slope_of_sinc(self: Tensor, order: int) -> Tensor:
    """Return the derivative of an order, from the series near 0, and from the derivatives of `x * sinc(x)` elsewhere."""
    angle = self * math.pi
    slope = tensors.sin(angle) / angle
    for n in range(1, order + 1):
        slope = (tensors.sin(angle + n * math.pi / 2) - slope * n) / angle
    near = angle.abs() < 1
    small = tensors.where(near, angle, 0.0)
    square, first = small * small, (order + 1) // 2
    series = tensors.zeros_like(small)
    for k in range(first + 9, first - 1, -1):
        series = series * square + (-1) ** k / ((2 * k + 1) * math.factorial(2 * k - order))
    result: Tensor = tensors.where(near, series * small if order % 2 else series, slope) * math.pi**order
    return result


# --- elements at indices --------------------------------------------------------------------------------------------


def _gathered_back(self: Tensor, shape: Any, dim: int, index: Tensor) -> Tensor:
    return _zeros(self, shape).scatter_add(dim, index, self)


def _taken_back(self: Tensor, shape: Any, index: Tensor) -> Tensor:
    return _zeros(self, shape).put(index, self, True)


def _index_selected_back(self: Tensor, shape: Any, dim: int, index: Tensor) -> Tensor:
    if not shape:
        return self.view(())
    return _zeros(self, shape).index_add(dim, index, self)


def _mask_selected_back(self: Tensor, shape: Any, mask: Tensor) -> Tensor:
    return _zeros(self, shape).masked_scatter(mask, self)


def _value_selected_back(self: Tensor, shape: Any, dim: int, indices: Tensor, keepdim: bool) -> Tensor:
    if not shape:
        return self.view(())
    values, places = (self, indices) if keepdim else (self.unsqueeze(dim), indices.unsqueeze(dim))
    return _zeros(self, shape).scatter(dim, places, values)


def _values_selected(self: Tensor, dim: int, indices: Tensor, keepdim: bool) -> Tensor:
    if not self._array.ndim:
        return self.view(tuple(indices.shape))
    if keepdim:
        return self.gather(dim, indices)
    return self.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def _memory(grad: Tensor, geometry: Any, size: Any, stride: Any, offset: int | None) -> tuple[Tensor, int, int]:
    """Return zeros for the elements of an input of `as_strided` and of its view, and the positions of their first elements."""
    count, start, first = memory_of_both(geometry, size, stride, offset)
    return grad.new_zeros([count]), start, first


def _put_at(memory: Tensor, size: Any, stride: Any, offset: int, values: Tensor) -> Tensor:
    """Return the memory with values added at the positions that sizes and strides describe."""
    if not overlaps(tuple(size), tuple(stride)):
        memory.as_strided(tuple(size), tuple(stride), offset).copy_(values)
        return memory
    places = tensors.arange(memory._array.size).as_strided(tuple(size), tuple(stride), offset)
    return memory.index_add(0, places.reshape(-1), values.reshape(-1))


def _sharing(memory: Tensor, geometry: Any, start: int) -> Tensor:
    """Return the number of elements of the input that share the position of each element."""
    ones = memory.new_ones([1]).expand(geometry.shape)
    return _put_at(memory.new_zeros(list(memory.shape)), geometry.shape, geometry.steps, start, ones).as_strided(
        geometry.shape, geometry.steps, start
    )


def _strided_back(self: Tensor, geometry: Any, size: Any, stride: Any, storage_offset: int | None) -> Tensor:
    memory, start, first = _memory(self, geometry, size, stride, storage_offset)
    placed = _put_at(memory, size, stride, first, self).as_strided(geometry.shape, geometry.steps, start)
    return placed / _sharing(memory, geometry, start) if overlaps(geometry.shape, geometry.steps) else placed


def _strided_of_gradient(self: Tensor, geometry: Any, size: Any, stride: Any, storage_offset: int | None) -> Tensor:
    memory, start, first = _memory(self, geometry, size, stride, storage_offset)
    if overlaps(geometry.shape, geometry.steps):
        self = self / _sharing(memory, geometry, start)
    placed = _put_at(memory, geometry.shape, geometry.steps, start, self)
    return placed.as_strided(tuple(size), tuple(stride), first).clone()


# --- segments ---------------------------------------------------------------------------------------------------


def _segments(given: Tensor, of_lengths: bool, size: int) -> Tensor:
    ends = given.cumsum(-1) if of_lengths else given[..., 1:]
    if not ends._array.shape[-1]:
        return ends.new_zeros([*ends._array.shape[:-1], size], dtype=dtypes.int64)
    elements = tensors.arange(size).expand((*ends._array.shape[:-1], size))
    found = tensors.searchsorted(ends.contiguous(), elements.contiguous(), right=True)
    if of_lengths:
        return found
    return tensors.where(elements < given[..., :1], tensors.full_like(found, ends._array.shape[-1]), found)


def _rows(bounds: Tensor) -> tuple[Tensor, int]:
    """Return the number of the run of each row, and the first row."""
    runs = tensors.arange(bounds._array.shape[0] - 1)
    return tensors.repeat_interleave(runs, bounds[1:] - bounds[:-1]), int(bounds[0])


def _counts(bounds: Tensor, like: Tensor) -> Tensor:
    """Return the number of rows of each run, at least 1, to divide `like`."""
    return (bounds[1:] - bounds[:-1]).clamp(min=1).to(like.dtype).reshape((-1, *(1,) * (like._array.ndim - 1)))


def _sums_of_runs(self: Tensor, bounds: Tensor, index: Tensor | None, mean: bool) -> Tensor:
    runs, first = _rows(bounds)
    rows = (self if index is None else self.index_select(0, index)).narrow(0, first, runs._array.shape[0])
    sums = self.new_zeros([bounds._array.shape[0] - 1, *self._array.shape[1:]]).index_add(0, runs, rows)
    return sums / _counts(bounds, sums) if mean else sums


def _sums_of_runs_back(self: Tensor, shape: Any, bounds: Tensor, index: Tensor | None, mean: bool) -> Tensor:
    runs, first = _rows(bounds)
    rows = (self / _counts(bounds, self) if mean else self).index_select(0, runs)
    places = tensors.arange(first, first + runs._array.shape[0])
    return _zeros(self, shape).index_add(0, places if index is None else index.index_select(0, places), rows)


COMPOSITIONS: dict[str, Callable[..., Any]] = {
    "as_strided_backward": _strided_back,
    "as_strided_gather": _strided_of_gradient,
    "derivative_of_sinc": _slope_of_sinc,
    "det_frame": _frame,
    "fft_c2r_backward": _onesided,
    "gather_backward": _gathered_back,
    "index_select_backward": _index_selected_back,
    "linalg_cholesky": _cholesky,
    "linalg_inv": _inverse,
    "linalg_solve": _solution,
    "masked_select_backward": _mask_selected_back,
    "segment_of_each": _segments,
    "selected_values": _values_selected,
    "sum_of_runs": _sums_of_runs,
    "sum_of_runs_backward": _sums_of_runs_back,
    "take_backward": _taken_back,
    "value_selecting_backward": _value_selected_back,
    "zero_where": _filled_with_zeros,
}
"""The compositions, by the name of the operator that they replace."""

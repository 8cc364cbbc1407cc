"""Normalize channels over a batch, or groups of channels, by row programs whose rows consist of channels.

For normalization over a batch, a row is one channel, whose planes in all samples are far apart. For normalization of a
sample, a row is a group of channels, and the channels are its consecutive parts.
"""

from __future__ import annotations

from ....codegen.expression import ELEMENT, PART, ROW
from ....codegen.llvm.kernels import *
from ...nn.normalization import channel_norm_backward_rows, channel_norm_rows
from ...runtime.costs import SHORT


@loops(plain=True, T=FLOATS)
def find_others(flag: Pointer[i64], x: Pointer[T], start: Int, stop: Int) -> None:
    """Write 1 to `flag` if a number is not positive."""
    for i in range(start, stop):
        if x[i] <= T(0) or x[i] != x[i]:
            flag[0] = 1


@recordable
def are_positive(flag: ndarray, x: ndarray) -> Any:
    """Test whether all numbers are positive. Otherwise write 1 to `flag`."""
    return find_others.run(x.size, x.itemsize, flag, x)


@loops(plain=True, T=FLOATS)
def move_statistics(
    running_mean: Pointer[T], running_var: Pointer[T], mean: Pointer[T], invstd: Pointer[T], momentum: f64, eps: f64,
    factor: f64, start: Int, stop: Int,
) -> None:  # fmt: skip
    """Move running statistics towards those of a batch. Variances are computed in float64 and times `factor`."""
    share, rest = T(momentum), T(f64(1) - momentum)
    for i in range(start, stop):
        variance = f64(1) / (f64(invstd[i]) * f64(invstd[i])) - eps
        if variance < f64(0):
            variance = f64(0)
        running_mean[i] = share * mean[i] + rest * running_mean[i]
        running_var[i] = share * T(variance * factor) + rest * running_var[i]


@recordable
def move(
    running_mean: ndarray, running_var: ndarray, mean: ndarray, invstd: ndarray, momentum: float, eps: float, count: int
) -> Any:
    """Update running statistics in place."""
    if mean.dtype.char not in "fd" or type(momentum) is not float:
        return NotImplemented
    found = move_statistics.run(
        mean.size, 4 * mean.itemsize, running_mean, running_var, mean, invstd, momentum, eps, count / max(count - 1, 1)
    )
    return NotImplemented if found is NotImplemented else None


@loops(plain=True, T=FLOATS)
def add_samples(out: Pointer[T], x: Pointer[T], rows: Int, columns: Int, start: Int, stop: Int) -> None:
    """Add rows one after another."""
    for i in range(start, stop):
        total = x[i]
        for k in range(1, rows):
            total += x[k * columns + i]
        out[i] = total


@recordable
def over_samples(sums: ndarray) -> Any:
    """Return the sums of rows, or NotImplemented if NumPy adds in another order."""
    rows, columns = sums.shape
    if columns == 1 or not sums.size:
        return NotImplemented
    return add_samples.run(columns, rows * sums.itemsize, empty(columns, sums.dtype), sums, rows, columns)


def normalized(x: ndarray, weight: ndarray | None, bias: ndarray | None, groups: int | None, eps: float) -> Any:
    """Return the call that normalizes `groups` of channels of each sample or, without `groups`, each channel of all samples."""
    return _call(channel_norm_rows.in_parts, x, (x, weight, bias), (eps,), groups)


def gradients(
    grad: ndarray, x: ndarray, weight: ndarray | None, mean: ndarray, rstd: ndarray, groups: int | None, of_input: bool
) -> Any:
    """Return the call that computes the sums for each channel (of each sample, with `groups`), and `x`'s gradient."""
    return _call(channel_norm_backward_rows.in_parts, x, (grad, x, mean, rstd, weight), (of_input, True), groups)


def _call(
    program: Any, x: ndarray, arrays: Sequence[ndarray | None], scalars: Sequence[Any], groups: int | None
) -> Any:
    if x.dtype.char not in "fd" or not x.dtype.isnative or x.ndim < 3 or not x.size:
        return NotImplemented
    (batch, channels), plane = x.shape[:2], math.prod(x.shape[2:])
    if plane < SHORT or channels % (groups or 1):  # short planes are not traversed one by one
        return NotImplemented
    rows: tuple[int, ...] = (channels,) if groups is None else (batch, groups)
    parts = (1, batch, channels * plane, channels) if groups is None else (channels // groups, 1, 0, groups)
    sizes = {ELEMENT: x.size, ROW: math.prod(rows), PART: channels}
    for item, extent in zip(arrays, program.parameters.extents.values(), strict=True):
        if item is not None and (item.dtype != x.dtype or item.size != sizes[extent]):
            return NotImplemented
    shapes = {ELEMENT: x.shape, ROW: rows, PART: (*rows[:-1], channels)}
    return program.call_in_parts(arrays, scalars, shapes, plane, parts) or NotImplemented

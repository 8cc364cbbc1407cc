"""Normalization over a batch, a layer or groups of channels, and the gradients of input, weight and bias.

Statistics are computed in two passes, the mean and then the squared distances from it, or in one where means are small
beside deviations; in float32 for half types.
Results are (output, mean, inverse standard deviation); gradients are None where `needs` says that nobody asks.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy import asarray, ndarray

from ..reduce import reduction
from ..reduce.moments import row_dots, sum_of_squares
from ..runtime.floating import compute_dtype, widen
from ..runtime.layout import has_channels_last, row_major
from ..runtime.parallel import parallel_rows, scratch

Triple = tuple[ndarray, ndarray, ndarray]
Gradients = tuple[ndarray | None, ndarray | None, ndarray | None]
Needs = Sequence[bool]

_FEW = 1 << 13
_LARGE = 1 << 15
_CACHED = 1 << 18


def _inverse_deviation(variance: ndarray, eps: float) -> ndarray:
    total = variance + variance.dtype.type(eps)
    numpy.sqrt(total, out=total)
    return numpy.reciprocal(total, out=total)


def _all_near_zero(mean: ndarray, variance: ndarray) -> bool:
    """Whether no mean is larger than the deviation; not so where one is not finite.

    Then the variance as the mean of squares less the square of the mean, and the normalized `x` as a difference of multiples of
    `x` and the mean, lose no more than the last digits.
    """
    return bool(numpy.logical_and.reduce(mean * mean <= variance, None))


def _row_sums(x: ndarray) -> ndarray:
    """The sums over the last dimension: short rows by einsum, which is faster, longer ones pairwise, which is more precise."""
    return numpy.einsum("...i->...", x) if x.shape[-1] <= 4096 else numpy.add.reduce(x, -1)


# ---------------------------------------------------------------------------------------------------------------------
# Over the batch: channels are dimension 1


def batch_norm(
    input: ndarray,
    weight: ndarray | None,
    bias: ndarray | None,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    eps: float,
) -> Triple:
    """Each channel less its mean, over its standard deviation, times `weight` plus `bias`.

    In training mean and deviation are those of the batch, over all dimensions but channels; they are returned, for
    backward. Otherwise they are the running ones, and what is returned for them is empty.
    """
    x = widen(input if has_channels_last(input) else row_major(input))
    if training:
        mean, variance = _channel_moments(x)
        invstd = _inverse_deviation(variance, eps)
        saved = mean, invstd
    else:
        mean, invstd = _running(running_mean, running_var, eps)
        saved = numpy.empty(0, x.dtype), numpy.empty(0, x.dtype)
    scale = invstd if weight is None else invstd * widen(weight)
    if x.size < _LARGE:
        shape = _channel_shape(x)
        result = x - mean.reshape(shape)
        result *= scale.reshape(shape)
        if bias is not None:
            result += widen(bias).reshape(shape)
        return result.astype(input.dtype, copy=False), *saved
    shift = -mean * scale
    if bias is not None:
        shift += widen(bias)
    return _scale_and_shift(input, scale[None], shift[None]), *saved


def _running(running_mean: ndarray | None, running_var: ndarray | None, eps: float) -> tuple[ndarray, ndarray]:
    return widen(asarray(running_mean)), _inverse_deviation(widen(asarray(running_var)), eps)


def _channel_shape(x: ndarray) -> tuple[int, ...]:
    return (1, -1) + (1,) * (x.ndim - 2)


def _channel_dims(x: ndarray) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _channel_moments(x: ndarray) -> tuple[ndarray, ndarray]:
    """Mean and (biased) variance of each channel."""
    if x.ndim == 2 and x.size > _FEW and len(x) <= 4096:
        sums, squares = _column_products(x, x)
        mean = sums / len(x)
        variance = squares / len(x) - mean * mean
        if _all_near_zero(mean, variance):
            return mean, variance
    if x.ndim == 2 or x.size < _LARGE or not x.flags.c_contiguous:
        dims: Any = 0 if x.ndim == 2 else _channel_dims(x)
        mean = reduction.mean(x, dims, True)
        squares = sum_of_squares(x, _channel_dims(x), mean).reshape(-1)
        squares /= x.size // squares.size if squares.size else 1
        return mean.reshape(-1), squares
    batch, channels = x.shape[:2]
    planes = x.reshape(batch, channels, -1)
    count = batch * planes.shape[2]
    sums, squares = _plane_products(planes, planes, x.dtype)
    mean = numpy.add.reduce(sums, 0) / count
    variance = numpy.add.reduce(squares, 0) / count - mean * mean
    if _all_near_zero(mean, variance):
        return mean, variance
    column = mean[:, None]

    def accumulate(start: int, stop: int) -> None:
        centred = planes[start:stop] - column
        row_dots(centred, centred, squares[start:stop])

    parallel_rows(accumulate, batch, 2 * x.itemsize * planes.shape[1] * planes.shape[2])
    return mean, numpy.add.reduce(squares, 0) / count


def _column_products(first: ndarray, second: ndarray) -> tuple[ndarray, ndarray]:
    """For each column the sum of `first` and of its products with `second`."""
    # Two equal rows: a single one BLAS would take for a vector, and cut it up among threads.
    sums = numpy.matmul(numpy.ones((2, len(first)), first.dtype), first)[0]
    # Blocks of rows, since einsum adds row after row, which gets less precise the longer it goes on.
    whole = len(first) // 64 * 64
    blocks = (array[:whole].reshape(-1, 64, array.shape[1]) for array in (first, second))
    products = numpy.add.reduce(numpy.einsum("bij,bij->bj", *blocks), 0)
    products += numpy.einsum("ij,ij->j", first[whole:], second[whole:])
    return sums, products


def _plane_products(first: ndarray, second: ndarray, dtype: Any) -> tuple[ndarray, ndarray]:
    """For each sample and channel the sum of `first` and of its products with `second`, in one pass."""
    sums, products = numpy.empty(first.shape[:2], dtype), numpy.empty(first.shape[:2], dtype)

    def accumulate(start: int, stop: int) -> None:
        sums[start:stop] = _row_sums(first[start:stop])
        row_dots(first[start:stop], second[start:stop], products[start:stop])

    parallel_rows(accumulate, len(first), 2 * first.itemsize * first.shape[1] * first.shape[2])
    return sums, products


def _scale_and_shift(x: ndarray, scale: ndarray, shift: ndarray) -> ndarray:
    """`x` times `scale` plus `shift`, each (batch or 1, channels); in the type of `x`."""
    planes = numpy.ascontiguousarray(x).reshape(*x.shape[:2], -1)
    result = numpy.empty(planes.shape, x.dtype)
    half = compute_dtype(x.dtype) != x.dtype
    shared = len(scale) == 1
    spread = _spread(planes) if shared else None
    scale, shift = (item[:, :, None] if spread is None else spread(item[0]) for item in (scale, shift))

    def work(start: int, stop: int) -> None:
        rows = slice(None) if shared else slice(start, stop)
        out = numpy.multiply(widen(planes[start:stop]), scale[rows], out=None if half else result[start:stop])
        numpy.add(out, shift[rows], out=out)
        if half:
            result[start:stop] = out

    parallel_rows(work, len(planes), x.itemsize * planes.shape[1] * planes.shape[2])
    return result.reshape(x.shape)


def _spread(planes: ndarray) -> Callable[[ndarray], ndarray] | None:
    """What repeats a number for each channel over its plane, where the planes of a sample fit the cache together.

    NumPy's loops then run over samples and not over planes.
    """
    channels, size = planes.shape[1:]
    if not 1 < size <= 4096 or channels * size > _CACHED:
        return None
    return lambda numbers: numpy.repeat(numbers, size).reshape(1, channels, size)


def unbiased_variance(invstd: ndarray, eps: float, count: int) -> ndarray:
    """The variance that the running one is moved to: of `count` elements, with one degree of freedom taken off."""
    variance = 1.0 / numpy.square(invstd.astype(numpy.float64)) - eps
    return (numpy.maximum(variance, 0) * (count / max(count - 1, 1))).astype(invstd.dtype)


def batch_norm_gradients(
    grad: ndarray,
    input: ndarray,
    weight: ndarray | None,
    mean: ndarray,
    invstd: ndarray,
    running_mean: ndarray | None,
    running_var: ndarray | None,
    training: bool,
    eps: float,
    needs: Needs,
) -> Gradients:
    """The gradients of `input`, `weight` and `bias`; `mean` and `invstd` are those that `batch_norm` returned.

    S. Ioffe and C. Szegedy, "Batch Normalization" (2015), section 3.
    """
    if not training:
        mean, invstd = _running(running_mean, running_var, eps)
    g, x = widen(grad), widen(input)
    total, along = _channel_products(g, x, mean, invstd)
    to_input = None
    if needs[0]:
        scale = invstd if weight is None else invstd * widen(weight)
        if training:
            count = max(x.size // max(len(mean), 1), 1)
            to_input = _centred_gradient(g, x, mean, scale, total / count, along * invstd / count)
        else:
            to_input = g * scale.reshape(_channel_shape(x))
        to_input = to_input.astype(input.dtype, copy=False)
    parameter = input.dtype if weight is None else weight.dtype
    to_weight = along.astype(parameter, copy=False) if needs[1] else None
    return to_input, to_weight, total.astype(parameter, copy=False) if needs[2] else None


def _channel_products(g: ndarray, x: ndarray, mean: ndarray, invstd: ndarray) -> tuple[ndarray, ndarray]:
    """For each channel the sum of `g`, and that of its products with the normalized `x`."""
    distance = mean * invstd
    if x.ndim == 2 and x.size > _FEW and len(x) <= 4096 and _all_near_zero(distance, numpy.ones_like(distance)):
        total, products = _column_products(g, x)
        return total, products * invstd - distance * total
    if x.size < _LARGE or x.ndim == 2 or not (x.flags.c_contiguous and g.flags.c_contiguous):
        product = x - mean.reshape(_channel_shape(x))
        product *= g
        dims: Any = 0 if x.ndim == 2 else _channel_dims(x)
        return reduction.sum(g, dims), reduction.sum(product, dims) * invstd
    batch, channels = x.shape[:2]
    planes, gradients = x.reshape(batch, channels, -1), g.reshape(batch, channels, -1)
    sums, products = _plane_products(gradients, planes, x.dtype)
    total = numpy.add.reduce(sums, 0)
    if _all_near_zero(distance, numpy.ones_like(distance)):
        return total, numpy.add.reduce(products, 0) * invstd - distance * total
    column = mean[:, None]

    def accumulate(start: int, stop: int) -> None:
        row_dots(planes[start:stop] - column, gradients[start:stop], products[start:stop])

    parallel_rows(accumulate, batch, 3 * x.itemsize * planes.shape[1] * planes.shape[2])
    return total, numpy.add.reduce(products, 0) * invstd


def _centred_gradient(
    g: ndarray, x: ndarray, mean: ndarray, scale: ndarray, offset: ndarray, slope: ndarray
) -> ndarray:
    """(g - offset - (x - mean) * slope) * scale, by channel; written as g * a + x * b + c."""
    across, constant = -slope * scale, (mean * slope - offset) * scale
    shape = _channel_shape(x)
    if x.size < _LARGE:
        result = x * across.reshape(shape)
        result += constant.reshape(shape)
        return result + g * scale.reshape(shape)
    batch, channels = x.shape[:2]
    planes, gradients = x.reshape(batch, channels, -1), g.reshape(batch, channels, -1)
    result = numpy.empty(planes.shape, x.dtype)
    spread = _spread(planes) or (lambda numbers: numbers[:, None])
    columns = spread(across), spread(constant), spread(scale)

    def work(start: int, stop: int) -> None:
        out = numpy.multiply(planes[start:stop], columns[0], out=result[start:stop])
        numpy.add(out, columns[1], out=out)
        numpy.add(out, gradients[start:stop] * columns[2], out=out)

    parallel_rows(work, batch, 3 * x.itemsize * planes.shape[1] * planes.shape[2])
    return result.reshape(x.shape)


# ---------------------------------------------------------------------------------------------------------------------
# Over the last dimensions


def layer_norm(
    input: ndarray, normalized_shape: tuple[int, ...], weight: ndarray | None, bias: ndarray | None, eps: float
) -> Triple:
    """The last dimensions less their mean, over their standard deviation, times `weight` plus `bias`.

    Mean and inverse deviation keep the normalized dimensions, with length 1.
    """
    kept = (*input.shape[: input.ndim - len(normalized_shape)], *(1,) * len(normalized_shape))
    rows = input.reshape(math.prod(kept), -1) if input.size else input.reshape(math.prod(kept), 0)
    factor, term = _flat(weight), _flat(bias)
    dtype = compute_dtype(input.dtype)
    half = dtype != input.dtype
    result = numpy.empty(rows.shape, input.dtype)
    mean, rstd = numpy.empty((len(rows), 1), dtype), numpy.empty((len(rows), 1), dtype)

    def normalize(start: int, stop: int) -> None:
        x = widen(rows[start:stop])
        mean[start:stop] = average = reduction.mean(x, 1, True)
        centred = numpy.subtract(x, average, out=None if half else result[start:stop])
        rstd[start:stop] = inverse = _inverse_deviation(_row_products(centred, centred) / x.shape[1], eps)
        centred *= inverse
        if factor is not None:
            centred *= factor
        if term is not None:
            centred += term
        if half:
            result[start:stop] = centred

    if 0 < result.size <= _FEW:
        normalize(0, len(rows))
    elif result.size:
        lines = _Lines(rows.shape[1], factor, term, dtype)

        def normalize_by_blas(start: int, stop: int) -> None:
            x = widen(rows[start:stop])
            average, variance = lines.moments(x)
            if not _all_near_zero(average, variance):
                normalize(start, stop)
                return
            mean[start:stop] = average
            rstd[start:stop] = inverse = _inverse_deviation(variance, eps)
            out = lines.scaled(inverse, None if half else result[start:stop])
            out *= x
            out += lines.shifted(average * inverse)
            if half:
                result[start:stop] = out

        parallel_rows(normalize_by_blas, len(rows), dtype.itemsize * rows.shape[1])
    return result.reshape(input.shape), mean.reshape(kept), rstd.reshape(kept)


class _Lines:
    """What layer normalization does to tiles of rows, as products of narrow matrices, which BLAS computes at the speed of memory.

    With one factor for each row and one for each column, NumPy's loops begin anew at each row; `a b' + c d'` is one product of
    two columns with two rows. Two also where one would do: BLAS is not asked for less, or puts threads to work for it.

    That is precise only where `_all_near_zero`.
    """

    def __init__(self, width: int, factor: ndarray | None, term: ndarray | None, dtype: Any) -> None:
        self.averaging = numpy.empty((width, 2), dtype)
        self.averaging.fill(1 / width)
        self.factors, self.shifts = numpy.empty((2, width), dtype), numpy.zeros((2, width), dtype)
        self.factors[:] = 1 if factor is None else factor
        numpy.negative(self.factors[0], out=self.shifts[0])
        if term is not None:
            self.shifts[1] = term

    def moments(self, x: ndarray) -> tuple[ndarray, ndarray]:
        """The mean and the variance of each row, as columns."""
        mean = numpy.matmul(x, self.averaging)[:, :1]
        variance = row_dots(x, x)[:, None]
        variance /= x.shape[1]
        variance -= mean * mean
        return mean, variance

    def scaled(self, rows: ndarray, out: ndarray | None = None) -> ndarray:
        """The column `rows` times the weights."""
        halves = numpy.empty((len(rows), 2), rows.dtype)
        halves[:] = rows * rows.dtype.type(0.5)
        return numpy.matmul(halves, self.factors, out=out)

    def shifted(self, rows: ndarray) -> ndarray:
        """The biases less the column `rows` times the weights."""
        columns = numpy.ones((len(rows), 2), rows.dtype)
        columns[:, :1] = rows
        out = scratch("shifts", (len(rows), self.shifts.shape[1]), rows.dtype)
        return numpy.matmul(columns, self.shifts, out=out)


def _flat(x: ndarray | None) -> ndarray | None:
    return None if x is None else widen(x).reshape(-1)


def _row_products(first: ndarray, second: ndarray) -> ndarray:
    """The sum of products along rows, which is kept."""
    if first.size <= 8192:
        return reduction.sum_kept(first * second, 1)
    return row_dots(first, second)[:, None]


def layer_norm_gradients(
    grad: ndarray,
    input: ndarray,
    normalized_shape: tuple[int, ...],
    weight: ndarray | None,
    mean: ndarray,
    rstd: ndarray,
    eps: float,
    needs: Needs,
) -> Gradients:
    """The gradients of `input`, `weight` and `bias`; `mean` and `rstd` are those that `layer_norm` returned.

    J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer Normalization" (2016).
    """
    width = math.prod(normalized_shape)
    rows, gradients = input.reshape(mean.size, width), grad.reshape(mean.size, width)
    means, inverses = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    factor = _flat(weight)
    to_input = numpy.empty(rows.shape, input.dtype) if needs[0] else None
    sums: dict[int, tuple[ndarray, ndarray]] = {}

    def work(start: int, stop: int) -> None:
        g = widen(gradients[start:stop])
        normalized = widen(rows[start:stop]) - means[start:stop]
        normalized *= inverses[start:stop]
        if needs[1] or needs[2]:
            sums[start] = _column_sums(g * normalized) if needs[1] else g[0], _column_sums(g)
        if to_input is None:
            return
        scaled = g if factor is None else g * factor
        along = _row_products(scaled, normalized) / -width
        normalized *= along
        normalized += scaled
        normalized -= reduction.mean(scaled, 1, True)
        numpy.multiply(normalized, inverses[start:stop], out=to_input[start:stop], casting="same_kind")

    if 0 < rows.size <= _FEW:
        work(0, len(rows))
    elif rows.size:
        lines = _Lines(width, factor, None, means.dtype)
        distances = means * inverses
        centred = bool((numpy.abs(distances) <= 1).all())

        def work_by_blas(start: int, stop: int) -> None:
            g, x = widen(gradients[start:stop]), widen(rows[start:stop])
            inverse, distance = inverses[start:stop], distances[start:stop]
            product = numpy.multiply(g, x, out=scratch("product", g.shape, g.dtype))
            if needs[1] or needs[2]:
                left = numpy.ones((2, len(g)), g.dtype)
                left[0] = distance[:, 0]
                across = numpy.matmul(left, g)
                if needs[1]:
                    left[:] = inverse[:, 0]
                    across[0] = numpy.matmul(left, product)[0] - across[0]
                sums[start] = across[0], across[1]
            if to_input is None:
                return
            average = numpy.matmul(g, lines.factors.T)[:, :1] / width
            along = (inverse * numpy.matmul(product, lines.factors.T)[:, :1]) / width - distance * average
            along *= inverse
            out = lines.scaled(inverse, None if to_input.dtype != g.dtype else to_input[start:stop])
            out *= g
            numpy.multiply(x, along * inverse, out=product)
            product -= along * distance - average * inverse
            out -= product
            if to_input.dtype != g.dtype:
                to_input[start:stop] = out

        parallel_rows(work_by_blas if centred else work, len(rows), (1 if centred else 4) * means.itemsize * width)
    parameter = input.dtype if weight is None else weight.dtype
    return (
        None if to_input is None else to_input.reshape(input.shape),
        _add_up(sums, 0, normalized_shape, parameter) if needs[1] else None,
        _add_up(sums, 1, normalized_shape, parameter) if needs[2] else None,
    )


def _column_sums(x: ndarray) -> ndarray:
    return reduction.sum(x, 0)


def _add_up(sums: dict[int, Any], which: int, shape: tuple[int, ...], dtype: Any) -> ndarray:
    """Partial sums in the order of the tiles they come from, so that threads do not change the result."""
    parts = [sums[start][which] for start in sorted(sums)]
    if not parts:
        return numpy.zeros(shape, dtype)
    total = parts[0] if len(parts) == 1 else numpy.add.reduce(numpy.stack(parts), 0)
    return total.reshape(shape).astype(dtype, copy=False)


# ---------------------------------------------------------------------------------------------------------------------
# Over groups of channels


def group_norm(input: ndarray, groups: int, weight: ndarray | None, bias: ndarray | None, eps: float) -> Triple:
    """Each group of channels of each sample less its mean, over its deviation, times `weight` plus `bias` by channel.

    Mean and inverse deviation are (batch, groups).
    """
    batch, channels = input.shape[:2]
    x = widen(input).reshape(batch, groups, -1) if input.size else widen(input).reshape(batch, groups, 0)
    mean, variance = _row_moments(x)
    rstd = _inverse_deviation(variance, eps)
    scale = numpy.repeat(rstd[:, :, 0], channels // groups, 1)
    shift = -numpy.repeat(mean[:, :, 0], channels // groups, 1) * scale
    if weight is not None:
        factor = widen(weight)
        scale, shift = scale * factor, shift * factor
    if bias is not None:
        shift += widen(bias)
    result = _scale_and_shift(input, scale, shift) if input.size else input.copy()
    return result, mean[:, :, 0], rstd[:, :, 0]


def _row_moments(x: ndarray) -> tuple[ndarray, ndarray]:
    """The mean and the variance over the last dimension, which is kept."""
    count = max(x.shape[2], 1)
    if x.flags.c_contiguous:
        sums, squares = _plane_products(x, x, x.dtype)
        mean = sums / count
        variance = squares / count - mean * mean
        if _all_near_zero(mean, variance):
            return mean[:, :, None], variance[:, :, None]
    mean = reduction.mean(x, 2, True)
    return mean, sum_of_squares(x, (2,), mean) / count


def group_norm_gradients(
    grad: ndarray,
    input: ndarray,
    weight: ndarray | None,
    groups: int,
    mean: ndarray,
    rstd: ndarray,
    eps: float,
    needs: Needs,
) -> Gradients:
    """The gradients of `input`, `weight` and `bias`; `mean` and `rstd` are those that `group_norm` returned.

    Y. Wu and K. He, "Group Normalization" (2018).
    """
    batch, channels = input.shape[:2]
    size = math.prod(input.shape[2:])
    g, x = widen(grad).reshape(batch, channels, size), widen(input).reshape(batch, channels, size)
    each = channels // groups
    means, inverses = (numpy.repeat(item, each, 1) for item in (mean, rstd))
    total, products = _plane_products(g, x, g.dtype)  # (batch, channels)
    distance = means * inverses
    if _all_near_zero(distance, numpy.ones_like(distance)):
        along = products * inverses - distance * total
    else:
        along = row_dots(g, x - means[:, :, None]) * inverses
    to_input = None
    if needs[0]:
        factor = numpy.ones(channels, g.dtype) if weight is None else widen(weight)
        by_group = (batch, groups, each)
        offset = numpy.add.reduce((total * factor).reshape(by_group), 2) / (each * size or 1)
        slope = numpy.add.reduce((along * factor).reshape(by_group), 2) / (each * size or 1) * rstd * rstd
        slope, offset = numpy.repeat(slope, each, 1), numpy.repeat(offset * rstd, each, 1)
        result = g * (inverses * factor)[:, :, None]
        result -= x * slope[:, :, None]
        result += (means * slope - offset)[:, :, None]
        to_input = result.reshape(input.shape).astype(input.dtype, copy=False)
    parameter = input.dtype if weight is None else weight.dtype
    to_weight = numpy.add.reduce(along, 0).astype(parameter, copy=False) if needs[1] else None
    return to_input, to_weight, numpy.add.reduce(total, 0).astype(parameter, copy=False) if needs[2] else None

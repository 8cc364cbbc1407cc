"""Normalization over a batch, a layer or groups of channels, and the gradients of input, weight and bias.

Statistics are computed in two passes, the mean and then the squared distances from it, in float32 for half types.
Results are (output, mean, inverse standard deviation); gradients are None where `needs` says that nobody asks.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy
from numpy import asarray, ndarray

from adjoint.kernels import reduction
from adjoint.kernels.moments import row_dots, sum_of_squares
from adjoint.kernels.parallel import parallel_rows
from adjoint.kernels.precision import compute_dtype, widen

__all__ = [
    "batch_norm", "batch_norm_gradients", "group_norm", "group_norm_gradients", "layer_norm", "layer_norm_gradients",
    "rms_norm", "rms_norm_gradients", "unbiased_variance",
]  # fmt: skip

Triple = tuple[ndarray, ndarray, ndarray]
Gradients = tuple[ndarray | None, ndarray | None, ndarray | None]
Needs = Sequence[bool]

_FEW = 1 << 13
_LARGE = 1 << 15


def _inverse_deviation(variance: ndarray, eps: float) -> ndarray:
    total = variance + variance.dtype.type(eps)
    numpy.sqrt(total, out=total)
    return numpy.reciprocal(total, out=total)


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
    x = widen(input)
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
    if x.ndim == 2 or x.size < _LARGE or not x.flags.c_contiguous:
        dims: Any = 0 if x.ndim == 2 else _channel_dims(x)
        mean = reduction.mean(x, dims, True)
        squares = sum_of_squares(x, _channel_dims(x), mean).reshape(-1)
        squares /= x.size // squares.size if squares.size else 1
        return mean.reshape(-1), squares
    batch, channels = x.shape[:2]
    planes = x.reshape(batch, channels, -1)
    mean = reduction.mean(planes, (0, 2))
    partial = numpy.empty((batch, channels), x.dtype)
    column = mean[:, None]

    def accumulate(start: int, stop: int) -> None:
        centred = planes[start:stop] - column
        row_dots(centred, centred, partial[start:stop])

    parallel_rows(accumulate, batch, 2 * x.itemsize * planes.shape[1] * planes.shape[2])
    return mean, numpy.add.reduce(partial, 0) / (batch * planes.shape[2])


def _scale_and_shift(x: ndarray, scale: ndarray, shift: ndarray) -> ndarray:
    """`x` times `scale` plus `shift`, each (batch or 1, channels); in the type of `x`."""
    planes = numpy.ascontiguousarray(x).reshape(*x.shape[:2], -1)
    result = numpy.empty(planes.shape, x.dtype)
    scale, shift = scale[:, :, None], shift[:, :, None]
    half = compute_dtype(x.dtype) != x.dtype
    shared = len(scale) == 1

    def work(start: int, stop: int) -> None:
        rows = slice(None) if shared else slice(start, stop)
        out = numpy.multiply(widen(planes[start:stop]), scale[rows], out=None if half else result[start:stop])
        numpy.add(out, shift[rows], out=out)
        if half:
            result[start:stop] = out

    parallel_rows(work, len(planes), x.itemsize * planes.shape[1] * planes.shape[2])
    return result.reshape(x.shape)


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
    dims = _channel_dims(x)
    total = reduction.sum(g, dims)
    along = _channel_products(g, x, mean) * invstd if training or needs[1] else None
    to_input = None
    if needs[0]:
        scale = invstd if weight is None else invstd * widen(weight)
        if training:
            count = max(x.size // max(len(mean), 1), 1)
            to_input = _centred_gradient(g, x, mean, scale, total / count, asarray(along) * invstd / count)
        else:
            to_input = g * scale.reshape(_channel_shape(x))
        to_input = to_input.astype(input.dtype, copy=False)
    parameter = input.dtype if weight is None else weight.dtype
    to_weight = asarray(along).astype(parameter, copy=False) if needs[1] else None
    return to_input, to_weight, total.astype(parameter, copy=False) if needs[2] else None


def _channel_products(g: ndarray, x: ndarray, mean: ndarray) -> ndarray:
    """For each channel the sum of `g` times the distance of `x` from its mean."""
    if x.size < _LARGE or x.ndim == 2 or not (x.flags.c_contiguous and g.flags.c_contiguous):
        product = x - mean.reshape(_channel_shape(x))
        product *= g
        return reduction.sum(product, 0 if x.ndim == 2 else _channel_dims(x))
    batch, channels = x.shape[:2]
    planes, gradients = x.reshape(batch, channels, -1), g.reshape(batch, channels, -1)
    partial = numpy.empty((batch, channels), x.dtype)
    column = mean[:, None]

    def accumulate(start: int, stop: int) -> None:
        row_dots(planes[start:stop] - column, gradients[start:stop], partial[start:stop])

    parallel_rows(accumulate, batch, 3 * x.itemsize * planes.shape[1] * planes.shape[2])
    return numpy.add.reduce(partial, 0)


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
    columns = across[:, None], constant[:, None], scale[:, None]

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
            if not lines.all_near_zero(average, variance):
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

    Sums of `x` and `x²` say what the deviation is, and `x * rstd - mean * rstd` is `(x - mean) * rstd`, to the last digits
    only while the mean is not much larger than the deviation. Whoever uses them asks `all_near_zero` first.
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

    def all_near_zero(self, mean: ndarray, variance: ndarray) -> bool:
        """Whether no mean is larger than two deviations; not so where one is not finite."""
        return bool(numpy.logical_and.reduce(mean * mean <= 4 * variance, None))

    def scaled(self, rows: ndarray, out: ndarray | None = None) -> ndarray:
        """The column `rows` times the weights."""
        halves = numpy.empty((len(rows), 2), rows.dtype)
        halves[:] = rows * rows.dtype.type(0.5)
        return numpy.matmul(halves, self.factors, out=out)

    def shifted(self, rows: ndarray) -> ndarray:
        """The biases less the column `rows` times the weights."""
        columns = numpy.ones((len(rows), 2), rows.dtype)
        columns[:, :1] = rows
        return numpy.matmul(columns, self.shifts)


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
        centred = bool((numpy.abs(distances) <= 2).all())

        def work_by_blas(start: int, stop: int) -> None:
            g, x = widen(gradients[start:stop]), widen(rows[start:stop])
            inverse, distance = inverses[start:stop], distances[start:stop]
            product = g * x
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


def rms_norm(
    input: ndarray, normalized_shape: tuple[int, ...], weight: ndarray | None, eps: float | None
) -> tuple[ndarray, ndarray]:
    """The last dimensions over the root of their mean square, times `weight`; and the inverse of that root.

    `eps`, added to the mean square, is that of the type of `input` if None.
    """
    x = widen(input)
    if eps is None:
        eps = float(numpy.finfo(x.dtype).eps)
    kept = (*input.shape[: input.ndim - len(normalized_shape)], *(1,) * len(normalized_shape))
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    rstd = _inverse_deviation(sum_of_squares(x, dims) / math.prod(normalized_shape), eps).reshape(kept)
    result = x * rstd
    if weight is not None:
        result *= widen(weight)
    return result.astype(input.dtype, copy=False), rstd


def rms_norm_gradients(
    grad: ndarray,
    input: ndarray,
    normalized_shape: tuple[int, ...],
    weight: ndarray | None,
    rstd: ndarray,
    needs: Needs,
) -> tuple[ndarray | None, ndarray | None]:
    """The gradients of `input` and `weight`; `rstd` is what `rms_norm` returned.

    B. Zhang and R. Sennrich, "Root Mean Square Layer Normalization" (2019).
    """
    g, x = widen(grad), widen(input)
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    normalized = x * rstd
    to_weight = None
    if needs[1]:
        leading = tuple(range(input.ndim - len(normalized_shape)))
        product = g * normalized
        to_weight = reduction.sum(product, leading) if leading else product
        to_weight = to_weight.astype(input.dtype if weight is None else weight.dtype, copy=False)
    to_input = None
    if needs[0]:
        scaled = g if weight is None else g * widen(weight)
        to_input = rstd * (scaled - normalized * reduction.mean(scaled * normalized, dims, True))
        to_input = to_input.astype(input.dtype, copy=False)
    return to_input, to_weight


# ---------------------------------------------------------------------------------------------------------------------
# Over groups of channels


def group_norm(input: ndarray, groups: int, weight: ndarray | None, bias: ndarray | None, eps: float) -> Triple:
    """Each group of channels of each sample less its mean, over its deviation, times `weight` plus `bias` by channel.

    Mean and inverse deviation are (batch, groups).
    """
    batch, channels = input.shape[:2]
    x = widen(input).reshape(batch, groups, -1) if input.size else widen(input).reshape(batch, groups, 0)
    mean = reduction.mean(x, 2, True)
    rstd = _inverse_deviation(sum_of_squares(x, (2,), mean) / max(x.shape[2], 1), eps)
    scale = numpy.repeat(rstd[:, :, 0], channels // groups, 1)
    shift = -numpy.repeat(mean[:, :, 0], channels // groups, 1) * scale
    if weight is not None:
        factor = widen(weight)
        scale, shift = scale * factor, shift * factor
    if bias is not None:
        shift += widen(bias)
    result = _scale_and_shift(input, scale, shift) if input.size else input.copy()
    return result, mean[:, :, 0], rstd[:, :, 0]


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
    total = reduction.sum(g, 2)  # (batch, channels)
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

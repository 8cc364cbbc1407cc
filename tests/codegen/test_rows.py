"""Row programs give NumPy's values, for any shape, dimension, dtype and number of threads."""

from __future__ import annotations

import ml_dtypes
import numpy
import pytest

from adjoint.codegen.pointwise import pointwise
from adjoint.codegen.rows import row_program
from adjoint.codegen.tracing import PerColumn, PerRow, RowIndex, TracingError, column, row, xp
from adjoint.kernels.nn.softmax import _refusing, softmax_rows
from adjoint.kernels.runtime.parallel import get_num_threads, set_num_threads

Array = numpy.ndarray

SHAPES = [
    ((7,), 0),
    ((5, 4), 1),
    ((5, 4), 0),
    ((3000, 20), 1),
    ((300, 2000), -1),
    ((300, 2000), 0),
    ((3, 50, 700), 1),
    ((2, 30000, 9), 1),
    ((0, 4), 1),
]


@row_program(_refusing("standard"))
def standardized(x: Array, y: Array):
    """Return `x` scaled to the extremes of its row, plus the distance of `y` from its mean."""
    low, high = row.min(x), row.max(x)
    return (x - low) / (high - low + 1) + y * row.sum(y * y)


def plain(x, y, dim):
    low, high = x.min(dim, keepdims=True, initial=numpy.inf), x.max(dim, keepdims=True, initial=-numpy.inf)
    return (x - low) / (high - low + 1) + y * (y * y).sum(dim, keepdims=True)


def numbers(shape, dtype=numpy.float64, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_values(shape, dim):
    x, y = numbers(shape), numbers(shape, seed=1)
    expected = plain(x, y, dim) if x.size else x
    numpy.testing.assert_allclose(standardized.run((x, y), dim), expected, rtol=1e-12, atol=1e-12)
    other = numpy.asfortranarray(x)
    numpy.testing.assert_allclose(standardized.run((other, y), dim), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [numpy.dtype(numpy.float16), numpy.dtype(ml_dtypes.bfloat16)], ids=str)
def test_half_types_are_rounded_once(dtype):
    x = numbers((50, 60), numpy.float32).astype(dtype)
    wide = standardized.run((x.astype(numpy.float32), x.astype(numpy.float32)), 1)
    result = standardized.run((x, x), 1)
    assert result.dtype == dtype
    numpy.testing.assert_array_equal(result.astype(numpy.float32), wide.astype(dtype).astype(numpy.float32))


def test_any_number_of_threads_has_the_same_values():
    x, y = numbers((4000, 100)), numbers((4000, 100), seed=1)
    before = get_num_threads()
    try:
        results = []
        for threads in (1, 3):
            set_num_threads(threads)
            results.append(standardized.run((x, y), 1))
    finally:
        set_num_threads(before)
    numpy.testing.assert_array_equal(*results)


def test_integers_are_refused_in_the_name_of_the_kernel():
    with pytest.raises(NotImplementedError, match="standard_lastdim_kernel_impl"):
        standardized.run((numpy.ones((2, 3), int), numpy.ones((2, 3), int)), 1)
    with pytest.raises(NotImplementedError, match="standard_kernel_impl"):
        standardized.run((numpy.ones((2, 3), int), numpy.ones((2, 3), int)), 0)


def test_a_program_prints_as_text():
    assert str(softmax_rows).splitlines() == [
        "softmax_rows(x):",
        "%0: number by row = row_max(x)",
        "%1: number = subtract(x, %0)",
        "%2: number = exp(%1)",
        "%3: number by row = row_sum(%2)",
        "%4: number = divide(%2, %3)",
        "return %4",
    ]


def test_a_pointwise_operator_cannot_look_at_rows():
    @pointwise("wrong_cpu")
    def wrong(self: Array):
        return self - row.max(self) + xp.exp(self)

    with pytest.raises(TracingError, match="looks at whole rows"):
        wrong(numpy.ones(3))


def by_row(values, shape, dim):
    """Return one number for each row, and keep the dimension."""
    dim %= len(shape)
    return values.reshape(*shape[:dim], 1, *shape[dim + 1 :])


def by_column(values, shape, dim):
    return values.reshape(-1, *(1,) * (len(shape) - dim % len(shape) - 1))


@row_program()
def several(x: Array, shift: PerRow, weight: PerColumn | None, factor: float, wanted: bool):
    """Return outputs of every extent; one output and one input are optional."""
    mean = row.mean(x)
    centred = (x - mean) * factor + shift
    if weight is not None:
        centred = centred * weight
    return centred, mean, column.sum(centred * x) if wanted else None, column.sum(x)


FULL = [case for case in SHAPES if 0 not in case[0]] + [
    ((64, 5000), 1),
    ((70, 33, 3), 1),
    ((1, 9000), 1),
    ((9000, 1), 1),
]


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("shape", "dim"), FULL)
def test_outputs_of_all_extents(shape, dim, weighted, wanted):
    x = numbers(shape) + 3
    shift, weight = numbers(x.size // shape[dim], seed=1), numbers(shape[dim], seed=2) if weighted else None
    mean = x.mean(dim, keepdims=True)
    others = tuple(axis for axis in range(x.ndim) if axis != dim % x.ndim)
    centred = (x - mean) * 0.5 + by_row(shift, shape, dim)
    if weighted:
        centred = centred * by_column(weight, shape, dim)
    result, means, products, sums = several.run((x, shift, weight), dim, (0.5, wanted))
    numpy.testing.assert_allclose(result, centred, rtol=1e-12, atol=1e-12)
    numpy.testing.assert_allclose(means, mean, rtol=1e-12, atol=1e-12)
    numpy.testing.assert_allclose(sums, x.sum(others), rtol=1e-11)
    assert means.shape == mean.shape
    if wanted:
        numpy.testing.assert_allclose(products, (centred * x).sum(others), rtol=1e-9, atol=1e-9)
    else:
        assert products is None


@pytest.mark.parametrize("shape", [(6, 3), (600, 300)])
def test_outputs_lie_row_by_row_in_memory(shape):
    x = numpy.asfortranarray(numbers(shape))
    assert standardized.run((x, x), 1).flags.c_contiguous


def test_numbers_of_rows_and_columns_have_the_dtype_computed_in():
    x = numbers((600, 40), numpy.float16)
    result, means, products, sums = several.run((x, numbers(600, numpy.float32), None), 1, (1.0, True))
    assert [item.dtype.char for item in (result, means, products, sums)] == ["e", "f", "f", "f"]


def test_nothing_but_an_output_depends_on_a_sum_over_rows():
    @row_program()
    def wrong(x: Array):
        return x / column.sum(x)

    with pytest.raises(TracingError, match="complete after the last row"):
        wrong.run((numpy.ones((2, 3)),), 1)


def test_a_row_is_reduced_once():
    @row_program()
    def wrong(x: Array):
        return row.sum(row.max(x))

    with pytest.raises(TracingError, match="not one value for each element"):
        wrong.run((numpy.ones((2, 3)),), 1)


@row_program()
def taken(x: Array, weight: PerColumn, index: RowIndex):
    return row.take(x, index) * row.take(weight, index), row.put(row.max(x), index)


@pytest.mark.parametrize(("shape", "dim"), FULL)
def test_elements_at_an_index(shape, dim):
    x, weight = numbers(shape), numbers(shape[dim], seed=1)
    index = numpy.random.default_rng(2).integers(0, shape[dim], x.size // shape[dim])
    where = by_row(index, shape, dim)
    value, put = taken.run((x, weight, index), dim)
    numpy.testing.assert_array_equal(value, numpy.take_along_axis(x, where, dim) * weight[where])
    expected = numpy.zeros(shape)
    numpy.put_along_axis(expected, where, x.max(dim, keepdims=True), dim)
    numpy.testing.assert_array_equal(put, expected)


@row_program()
def scans(x: Array, reverse: bool):
    """All scans, one after another."""
    if reverse:
        return (row.cumsum(x, reverse=True), row.cumprod(x, reverse=True), row.cummax(x, reverse=True),
                row.cummin(x, reverse=True), row.logcumsumexp(x, reverse=True))  # fmt: skip
    return row.cumsum(x), row.cumprod(x), row.cummax(x), row.cummin(x), row.logcumsumexp(x)


UFUNCS = [numpy.add, numpy.multiply, numpy.maximum, numpy.minimum, numpy.logaddexp]


@pytest.mark.one_each("dim", "dtype", "reverse", "finite")
@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
@pytest.mark.parametrize(("shape", "dim"), [*FULL, ((601, 30), 1), ((1101, 50), 1), ((3, 4), 1)])
def test_scans(shape, dim, dtype, reverse, finite):
    x = numbers(shape, dtype)
    if not finite:
        x.reshape(-1)[3 % x.size :: 977] = numpy.nan
        x.reshape(-1)[5 % x.size :: 1013] = numpy.inf
    along = numpy.flip(x, dim) if reverse else x
    for ufunc, result in zip(UFUNCS, scans.run((x,), dim, (reverse,)), strict=True):
        with numpy.errstate(all="ignore"):
            expected = ufunc.accumulate(along, dim, numpy.float64).astype(dtype)
        expected = numpy.flip(expected, dim) if reverse else expected
        if finite and ufunc is numpy.add:  # the order of additions in float64 is free
            error = 1e-13 * numpy.abs(x).sum(dim, keepdims=True).max()
            numpy.testing.assert_allclose(result, expected, rtol=1.2e-7 if dtype == numpy.float32 else 0, atol=error)
        else:
            numpy.testing.assert_array_equal(result, expected, ufunc.__name__)


@pytest.mark.thorough
def test_running_sums_of_long_rows_are_carried_in_float64():
    x = numpy.full((2, 3_000_000), 0.1, numpy.float32)
    result = scans.run((x,), 1, (False,))[0]
    expected = numpy.arange(1, x.shape[1] + 1) * float(numpy.float32(0.1))
    numpy.testing.assert_allclose(result, numpy.broadcast_to(expected, x.shape), rtol=1e-7)


@row_program()
def last_greatest(x: Array):
    greatest = row.cummax(x)
    attained = (x == greatest) | xp.isnan(x)
    return greatest, row.cummax(xp.where(attained, row.index(x), 0))


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "?"])
@pytest.mark.parametrize(("shape", "dim"), FULL)
def test_places_in_a_row_are_integers(shape, dim, dtype):
    x = (numbers(shape) > 0).astype(dtype)
    values, index = last_greatest.run((x,), dim)
    assert index.dtype == numpy.int64
    numpy.testing.assert_array_equal(values, numpy.maximum.accumulate(x, dim))
    numpy.testing.assert_array_equal(numpy.take_along_axis(x, index, dim), values)
    with_later = numpy.take_along_axis(x, numpy.minimum(index + 1, shape[dim] - 1), dim)
    later = index < by_column(numpy.arange(shape[dim]), shape, dim)
    assert not (later & (with_later == values)).any()

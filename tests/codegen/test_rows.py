"""Row programs give NumPy's values, for any shape, dimension, dtype and number of threads."""

from __future__ import annotations

import ml_dtypes
import numpy
import pytest

from adjoint.codegen.pointwise import pointwise
from adjoint.codegen.rows import row_program
from adjoint.codegen.tracing import PerColumn, PerRow, TracingError, column, row, xp
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
    """Return `x`, scaled to the extremes of each row, plus the distances of `y` from the means of its rows."""
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
    """Return outputs of all kinds: whole rows, numbers per row, and an optional output. One input is optional."""
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

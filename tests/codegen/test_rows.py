"""Row programs have the values of the same formula in NumPy, whatever the shape, the dimension, the dtype and the threads."""

from __future__ import annotations

import ml_dtypes
import numpy
import pytest

from adjoint.codegen.pointwise import pointwise
from adjoint.codegen.rows import row_program
from adjoint.codegen.tracing import TracingError, row, xp
from adjoint.kernels.nn.softmax import softmax_rows
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


@row_program("standard")
def standardized(x: Array, y: Array):
    """Between the extremes of the row, plus how far `y` is from its mean."""
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
        "softmax(x):",
        "%0: number = row_max(x)",
        "%1: number = subtract(x, %0)",
        "%2: number = exp(%1)",
        "%3: number = row_sum(%2)",
        "%4: number = divide(%2, %3)",
        "return %4",
    ]


def test_a_pointwise_operator_cannot_look_at_rows():
    @pointwise("wrong_cpu")
    def wrong(self: Array):
        return self - row.max(self) + xp.exp(self)

    with pytest.raises(TracingError, match="looks at whole rows"):
        wrong(numpy.ones(3))

"""Running sums, products, extrema and sums of exponentials equal NumPy's results, with and without compiled loops."""

from __future__ import annotations

import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.reduce import scan

SHAPES = [((7,), 0), ((5, 4), 1), ((5, 4), 0), ((3000, 20), 1), ((300, 2000), -1), ((300, 2000), 0), ((3, 50, 700), 1),
          ((2, 3000, 9), 1), ((601, 30), 1), ((1101, 50), 1), ((3, 4), 1), ((33, 16), 1), ((2, 3, 64, 4), 2)]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of overflow and nan

LOGARITHMS = pytest.param(scan.logcumsumexp, numpy.logaddexp, id="logcumsumexp")
SUM, PRODUCT = (
    pytest.param(scan.cumsum, numpy.add, id="cumsum"),
    pytest.param(scan.cumprod, numpy.multiply, id="cumprod"),
)


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"], autouse=True)
def compiled(request, monkeypatch):
    if request.param and not LOOPS.available:
        pytest.skip("compiled kernels need the extra `fast`")
    monkeypatch.setattr(LOOPS, "_enabled", request.param)
    monkeypatch.setattr(LOOPS, "every_size", request.param)
    monkeypatch.setattr(LOOPS, "failures", {})
    yield
    assert not LOOPS.failures


def numbers(shape, dtype=numpy.float64, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def accumulated(ufunc, x, dim, reverse=False):
    along = numpy.flip(x, dim) if reverse else x
    with numpy.errstate(all="ignore"):
        found = ufunc.accumulate(along, dim, numpy.float64).astype(x.dtype)
    return numpy.flip(found, dim) if reverse else found


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize(("function", "ufunc"), [SUM, PRODUCT, LOGARITHMS])
def test_floating_point_numbers(function, ufunc, shape, dim, dtype, finite):
    x = numbers(shape, dtype)
    if not finite:
        x.reshape(-1)[3 % x.size :: 977] = numpy.nan
        x.reshape(-1)[5 % x.size :: 1013] = numpy.inf
    expected = accumulated(ufunc, x, dim)
    # The results do not determine the order of float64 operations.
    error = 1e-13 * numpy.abs(x).sum(dim, keepdims=True).max() if ufunc is numpy.add else 1e-300
    rtol = 1.2e-7 if dtype == "f4" else 1e-12
    numpy.testing.assert_allclose(function(x, dim), expected, rtol=rtol, atol=error if finite else 1e-11)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_sums_from_the_end(shape, dim, dtype):
    x = numbers(shape, dtype) + (1j * numbers(shape, dtype, 1) if dtype == "c8" else 0)
    expected = numpy.flip(numpy.cumsum(numpy.flip(x, dim), dim, "c16" if dtype == "c8" else "f8"), dim)
    numpy.testing.assert_allclose(
        scan.reversed_cumsum(x, dim), expected, rtol=1e-6 if dtype != "f8" else 1e-12, atol=1e-5
    )


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", "?"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_integers_are_exact(shape, dim, dtype):
    x = (numpy.abs(numbers(shape)) * 3).astype(dtype)
    for function, ufunc in ((scan.cumsum, numpy.add), (scan.cumprod, numpy.multiply)):
        result = function(x, dim)
        assert result.dtype == numpy.int64
        numpy.testing.assert_array_equal(result, ufunc.accumulate(x, dim, numpy.int64))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_positions_of_extrema_are_the_last(shape, dim, dtype):
    x = (numbers(shape) > 0).astype(dtype)
    for function, ufunc in ((scan.cummax, numpy.maximum), (scan.cummin, numpy.minimum)):
        values, index = function(x, dim)
        assert index.dtype == numpy.int64
        numpy.testing.assert_array_equal(values, ufunc.accumulate(x, dim))
        numpy.testing.assert_array_equal(numpy.take_along_axis(x, index, dim), values)
        with_later = numpy.take_along_axis(x, numpy.minimum(index + 1, shape[dim] - 1), dim)
        counted = numpy.moveaxis(
            numpy.broadcast_to(numpy.arange(shape[dim]), (*numpy.moveaxis(x, dim, -1).shape,)), -1, dim
        )
        assert not ((index < counted) & (with_later == values)).any()


def test_a_nan_remains_the_extremum_and_counts_again():
    x = numpy.array([1.0, numpy.nan, 3.0, numpy.nan, 5.0])
    values, index = scan.cummax(x, 0)
    numpy.testing.assert_array_equal(values, [1, *[numpy.nan] * 4])
    numpy.testing.assert_array_equal(index, [0, 1, 1, 3, 3])


def test_the_first_sum_of_a_negative_zero_is_zero():
    x = numpy.full((40, 20), -0.0, numpy.float32)
    for dim in (0, 1):
        assert not numpy.signbit(scan.cumsum(x, dim)).any()


@pytest.mark.thorough
def test_sums_of_long_rows_are_carried_in_float64():
    x = numpy.full((2, 3_000_000), 0.1, numpy.float32)
    expected = numpy.arange(1, x.shape[1] + 1) * float(numpy.float32(0.1))
    numpy.testing.assert_allclose(scan.cumsum(x, 1), numpy.broadcast_to(expected, x.shape), rtol=1e-7)

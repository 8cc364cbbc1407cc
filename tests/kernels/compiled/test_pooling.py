"""Compiled pooling gives the results of NumPy's forms."""

from __future__ import annotations

import math

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.plans import Plan
from adjoint.kernels.nn import pooling

# input, dims, kernel, stride, padding, dilation, ceil_mode
CASES = [
    ((2, 3, 28, 29), 2, (2, 2), (), (0,), (1,), False),
    ((2, 3, 17, 40), 2, (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((2, 3, 17, 40), 2, (3, 3), (2, 2), (1, 1), (1, 1), True),
    ((3, 9, 9), 2, (3, 2), (1, 1), (1, 0), (1, 1), False),
    ((1, 2, 20, 21), 2, (3, 3), (3, 4), (0, 0), (2, 3), True),
    ((2, 5, 101), 1, (4,), (3,), (2,), (1,), True),
    ((2, 2, 7, 8, 9), 3, (2, 3, 2), (2, 1, 3), (1, 1, 0), (1, 1, 1), False),
]


def sample(shape, dtype, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def compiled(kernel, *arguments):
    """Return the compiled form of a kernel. The result of this form is NotImplemented if NumPy must compute the case."""
    form = kernel.__wrapped__
    given = form(*arguments).compiled
    made = LOOPS.run(kernel.path, *(arguments if given is None else given))
    if made is NotImplemented:
        return NotImplemented
    made = made if isinstance(made, Plan) else made.plan(form.__code__.co_varnames[: form.__code__.co_argcount])
    return made.run(*arguments)


def with_numpy(function, *args):
    """Return the result of NumPy's form."""
    before, LOOPS.enabled = LOOPS.enabled, False
    try:
        return function(*args)
    finally:
        LOOPS.enabled = before


def assert_close(actual, expected, dtype):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    numpy.testing.assert_allclose(actual, expected, rtol=0, atol={"f4": 1e-5, "f8": 1e-13}[dtype])


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("special", [None, numpy.nan, numpy.inf, -numpy.inf, "ties"])
def test_maxima_and_their_indices(case, dtype, special):
    shape, dims, *options = case
    x = sample(shape, dtype)
    if special == "ties":
        x = numpy.round(x)
    elif special is not None:
        x[numpy.random.default_rng(1).random(shape) < (0.95 if special == -numpy.inf else 0.2)] = special
    expected = with_numpy(pooling.max_pool, x, dims, *options)
    actual = compiled(pooling.max_pool, x, dims, *options, True)
    numpy.testing.assert_array_equal(actual[0], expected[0])
    numpy.testing.assert_array_equal(actual[1], expected[1])
    assert actual[1].dtype == numpy.int64
    grad = sample(actual[0].shape, dtype, 2)
    expected = with_numpy(pooling.max_pool_backward, grad, actual[1], shape, dims)
    assert_close(pooling.max_pool_backward(grad, actual[1], shape, dims), expected, dtype)


@pytest.mark.parametrize("case", [case for case in CASES if set(case[5]) == {1}], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("include", [True, False])
def test_means(case, dtype, include):
    shape, dims, kernel, stride, padding, _, ceil = case
    x = sample(shape, dtype)
    for override in (None, 5):
        args = (dims, kernel, stride, padding, ceil, include, override)
        expected = with_numpy(pooling.avg_pool, x, *args)
        assert_close(compiled(pooling.avg_pool, x, *args), expected, dtype)
        grad = sample(expected.shape, dtype, 1)
        assert_close(
            compiled(pooling.avg_pool_backward, grad, shape, *args),
            with_numpy(pooling.avg_pool_backward, grad, shape, *args),
            dtype,
        )


@pytest.mark.parametrize("bytes_", [16, 32, 64])
@pytest.mark.long_cases
def test_vectors_of_every_width(bytes_, monkeypatch):
    monkeypatch.setattr(HOST, "vector_bytes", bytes_)
    for case in CASES:
        test_maxima_and_their_indices(case, "f4", None)
        if set(case[5]) == {1}:
            test_means(case, "f4", True)


@pytest.mark.parametrize(
    "sizes",
    [
        ((2, 3, 11, 13), (5, 4)),
        ((3, 28), (9,)),
        ((1, 2, 5, 6, 7), (2, 3, 4)),
        ((2, 6, 6), (3, 2)),
        ((2, 3, 5, 1300), (2, 3)),  # more columns than one step of the loop compares
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_windows_that_divide_the_input(sizes, dtype):
    shape, counts = sizes
    x = sample(shape, dtype).round(1)  # the maximum is the first of equal elements, and the last of several NaNs
    x.reshape(-1)[[5, 6, -1]] = numpy.nan
    for actual, expected in zip(
        pooling.adaptive_max_pool(x, counts),
        with_numpy(pooling.adaptive_max_pool, x, counts),
        strict=True,
    ):
        numpy.testing.assert_array_equal(actual, expected)
    expected = with_numpy(pooling.adaptive_avg_pool, x, counts)
    assert_close(compiled(pooling.adaptive_avg_pool, x, counts), expected, dtype)
    grad = sample(expected.shape, dtype, 1)
    expected = with_numpy(pooling.adaptive_avg_pool_backward, grad, shape, len(counts))
    assert_close(compiled(pooling.adaptive_avg_pool_backward, grad, shape, len(counts)), expected, dtype)


def test_an_index_outside_is_an_error():
    grad, indices = numpy.ones((1, 2, 40, 40), "f4"), numpy.full((1, 2, 40, 40), 10**6)
    with pytest.raises(RuntimeError, match="max_pool: index 1000000 is out of bounds for 6400 elements"):
        pooling.max_pool_backward(grad, indices, (1, 2, 80, 80), 2)


def test_other_arrays_are_left_to_numpy():
    for x in (
        numpy.ones((1, 1, 8, 8), "i8"),
        numpy.ones((1, 1, 8, 8), "f2"),
        numpy.ones((1, 1, 8, 16), "f4")[..., ::2],
    ):
        assert compiled(pooling.max_pool, x, 2, (2,), (), (0,), (1,), False, True) is NotImplemented
        if x.dtype.kind == "f":
            assert compiled(pooling.avg_pool, x, 2, (2,), (), (0,), False, True, None) is NotImplemented


@pytest.mark.parametrize("arguments", [(2,), (3, 2, 1), (2, 1, 0, 3), (5, 3, 2, 1, True)], ids=str)
def test_rows_are_pooled_the_same_with_a_graph_and_without(arguments):
    x = adjoint.randn(3, 8, 100)
    x[1, 2, 30] = math.nan
    recorded = adjoint.nn.functional.max_pool1d(x.clone().requires_grad_(), *arguments).detach()
    plain = adjoint.nn.functional.max_pool1d(x, *arguments)
    numpy.testing.assert_array_equal(plain.numpy(), recorded.numpy())

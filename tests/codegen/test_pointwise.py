"""Kernels of traced expressions give NumPy's values, in every dtype, layout and size."""

from __future__ import annotations

import math
import threading
import warnings

import ml_dtypes
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjoint.codegen.expression import BOOL
from adjoint.codegen.pointwise import pointwise
from adjoint.codegen.tracing import xp
from adjoint.kernels.runtime.costs import THREADED
from adjoint.kernels.runtime.layout import laid_out
from adjoint.kernels.runtime.parallel import get_num_threads, set_num_threads

Array = numpy.ndarray

SIZES = [0, 1, 7, THREADED + 3, 5 * THREADED]
FLOATS = [numpy.float32, numpy.float64]


@pointwise("test_cpu", "fc")
def logistic(self: Array):
    """`1 / (1 + exp(-self))`."""
    return xp.reciprocal(1 + xp.exp(-self))


@pointwise("mixed_cpu")
def mixed(self: Array, other: Array, alpha: float = 2, *, low: float | None = None):
    scaled = other * alpha
    if low is not None:
        scaled = xp.maximum(scaled, low)
    return xp.where(self > 0, self * scaled, xp.exp(self) - scaled)


def plain_mixed(x, y, alpha=2.0, low=None):
    scaled = y * numpy.asarray(alpha, y.dtype)
    if low is not None:
        scaled = numpy.maximum(scaled, numpy.asarray(low, y.dtype))
    return numpy.where(x > 0, x * scaled, numpy.exp(x) - scaled)


def numbers(shape, dtype, seed=0):
    random = numpy.random.default_rng(seed)
    values = random.standard_normal(shape)
    if numpy.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, numpy.complex64, numpy.complex128])
def test_values_of_one_operand(size, dtype):
    x = numbers(size, dtype)
    result = logistic(x)
    assert type(result) is numpy.ndarray
    assert result.dtype == dtype
    one = numpy.ones((), dtype)
    numpy.testing.assert_array_equal(result, numpy.reciprocal(one + numpy.exp(-x)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_of_two_operands_and_parameters(size, dtype):
    x, y = numbers(size, dtype), numbers(size, dtype, 1)
    numpy.testing.assert_array_equal(mixed(x, y), plain_mixed(x, y))
    numpy.testing.assert_array_equal(mixed(x, y, 0.3, low=-0.5), plain_mixed(x, y, 0.3, -0.5))


LAYOUTS = {
    "transposed": lambda a: numpy.asarray(a.T),
    "strided": lambda a: a[::2, 1::3],
    "reversed": lambda a: a[::-1],
    "fortran": numpy.asfortranarray,
    "three": lambda a: a.reshape(4, -1, a.shape[1]).transpose(1, 2, 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", [8, 300, 1000])
def test_layouts_are_those_of_the_operands(layout, side):
    x, y = (LAYOUTS[layout](numbers((side, side), numpy.float32, seed)) for seed in (0, 1))
    for one, other in ((x, y), (x, y.copy("C")), (x.copy("C"), y)):
        result, expected = mixed(one, other), plain_mixed(one, other)
        numpy.testing.assert_array_equal(result, expected)
        assert laid_out(result, (one, other)).strides == laid_out(expected, (one, other)).strides
        assert result.size <= THREADED or laid_out(result, (one, other)) is result
    assert logistic(x).strides == numpy.exp(x).strides


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((300, 200), (200,)),
        ((300, 200), (300, 1)),
        ((300, 1), (1, 200)),
        ((200,), (300, 200)),
        ((3, 40, 500), (40, 1)),
        ((100000,), ()),
        ((), (100000,)),
        ((2, 3, 70000), (3, 1)),
        ((70000, 3), (3,)),
        ((1, 1), (1, 70000)),
    ],
)
def test_operands_are_broadcast(first, second):
    x, y = numbers(first, numpy.float64), numbers(second, numpy.float64, 1)
    numpy.testing.assert_array_equal(mixed(x, y), plain_mixed(x, y))


@pytest.mark.parametrize("size", [4, 300])
def test_a_step_is_not_written_over_one_of_a_smaller_shape(size):
    @pointwise("smaller_cpu")
    def smaller(self: Array, other: Array):
        return xp.exp(other) * self

    x, y = numbers((size, size), numpy.float64), numbers(size, numpy.float64, 1)
    numpy.testing.assert_array_equal(smaller(x, y), numpy.exp(y) * x)
    numpy.testing.assert_array_equal(smaller(y, x), numpy.exp(x) * y)


@pytest.mark.parametrize("half", [numpy.dtype(numpy.float16), numpy.dtype(ml_dtypes.bfloat16)])
@pytest.mark.parametrize("size", SIZES)
def test_half_types_are_rounded_once(half, size):
    x, y = numbers(size, numpy.float32).astype(half), numbers(size, numpy.float32, 1).astype(half)
    wide = plain_mixed(x.astype(numpy.float32), y.astype(numpy.float32), 0.3)
    result = mixed(x, y, 0.3)
    assert result.dtype == half
    numpy.testing.assert_array_equal(result.astype(numpy.float32), wide.astype(half).astype(numpy.float32))


def test_results_without_dimensions_are_arrays():
    for value in (1.5, numpy.float32(1.5), numpy.asarray(1.5, numpy.float16)):
        result = logistic(numpy.asarray(value))
        assert type(result) is numpy.ndarray
        assert result.shape == ()


@pytest.mark.parametrize("dtype", [numpy.int64, bool, numpy.complex64])
def test_other_dtypes_are_refused_in_the_name_of_the_kernel(dtype):
    with pytest.raises(NotImplementedError, match='"mixed_cpu" not implemented for'):
        mixed(numpy.ones(3, dtype), numpy.ones(3, dtype))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16])
def test_in_place_writes_over_the_first_operand(size, dtype):
    x, y = numbers(size, dtype), numbers(size, dtype, 1)
    expected = mixed(x, y, 0.3)
    target = x.copy()
    assert mixed.inplace(target, y, 0.3) is target
    numpy.testing.assert_array_equal(target, expected)
    itself = x.copy()
    expected = mixed(x, x, 0.3)
    mixed.inplace(itself, itself, 0.3)
    numpy.testing.assert_array_equal(itself, expected)


def test_in_place_into_a_part_of_memory():
    memory = numbers((400, 600), numpy.float32)
    before = memory.copy()
    part = memory[::2, 3:500]
    logistic.inplace(part)
    numpy.testing.assert_array_equal(part, logistic(before[::2, 3:500].copy()))
    numpy.testing.assert_array_equal(memory[1::2], before[1::2])


def test_in_place_refuses_results_that_do_not_fit():
    with pytest.raises(ValueError, match="does not fit"):
        mixed.inplace(numpy.ones(3), numpy.ones((2, 3)))


def test_parameters_may_be_arrays_without_dimensions():
    x, y = numbers(5, numpy.float32), numbers(5, numpy.float32, 1)
    numpy.testing.assert_array_equal(mixed(x, y, numpy.asarray(0.3)), mixed(x, y, 0.3))


def test_special_values_and_no_warnings():
    x = numpy.asarray([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, -1e308])
    for copies in (1, THREADED):
        wide = numpy.tile(x, copies)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = logistic(wide)
        with numpy.errstate(all="ignore"):
            numpy.testing.assert_array_equal(result, 1 / (1 + numpy.exp(-wide)))


def test_several_outputs_and_conditions():
    @pointwise("several_cpu")
    def several(self: Array):
        positive = self > 0
        return xp.as_number(positive) * 2, positive & (self < 1), self

    for size in (5, 3 * THREADED):
        x = numbers(size, numpy.float32)
        number, condition, same = several(x)
        numpy.testing.assert_array_equal(number, (x > 0).astype(numpy.float32) * 2)
        assert condition.dtype == bool
        numpy.testing.assert_array_equal(condition, (x > 0) & (x < 1))
        numpy.testing.assert_array_equal(same, x)
        assert same is not x


def test_complex_magnitudes_are_real():
    @pointwise("magnitude_cpu", "fc")
    def magnitude(self: Array):
        return xp.abs(self) + 1

    for size in (5, 3 * THREADED):
        x = numbers(size, numpy.complex64)
        result = magnitude(x)
        assert result.dtype == numpy.float32
        numpy.testing.assert_array_equal(result, numpy.abs(x) + numpy.float32(1))
        numpy.testing.assert_array_equal(magnitude(x.real), numpy.abs(x.real) + numpy.float32(1))


def test_any_number_of_threads_has_the_same_values():
    x, y = numbers(40 * THREADED, numpy.float32), numbers(40 * THREADED, numpy.float32, 1)
    before = get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            set_num_threads(threads)
            results.append(mixed(x, y))
    finally:
        set_num_threads(before)
    for result in results:
        numpy.testing.assert_array_equal(result, results[0])


def test_kernels_are_built_once_by_many_threads():
    @pointwise("built_cpu")
    def fresh(self: Array, alpha: float = 1):
        return xp.tanh(self * alpha) + 1

    barrier, results = threading.Barrier(8), []

    def call():
        barrier.wait()
        results.append(fresh(numpy.ones(3), 2.0))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for result in results:
        numpy.testing.assert_array_equal(result, numpy.tanh(2 * numpy.ones(3)) + 1)


# --- random expressions ---------------------------------------------------------------------------------------

UNARY = ["negative", "absolute", "tanh", "sin", "square", "floor", "arctan"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "copysign"]
COMPARE = ["less", "greater_equal"]


@st.composite
def programs(draw):
    """Draw the steps of a random program: operations on earlier values. The first two values are the inputs."""
    steps = []
    for number in range(draw(st.integers(1, 8))):
        earlier = st.integers(0, number + 1)
        operation = draw(st.sampled_from([*UNARY, *BINARY, "where", "constant", "parameter"]))
        operands = draw(st.tuples(earlier, earlier, earlier))
        steps.append((operation, operands, draw(st.sampled_from(COMPARE)), draw(st.sampled_from([0, -0.5, 1, 3.25]))))
    return steps


def evaluated(names, steps, x, y, alpha):
    values = [x, y]
    for operation, (a, b, c), comparison, constant in steps:
        a, b, c = values[a], values[b], values[c]
        if operation == "where":
            values.append(names.where(getattr(names, comparison)(a, b), b, c))
        elif operation == "constant":
            values.append(a * constant)
        elif operation == "parameter":
            values.append(b + alpha)
        else:
            values.append(getattr(names, operation)(*(a, b)[: 1 if operation in UNARY else 2]))
    return values[-1]


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(
    steps=programs(),
    shapes=st.sampled_from([((6,), (6,)), ((4, 3), (3,)), ((), (2,)), ((40, 1000), (1000,)), ((200, 200), (200, 200))]),
    transposed=st.booleans(),
    dtype=st.sampled_from(FLOATS),
)
def test_random_expressions_are_those_of_numpy(steps, shapes, transposed, dtype):
    def expression(x: Array, y: Array, alpha: float):
        return evaluated(xp, steps, x, y, alpha)

    x, y = (numbers(shape, dtype, seed) for seed, shape in enumerate(shapes))
    if transposed and x.ndim == 2:
        x = x.T.copy().T
    result = pointwise("random_cpu")(expression)(x, y, 0.75)
    with numpy.errstate(all="ignore"):
        expected = evaluated(numpy, steps, x, y, dtype(0.75))
    assert result.dtype == dtype
    numpy.testing.assert_array_equal(result, numpy.broadcast_to(expected, result.shape))


@pytest.mark.thorough
def test_every_operation_has_straight_and_tile_code():
    from adjoint.codegen.expression import OPERATIONS

    for operation, about in OPERATIONS.items():
        if operation == "where" or operation.startswith("logical_") or not hasattr(numpy, operation):
            continue
        if operation.startswith("bitwise_") or operation in (
            "left_shift",
            "right_shift",
            "invert",
            "gcd",
            "lcm",
            "ldexp",
            "i0",
        ):  # functions for integers, and functions with another formula than NumPy's
            continue
        expression = of_first(operation, about.arity)
        for size in (3, 2 * THREADED):
            x, y = numbers(size, numpy.float64) ** 2 + 1, numbers(size, numpy.float64, 1) ** 2 + 1
            kernel = pointwise("one_cpu")(expression)
            result = kernel(x, y)
            assert result.shape == x.shape
            assert result.dtype == (bool if about.result == BOOL else numpy.float64)
            with numpy.errstate(all="ignore"):
                expected = getattr(numpy, operation)(*(x, y)[: about.arity])
            numpy.testing.assert_array_equal(result, expected)


def of_first(operation, count):
    def expression(x: Array, y: Array):
        return getattr(xp, operation)(*(x, y)[:count])

    return expression

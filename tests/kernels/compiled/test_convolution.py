"""Compiled convolutions give the results of NumPy's forms."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.compiled.nn import convolution as compiled
from adjoint.kernels.compiled.nn import convolution_channels
from adjoint.kernels.nn import convolution
from adjoint.kernels.runtime.parallel import get_num_threads, set_num_threads

# input, out channels, kernel, stride, padding, dilation, groups
CASES = [
    ((3, 3, 12, 13), 16, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((5, 6, 14, 14), 16, (5, 5), (1, 1), (0, 0), (1, 1), 1),
    ((9, 16, 8, 8), 20, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((2, 3, 30, 41), 5, (7, 7), (2, 2), (3, 3), (1, 1), 1),
    ((2, 4, 17, 9), 6, (3, 2), (3, 1), (2, 4), (1, 2), 2),
    ((3, 8, 11, 12), 8, (3, 3), (1, 1), (1, 1), (1, 1), 8),
    ((3, 8, 11, 12), 16, (3, 3), (2, 2), (1, 1), (1, 1), 8),
    ((4, 24, 18, 17), 9, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 5, 19, 20), 3, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((3, 5, 32, 16), 8, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((4, 6, 9, 8), 7, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((2, 3, 5, 5), 4, (1, 1), (1, 1), (3, 2), (1, 1), 1),
    ((2, 3, 501), 10, (3,), (1,), (1,), (1,), 1),
    ((1, 2, 100), 1, (5,), (4,), (2,), (3,), 1),
    ((2, 4, 6, 7, 8), 5, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((2, 4, 6, 7, 8), 6, (2, 3, 1), (2, 1, 3), (1, 2, 0), (1, 2, 1), 2),
    ((1, 2, 7, 6), 3, (2, 2), (1, 1), (3, 3), (1, 1), 1),
    # depthwise convolutions
    ((2, 7, 40), 7, (3,), (1,), (1,), (1,), 7),
    ((2, 6, 9, 21), 6, (3, 5), (2, 1), (1, 2), (2, 1), 6),
    ((2, 3, 5, 40), 3, (5, 3), (1, 1), (4, 2), (1, 1), 3),
    ((3, 4, 2, 3), 4, (3, 3), (1, 1), (2, 2), (1, 1), 4),
    ((2, 5, 33, 17), 5, (2, 4), (1, 1), (0, 1), (1, 3), 5),
    ((2, 1, 13, 30), 1, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    # more samples, and vectors that do not fill a tile
    ((13, 8, 7, 7), 24, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((32, 16, 14, 14), 16, (3, 3), (1, 1), (1, 1), (1, 1), 1),
]


def planned(plan, *arguments):
    """Return the results of the plan for these arguments."""
    return plan(*arguments).run(*arguments)


def sample(shape, dtype, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def with_numpy(function, *args):
    """Call a function without compiled code."""
    before, LOOPS.enabled = LOOPS.enabled, False
    try:
        return function(*args)
    finally:
        LOOPS.enabled = before


def assert_close(actual, expected):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    tolerance = {2: 1e-2, 4: 2e-5, 8: 1e-12}[actual.dtype.itemsize] * max(1, abs(expected).max())
    numpy.testing.assert_allclose(actual.astype("f8"), expected.astype("f8"), rtol=0, atol=tolerance)


def compare(case, dtype, x=None):
    shape, outs, kernel, *rest, groups = case
    x = sample(shape, dtype) if x is None else x
    weight, bias = sample((outs, shape[1] // groups, *kernel), dtype, 1), sample(outs, dtype, 2)
    result = with_numpy(convolution.conv_forward, x, weight, bias, *rest, groups)
    assert_close(planned(compiled.conv_forward, x, weight, bias, *rest, groups), result)
    grad = sample(result.shape, dtype, 3)
    for name, args in (
        ("transposed", (grad, weight, None, shape)),
        ("conv_weight_grad", (grad, x, weight.shape)),
        ("transposed", (grad, weight, sample(shape[1], dtype, 4), shape)),
    ):
        expected = with_numpy(getattr(convolution, name), *args, *rest, groups)
        assert_close(planned(getattr(compiled, name), *args, *rest, groups), expected)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_convolution_and_its_gradients(case, dtype):
    compare(case, dtype)


@pytest.fixture
def new_plans():
    """Delete earlier plans before and after the test."""
    compiled._plan.cache_clear()
    yield
    compiled._plan.cache_clear()


@pytest.mark.parametrize("bytes_", [16, 32, 64])
@pytest.mark.parametrize("case", CASES[:7] + CASES[13:15], ids=str)
@pytest.mark.long_cases
def test_vectors_of_every_width(case, bytes_, monkeypatch, new_plans):
    monkeypatch.setattr(HOST, "vector_bytes", bytes_)
    compare(case, "f4")


@pytest.mark.parametrize("besides", [0, 1 << 20])
@pytest.mark.parametrize("case", [case for case in CASES if case[0][1] == case[1] == case[-1]], ids=str)
def test_each_channel_by_itself_packed_and_read_where_it_is(case, besides, monkeypatch, new_plans):
    monkeypatch.setattr(convolution_channels, "_BESIDES_PACKED", besides)
    compare(case, "f4")


def test_half_precision_is_computed_in_single():
    compare(CASES[0], "f2")


def test_inputs_of_other_layouts():
    case = CASES[0]
    x = sample(case[0], "f4")
    compare(case, "f4", numpy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2))
    compare(case, "f4", numpy.repeat(x, 2, axis=1)[:, ::2])
    compare(case, "f4", numpy.repeat(x, 2, axis=3)[..., ::2])
    compare(case, "f4", numpy.broadcast_to(x[:1], x.shape))


@pytest.mark.parametrize("special", [numpy.inf, numpy.nan])
def test_infinities_and_nan_reach_the_places_they_belong_to(special):
    case = ((2, 3, 9, 8), 4, (3, 3), (1, 1), (1, 1), (1, 1), 1)
    x, weight = sample(case[0], "f4"), sample((4, 3, 3, 3), "f4", 1)
    x[1, 2, 4, 7] = special
    grad = sample((2, 4, 9, 8), "f4", 2)
    expected = with_numpy(convolution.conv_forward, x, weight, None, *case[3:])
    actual = convolution.conv_forward(x, weight, None, *case[3:])
    assert_close(numpy.nan_to_num(actual, posinf=9, neginf=-9), numpy.nan_to_num(expected, posinf=9, neginf=-9))
    expected = with_numpy(convolution.conv_weight_grad, grad, x, weight.shape, *case[3:])
    LOOPS.every_size, before = True, LOOPS.every_size
    try:
        actual = convolution.conv_weight_grad(grad, x, weight.shape, *case[3:])
    finally:
        LOOPS.every_size = before
    assert (numpy.isnan(actual) == numpy.isnan(expected)).all()
    assert_close(numpy.nan_to_num(actual, posinf=9, neginf=-9), numpy.nan_to_num(expected, posinf=9, neginf=-9))


@pytest.mark.thorough
def test_threads_and_blocks_change_no_result_but_rounding():
    case = ((17, 8, 40, 40), 16, (3, 3), (1, 1), (1, 1), (1, 1), 1)
    before = get_num_threads()
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            compare(case, "f4")
            compare(((1, *case[0][1:]), *case[1:]), "f4")
            compare(((1, 64, 3000), 32, (3,), (1,), (1,), (1,), 1), "f4")
            compare(((2, 32, 90, 90), 32, (4, 4), (2, 2), (1, 1), (1, 1), 1), "f4")
            compare(((3, 70, 30, 30), 70, (3, 3), (1, 1), (1, 1), (1, 1), 70), "f4")
            compare(((2, 48, 20, 33), 24, (3, 3), (2, 2), (1, 1), (1, 1), 12), "f4")
            compare(((1, 24, 40, 50), 16, (1, 1), (1, 1), (0, 0), (1, 1), 1), "f4")
    finally:
        set_num_threads(before)


def test_the_gradient_of_the_weight_is_the_same_every_time():
    x, grad = sample((16, 8, 40, 40), "f4"), sample((16, 16, 40, 40), "f4", 1)
    first = planned(compiled.conv_weight_grad, grad, x, (16, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1)
    for _ in range(20):
        again = planned(compiled.conv_weight_grad, grad, x, (16, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1)
        assert (again == first).all()


def test_nothing_is_read_or_written_beyond_the_arrays():
    for case in (CASES[7], CASES[0], CASES[2]):
        shape, outs, kernel, *rest, groups = case
        around = numpy.full(numpy.prod(shape) + 400, numpy.nan, "f4")
        x = around[200:-200].reshape(shape)
        x[...] = sample(shape, "f4")
        weight = sample((outs, shape[1] // groups, *kernel), "f4", 1)
        result = planned(compiled.conv_forward, x, weight, None, *rest, groups)
        assert numpy.isfinite(result).all()
        grad = numpy.ones_like(result)
        assert numpy.isfinite(planned(compiled.conv_weight_grad, grad, x, weight.shape, *rest, groups)).all()
        assert numpy.isnan(around[:200]).all() and numpy.isnan(around[-200:]).all()


def test_other_numbers_are_left_to_numpy():
    args = ((1, 1), (0, 0), (1, 1), 1)
    for dtype in ("i8", "c8", ">f4"):
        x, weight = numpy.ones((1, 1, 4, 4), dtype), numpy.ones((1, 1, 3, 3), dtype)
        assert compiled.conv_forward(x, weight, None, *args) is NotImplemented
        assert compiled.conv_weight_grad(x[..., :2, :2], x, (1, 1, 3, 3), *args) is NotImplemented

import itertools
import math

import ml_dtypes
import numpy
import pytest

import adjoint as torch
from adjoint.kernels.reduce import counting, moments, reduction, scan

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
SHAPES = [(), (1,), (7,), (3, 4), (3, 1, 5), (2, 0, 3), (70, 500), (40001, 3), (6, 9000), (5, 40, 300), (12, 8, 20, 20)]


@pytest.fixture(autouse=True)
def quiet():
    with numpy.errstate(all="ignore"):
        yield


def sample(shape, dtype="f8", seed=0):
    x = numpy.random.default_rng(seed).standard_normal(shape)
    if numpy.dtype(dtype).kind in "iu":
        x = numpy.abs(x * 3)
    if numpy.dtype(dtype).kind == "c":
        x = x + 1j * numpy.random.default_rng(seed + 1).standard_normal(shape)
    return numpy.asarray(x).astype(dtype)


def dims_of(ndim):
    every = [dims for n in range(1, ndim + 1) for dims in itertools.combinations(range(ndim), n)]
    return [None, *every, *range(-ndim, ndim)]


def layouts(x):
    yield x
    yield x.T
    if x.ndim > 1:
        yield numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 0, -1)), -1, 0)
        yield x[:, ::2]


CASES = {
    "sum": (reduction.sum, numpy.sum),
    "mean": (reduction.mean, numpy.mean),
    "prod": (reduction.prod, numpy.prod),
    "amax": (reduction.amax, numpy.max),
    "amin": (reduction.amin, numpy.min),
    "var": (lambda x, d, k: moments.var(x, d, 0, k), numpy.var),
    "norm": (lambda x, d, k: moments.norm(x, 2, d, k), lambda x, axis, keepdims: numpy.sqrt(
        numpy.sum(x * x, axis=axis, keepdims=keepdims))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", SHAPES)
def test_against_numpy(name, shape):
    ours, reference = CASES[name]
    x = sample(shape)
    for layout in layouts(x):
        for dim in dims_of(layout.ndim):
            if layout.size == 0 and name not in ("sum", "prod"):
                continue
            for keepdim in (False, True):
                expected = reference(layout, axis=dim, keepdims=keepdim)
                result = ours(layout, dim, keepdim)
                assert type(result) is numpy.ndarray
                assert result.shape == numpy.shape(expected)
                numpy.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(100, 100), (300000,), (1000003,), (600000, 2), (2, 300001)])
def test_float32_sums_are_accurate(shape):
    x = sample(shape, "f4") + numpy.float32(1)
    for dim in (None, 0, x.ndim - 1):
        exact = numpy.sum(x, axis=dim, dtype="f8")
        numpy.testing.assert_allclose(reduction.sum(x, dim), exact, rtol=2e-6)
    # In a single running sum, rounding would drop the ones.
    assert reduction.sum(numpy.full((20_000_000, 1), 1, "f4"), 0)[0] == 20_000_000


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("?", "i8"),
        ("u1", "i8"),
        ("i2", "i8"),
        ("f2", "f2"),
        ("f4", "f4"),
        ("f8", "f8"),
        ("c8", "c8"),
        (BFLOAT16, BFLOAT16),
    ],
)
def test_dtypes(source, result):
    x = sample((4, 5), source)
    for function in (reduction.sum, reduction.prod):
        assert function(x).dtype == result
        assert function(x, 1).dtype == result
        assert function(x, dtype=numpy.dtype("f8" if x.dtype.kind != "c" else "c16")).dtype.itemsize in (8, 16)
    assert scan.cumsum(x, 0).dtype == result
    assert reduction.sum(numpy.array([1.7, 1.6]), dtype=numpy.dtype("i8")) == 2


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16])
def test_halves_accumulate_in_float32(dtype):
    x = numpy.ones(5000, dtype)
    assert float(reduction.sum(x)) == float(numpy.float32(5000).astype(dtype))
    assert float(reduction.mean(x)) == 1
    assert float(scan.cumsum(x, 0)[2999]) == float(numpy.float32(3000).astype(dtype))


def test_extrema_propagate_nan():
    x = numpy.array([[1.0, math.nan, 3.0, math.nan], [4.0, 2.0, 4.0, 1.0]])
    assert numpy.isnan(reduction.amax(x, 1)[0])
    assert numpy.isnan(reduction.amin(x)).all()
    values, indices = reduction.max_with_indices(x, 1)
    assert numpy.isnan(values[0])
    assert indices.tolist() == [1, 0]
    assert reduction.min_with_indices(x, 0)[1].tolist() == [0, 0, 0, 0]
    assert reduction.nansum(x, 1).tolist() == [4, 11]


@pytest.mark.parametrize("shape", [(3, 5), (300, 400), (3, 200, 300), (40000, 2)])
@pytest.mark.parametrize("special", [math.nan, -0.0])
def test_first_extremum(shape, special):
    x = numpy.random.default_rng(0).integers(0, 9, shape).astype("f4")
    x.reshape(-1)[7] = special
    for dim in range(-x.ndim, x.ndim):
        for name, reference in (("max", numpy.argmax), ("min", numpy.argmin)):
            expected = reference(x, dim)
            values, indices = getattr(reduction, f"{name}_with_indices")(x, dim)
            assert (indices == expected).all()
            assert (getattr(reduction, f"arg{name}")(x, dim) == expected).all()
            picked = numpy.take_along_axis(x, numpy.expand_dims(expected, dim), dim).squeeze(dim)
            numpy.testing.assert_array_equal(values, picked)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda x: reduction.sum(x, 2), IndexError, r"Dimension out of range .* of \[-2, 1\], but got 2\)"),
        (lambda x: reduction.sum(x, (0, -2)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda x: reduction.mean(x.astype(int)), RuntimeError, r"mean\(\): could not infer output dtype. Input dtype"),
        (lambda x: reduction.amax(x[:0]), RuntimeError, r"amax\(\): Expected reduction dim to be specified"),
        (lambda x: reduction.amin(x[:0], 0), IndexError, r"amin\(\): Expected reduction dim 0 to have non-zero size."),
        (lambda x: reduction.argmax(x[:0]), IndexError, r"argmax\(\): Expected reduction dim to be specified"),
        (lambda x: reduction.max_with_indices(x * 1j, 0), RuntimeError, r"max\(\): does not support complex input"),
        (lambda x: moments.std(x.astype(int)), RuntimeError, "std and var only support floating point and complex"),
        (lambda x: moments.norm(x[:0], math.inf), RuntimeError, "cannot compute the inf norm on an empty tensor"),
        (lambda x: scan.cummax(x * 1j, 0), NotImplementedError, "\"cummax_cpu\" not implemented for 'ComplexDouble'"),
    ],
)  # fmt: skip
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call(sample((3, 4)))


def test_empty_reductions():
    x = numpy.zeros((0, 3), "f4")
    assert reduction.sum(x, 0).tolist() == [0, 0, 0]
    assert reduction.prod(x) == 1
    assert numpy.isnan(reduction.mean(x, 0)).all()
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert numpy.isnan(moments.var(x)).all()
    assert reduction.amax(x, 1).shape == (0,)
    assert bool(reduction.all(x))
    assert not reduction.any(x)


def test_all_and_any():
    x = numpy.array([[0, 2], [3, 4]], "u1")
    assert reduction.all(x, 1).dtype == numpy.uint8
    assert reduction.all(x.astype("f4"), 1).tolist() == [False, True]
    assert reduction.any(numpy.array([math.nan, 0.0]))
    assert reduction.count_nonzero(x) == 3
    assert reduction.count_nonzero(x, 0).tolist() == [1, 2]


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, math.inf, -math.inf, -1])
def test_norms(p):
    x = sample((40, 30), "c16")
    magnitude = numpy.abs(x)
    expected = {
        0: lambda: (magnitude != 0).sum(1),
        math.inf: lambda: magnitude.max(1),
        -math.inf: lambda: magnitude.min(1),
    }.get(p, lambda: (magnitude**p).sum(1) ** (1 / p))()
    result = moments.norm(x, p, 1)
    assert result.dtype == "f8"
    numpy.testing.assert_allclose(result, expected)


def test_variance_of_complex_and_corrections():
    x = sample((50, 4), "c16")
    numpy.testing.assert_allclose(moments.var(x, 0), numpy.var(x, axis=0, ddof=1))
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert numpy.isinf(moments.var(numpy.arange(2.0), None, 5))
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert numpy.isnan(moments.var(numpy.ones(1)))
    far = (sample((100000,), "f4") + 1e4).astype("f4")
    assert abs(float(moments.var(far)) - float(numpy.var(far.astype("f8"), ddof=1))) < 1e-3


@pytest.mark.parametrize("shape", [(), (5,), (4, 6), (300, 100), (2, 3, 30000), (30000, 2)])
def test_scans(shape):
    x = sample(shape)
    for dim in range(-x.ndim, x.ndim):
        numpy.testing.assert_allclose(scan.cumsum(x, dim), numpy.cumsum(x, dim), atol=1e-9)
        numpy.testing.assert_allclose(scan.cumprod(x, dim), numpy.cumprod(x, dim), atol=1e-9)
        numpy.testing.assert_allclose(
            scan.logcumsumexp(x, dim), numpy.logaddexp.accumulate(x, dim), rtol=1e-9, atol=1e-9
        )
        values, indices = scan.cummax(x, dim)
        numpy.testing.assert_array_equal(values, numpy.maximum.accumulate(x, dim))
        numpy.testing.assert_array_equal(numpy.take_along_axis(x, indices, dim), values)
    assert scan.cumsum(numpy.array([1e8, 1, -1e8], "f4"), 0).tolist() == [1e8, 1e8, 1]


def test_running_extrema_take_the_last_and_keep_nan():
    values, indices = scan.cummax(numpy.array([1.0, 1.0, 2.0, math.nan, 5.0, math.nan]), 0)
    assert indices.tolist() == [0, 1, 2, 3, 3, 5]
    assert numpy.isnan(values[3:]).all()
    assert scan.cummin(numpy.array([1, 1, 2, 0]), 0)[1].tolist() == [0, 1, 1, 3]


def test_complex_logcumsumexp():
    x = sample((6, 3), "c16")
    numpy.testing.assert_allclose(numpy.exp(scan.logcumsumexp(x, 0)), numpy.cumsum(numpy.exp(x), 0))
    shifted = scan.logcumsumexp(x + 1000, 0) - 1000
    numpy.testing.assert_allclose(shifted, scan.logcumsumexp(x, 0), rtol=1e-9)


def test_results_without_dimensions_are_arrays():
    for x in (sample((3, 4)), sample((3, 4), "f4"), sample((60, 70)), sample((3, 4), "i8")):
        names = ("sum", "prod", "amax", "amin", "argmax", "all", "any", "count_nonzero", "total", "largest", "smallest")
        for name in names:
            result = getattr(reduction, name)(x)
            assert type(result) is numpy.ndarray
            assert result.shape == ()
    for function in (reduction.mean, reduction.total_mean, moments.var, moments.std, moments.norm):
        assert type(function(sample((3, 4)))) is numpy.ndarray


def test_counts_over_a_range_beyond_the_largest_number():
    most = numpy.finfo("f8").max
    for numbers, expected in (([-most, 1.0, 3e4], [1, 0, 0, 2]), ([0.0, most, most / 2], [1, 0, 1, 1])):
        with numpy.errstate(all="ignore"):
            assert counting.histc(numpy.array(numbers), 4).tolist() == expected


ROUNDED_SHAPES = [
    *[((3, 4), ()), ((12,), ()), ((10, 10), ()), ((40, 50), ()), ((70, 500), ()), ((3, 4), (4,)), ((20, 30), (30,))],
    *[((3, 4), (3, 1)), ((3, 4), (1, 4)), ((20, 30), (1, 30)), ((30, 7), (30, 1)), ((300, 200), (200,))],
    *[((2, 3, 4), (4,)), ((2, 3, 4), (1, 3, 1)), ((20, 30, 4), (30, 1)), ((4, 5, 64), (5, 64)), ((1, 5), (5,))],
]


@pytest.mark.parametrize(("shape", "small"), ROUNDED_SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_the_gradient_of_a_broadcast_operand_is_the_sum_bit_for_bit(shape, small, dtype):
    lead = len(shape) - len(small)
    dims = [dim for dim in range(len(shape)) if dim < lead or small[dim - lead] != shape[dim]]
    grad = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(3))
    other = torch.zeros(small, dtype=dtype, requires_grad=True)

    def gradient(grad, other):
        return torch.autograd.grad(grad + other, other, grad)[0]

    expected = (grad.sum(dims, True) if small else grad.sum()).reshape(small)
    assert torch.equal(gradient(grad, other), expected)
    (compiled,) = torch.compile(lambda *args: [gradient(*args)])(grad, other)
    rounding = torch.finfo(dtype).eps * grad.abs().double().sum(dims).reshape(small)
    assert ((compiled - expected).abs() <= rounding).all()  # native programs add in float64

"""Compiled loops along one dimension and for single lines: running extrema, ranges, searches, resampling, long transforms."""

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.linalg.decompositions import solve_triangular
from adjoint.kernels.math.fourier import fft_c2c
from adjoint.kernels.nn.resampling import resample_backward, resampling
from adjoint.kernels.reduce.counting import searchsorted
from adjoint.kernels.reduce.scan import cummax, cummin, cumsum, logcumsumexp

pytestmark = pytest.mark.skipif(not LOOPS.available, reason="llvmlite is not installed")


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)


def _interpreted(function, *args):
    """Call a kernel without compiled loops."""
    enabled = LOOPS.enabled
    LOOPS.enabled = False
    try:
        return function(*args)
    finally:
        LOOPS.enabled = enabled


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
@pytest.mark.parametrize("shape", [(7,), (3, 70), (70, 3), (2, 30, 17)])
@pytest.mark.long_cases
def test_running_extrema_and_sums(dtype, shape):
    random = numpy.random.default_rng(0)
    x = random.integers(-3, 4, shape).astype(dtype)
    if dtype.startswith("float"):
        x[random.random(shape) < 0.05] = numpy.nan
        x[random.random(shape) < 0.05] = -0.0
    for dim in range(len(shape)):
        for function in (cummax, cummin):
            for found, expected in zip(function(x, dim), _interpreted(function, x, dim), strict=True):
                numpy.testing.assert_array_equal(found, expected)
        if not dtype.startswith("float"):
            numpy.testing.assert_array_equal(cumsum(x, dim), x.cumsum(dim))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (3, 70), (37, 9), (2, 30, 17), (3, 5, 300)])
def test_running_sums_of_exponentials(dtype, shape):
    random = numpy.random.default_rng(1)
    x = (random.standard_normal(shape) * 30).astype(dtype)
    for value in (-0.0, numpy.inf, -numpy.inf, numpy.nan):
        x[random.random(shape) < 0.02] = value
    x.flat[0] = -numpy.inf
    for dim in range(len(shape)):
        for operand in (x, x[..., ::2]):
            found, expected = logcumsumexp(operand, dim), _interpreted(logcumsumexp, operand, dim)
            assert found.dtype == dtype
            numpy.testing.assert_allclose(found, expected, rtol=2 * numpy.finfo(dtype).eps, atol=2e-14)
            first = [numpy.signbit(item.take(0, dim)) for item in (found, expected)]
            numpy.testing.assert_array_equal(*first)
    assert not LOOPS.enabled or LOOPS._forms["reduce.running.scan"] is not None  # None if the compilation failed


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 100])
def test_search(dtype, right, length):
    random = numpy.random.default_rng(0)
    sequences = numpy.sort(random.integers(0, 40, (3, length))).astype(dtype)
    values = random.integers(-2, 43, (3, 70)).astype(dtype)
    if dtype.startswith("float"):
        values[:, :3] = numpy.nan, numpy.inf, -numpy.inf
    expected = [numpy.searchsorted(*row, "right" if right else "left") for row in zip(sequences, values, strict=True)]
    numpy.testing.assert_array_equal(searchsorted(sequences, values, right=right), expected)
    expected = numpy.searchsorted(sequences[0], values, "right" if right else "left")
    numpy.testing.assert_array_equal(searchsorted(sequences[0], values, right=right), expected)


@pytest.mark.parametrize(
    "bounds", [(0, 5000, 1), (0.0, 1e3, 0.7), (-3.3, 90, 0.013), (1000, 0, -3), (1e8, 1e8 + 900, 1.3)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ranges_have_the_same_bits(bounds, dtype):
    numpy.testing.assert_array_equal(
        torch.arange(*bounds, dtype=dtype).numpy(), _interpreted(lambda: torch.arange(*bounds, dtype=dtype).numpy())
    )
    ends = (*bounds[:2], 1001, dtype)
    numpy.testing.assert_array_equal(_spaced(*ends), _interpreted(_spaced, *ends))


def _spaced(start, end, steps, dtype):
    return torch.linspace(start, end, steps, dtype=dtype).numpy()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
@pytest.mark.parametrize(("size", "columns"), [(24, 1), (64, 5), (65, 17), (130, 70)])
def test_triangular_systems(upper, unitriangular, size, columns):
    random = numpy.random.default_rng(0)
    a = random.standard_normal((2, size, size)) / (4 * size) + numpy.eye(size)
    b = random.standard_normal((size, columns))
    triangle = (numpy.triu if upper else numpy.tril)(a)
    if unitriangular:
        triangle[:, numpy.arange(size), numpy.arange(size)] = 1
    numpy.testing.assert_allclose(
        triangle @ solve_triangular(a, b, upper, True, unitriangular), b + 0 * triangle[:, :, :1], atol=1e-12
    )
    found = solve_triangular(a, b.T, upper, False, unitriangular)
    numpy.testing.assert_allclose(found @ triangle, b.T + 0 * triangle[:, :1, :1], atol=1e-12)


def test_a_triangle_with_a_zero_on_its_diagonal_has_infinite_solutions():
    a = numpy.eye(30)
    a[3, 3] = 0
    found = solve_triangular(a, numpy.ones((30, 2)), True)
    assert numpy.isinf(found[3]).all() and (found[4:] == 1).all()


@pytest.mark.parametrize(
    ("mode", "antialias"), [("linear", False), ("bicubic", False), ("nearest", False), ("linear", True)]
)
@pytest.mark.parametrize(("old", "new"), [(50, 100), (300, 31), (1, 4), (5, 5)])
@pytest.mark.parametrize("inner", [(), (3,), (20,)])
def test_resampling(mode, antialias, old, new, inner):
    x = numpy.random.default_rng(0).standard_normal((2, 3, old, *inner))
    size, scales = (new, *inner), (None,) * (1 + len(inner))
    resample = resampling(mode, antialias)
    found = resample(x, size, False, scales)
    numpy.testing.assert_allclose(found, _interpreted(resample, x, size, False, scales), atol=1e-12)
    grad = numpy.random.default_rng(1).standard_normal(found.shape)
    back = resample_backward(grad, (old, *inner), mode, False, antialias, scales)
    numpy.testing.assert_allclose((grad * found).sum(), (back * x).sum())


@pytest.mark.parametrize("n", [1 << 12, 1 << 15, 3 * 5 * 7 * 128, 1009, 4099, 9001])
@pytest.mark.parametrize("forward", [False, True])
def test_long_transforms_and_lengths_with_large_primes(n, forward):
    random = numpy.random.default_rng(0)
    x = random.standard_normal((2, n, 2)) + 1j * random.standard_normal((2, n, 2))
    expected = numpy.fft.fft(x, axis=1) if forward else numpy.fft.ifft(x, axis=1)
    found = fft_c2c(x, (1,), 0 if forward else 2, forward)
    numpy.testing.assert_allclose(found, expected, atol=1e-13 * abs(expected).max())


def test_one_hot():
    classes = torch.tensor([[0, 2], [1, 30]])
    numpy.testing.assert_array_equal(
        torch.nn.functional.one_hot(classes, 33).numpy(), numpy.eye(33, dtype=numpy.int64)[classes.numpy()]
    )
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes"):
        torch.nn.functional.one_hot(classes, 30)

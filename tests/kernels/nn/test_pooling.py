import itertools
import math

import ml_dtypes
import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.nn import pooling
from adjoint.kernels.nn.windows import pooled_size

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)

# spatial sizes, kernel, stride, padding, dilation
CASES = [
    ((8,), (2,), (2,), (0,), (1,)),
    ((9,), (3,), (2,), (1,), (2,)),
    ((6, 8), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((7, 9), (3, 2), (2, 3), (1, 1), (1, 2)),
    ((5, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((5, 6, 4), (2, 3, 2), (2, 1, 1), (1, 1, 0), (1, 1, 1)),
]


@pytest.fixture(autouse=True)
def quiet():
    with numpy.errstate(all="ignore"):
        yield


def sample(shape, dtype="f8", seed=0):
    return numpy.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


def windows(size, kernel, stride, padding, dilation, ceil_mode):
    """Return the elements of each window along one dimension, including padding."""
    count = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    return [[i * stride - padding + k * dilation for k in range(kernel)] for i in range(count)]


def places(case, ceil_mode):
    """Return, for each output position, the input positions of its window without padding."""
    per_dimension = [windows(*options, ceil_mode) for options in zip(*case, strict=True)]
    for place in itertools.product(*(range(len(w)) for w in per_dimension)):
        rows = [[i for i in w[p] if 0 <= i < size] for w, p, size in zip(per_dimension, place, case[0], strict=True)]
        yield place, list(itertools.product(*rows))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", BFLOAT16, "i8"], ids=str)
def test_max_pool(case, ceil_mode, dtype):
    sizes, *options = case
    x = sample((2, 3, *sizes), dtype)
    for each in (x, numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)):
        values, indices = pooling.max_pool(each, len(sizes), *options, ceil_mode)
        assert values.dtype == x.dtype
        assert indices.dtype == numpy.int64
        for place, sources in places(case, ceil_mode):
            for n, c in itertools.product(range(2), range(3)):
                found = [x[(n, c, *source)] for source in sources]
                best = max(range(len(found)), key=lambda i: (found[i], -i))
                assert values[(n, c, *place)] == found[best]
                assert indices[(n, c, *place)] == numpy.ravel_multi_index(sources[best], sizes)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_avg_pool(case, ceil_mode, count_include_pad):
    case = (*case[:4], (1,) * len(case[0]))
    sizes, kernel, stride, padding, _ = case
    x = sample((2, 3, *sizes))
    options = kernel, stride, padding, ceil_mode, count_include_pad
    result = pooling.avg_pool(x, len(sizes), *options)
    for place, sources in places(case, ceil_mode):
        count = len(sources)
        if count_include_pad:
            starts = [i * s - p for i, s, p in zip(place, stride, padding, strict=True)]
            count = math.prod(min(b + k, n + p) - b for b, k, n, p in zip(starts, kernel, sizes, padding, strict=True))
        total = sum(x[(slice(None), slice(None), *source)] for source in sources)
        numpy.testing.assert_allclose(result[(slice(None), slice(None), *place)], total / count, atol=1e-12)
    grad = sample(result.shape, seed=1)
    back = pooling.avg_pool_backward(grad, x.shape, len(sizes), *options)
    assert (x * back).sum() == pytest.approx((result * grad).sum())
    halved = pooling.avg_pool(x, len(sizes), kernel, stride, padding, ceil_mode, count_include_pad, 2)
    unit = pooling.avg_pool(x, len(sizes), kernel, stride, padding, ceil_mode, count_include_pad, 1)
    numpy.testing.assert_allclose(halved * 2, unit)


def test_gradient_goes_to_the_maxima():
    x = sample((2, 3, 9, 9))
    values, indices = pooling.max_pool(x, 2, (3, 3), (2, 2), (1, 1), (1, 1))
    grad = sample(values.shape, seed=1)
    back = pooling.max_pool_backward(grad, indices, x.shape, 2)
    expected = numpy.zeros_like(x).reshape(6, -1)
    for plane, (where, what) in enumerate(zip(indices.reshape(6, -1), grad.reshape(6, -1), strict=True)):
        numpy.add.at(expected[plane], where, what)
    numpy.testing.assert_array_equal(back, expected.reshape(x.shape))
    numpy.testing.assert_array_equal(pooling.at_indices(x, indices, 2), values)
    half = pooling.max_pool_backward(grad.astype("f2"), indices, x.shape, 2)
    assert half.dtype == numpy.float16
    numpy.testing.assert_array_equal(half, back)


def test_nan_wins_and_padding_never_does():
    x = numpy.array([[[[math.nan, 1.0], [2.0, math.nan]]]])
    values, indices = pooling.max_pool(x, 2, (2, 2), (2, 2), (0, 0), (1, 1))
    assert numpy.isnan(values).all()
    assert indices.item() == 3
    nothing = numpy.full((1, 1, 2, 2), -math.inf)
    values, indices = pooling.max_pool(nothing, 2, (3, 3), (1, 1), (1, 1), (1, 1))
    assert (values == -math.inf).all()
    assert (indices == 0).all()


@pytest.mark.parametrize(
    ("sizes", "output"), [((7,), (3,)), ((6, 8), (3, 2)), ((5, 7), (2, 3)), ((5, 4, 6), (5, 3, 1)), ((2, 3), (4, 5))]
)
def test_adaptive_pooling(sizes, output):
    x = sample((2, 3, *sizes))
    mean = pooling.adaptive_avg_pool(x, output)
    values, indices = pooling.adaptive_max_pool(x, output)
    for place in itertools.product(*map(range, output)):
        window = tuple(slice(i * n // o, -(-(i + 1) * n // o)) for i, n, o in zip(place, sizes, output, strict=True))
        part = x[(slice(None), slice(None), *window)]
        at = (slice(None), slice(None), *place)
        numpy.testing.assert_allclose(mean[at], part.mean(tuple(range(2, x.ndim))))
        numpy.testing.assert_array_equal(values[at], part.max(tuple(range(2, x.ndim))))
    numpy.testing.assert_array_equal(pooling.at_indices(x, indices, len(sizes)), values)
    grad = sample(mean.shape, seed=1)
    back = pooling.adaptive_avg_pool_backward(grad, x.shape, len(sizes))
    assert (x * back).sum() == pytest.approx((mean * grad).sum())


@pytest.mark.parametrize("value", [math.inf, math.nan])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("size", [9, 700])
def test_what_is_not_finite_stays_in_the_windows_around_it(monkeypatch, value, loops, size):
    monkeypatch.setattr(LOOPS, "enabled", loops)
    x = sample((1, 2, size))
    x[0, 0, 4] = value
    for found, windows in (
        (pooling.avg_pool(x, 1, (3,), (1,), (1,), True), [(max(i - 1, 0), i + 2) for i in range(size)]),
        (pooling.adaptive_avg_pool(x, (5,)), [(i * size // 5, -(-(i + 1) * size // 5)) for i in range(5)]),
    ):
        around = [start <= 4 < stop for start, stop in windows]
        numpy.testing.assert_array_equal(numpy.isfinite(found[0, 0]), numpy.logical_not(around))
        assert numpy.isfinite(found[0, 1]).all()
    grad = numpy.ones((1, 2, 5))
    grad[0, 0, 1] = value
    back = pooling.adaptive_avg_pool_backward(grad, x.shape, 1)
    inside = [size // 5 <= place < -(-2 * size // 5) for place in range(size)]
    numpy.testing.assert_array_equal(numpy.isfinite(back[0, 0]), numpy.logical_not(inside))


def test_sizes():
    assert pooled_size(5, 2, 2, 0, 1, False) == 2
    assert pooled_size(5, 2, 2, 0, 1, True) == 3
    assert pooled_size(4, 2, 3, 1, 1, True) == 2  # a third window would begin in the padding


def test_types_are_checked():
    with pytest.raises(NotImplementedError, match="\"max_pool2d\" not implemented for 'ComplexDouble'"):
        pooling.max_pool(numpy.zeros((1, 1, 2, 2), complex), 2, (2, 2), (2, 2), (0, 0), (1, 1))
    with pytest.raises(NotImplementedError, match="\"adaptive_avg_pool2d\" not implemented for 'Long'"):
        pooling.adaptive_avg_pool(numpy.zeros((1, 1, 2), int), (1,))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_a_window_of_padding_alone_has_the_lowest_value(dims, dtype):
    x = numpy.ones((1, 1, *[1] * dims), dtype)
    values, indices = pooling.max_pool(x, dims, (2,), (2,), (1,), (2,))
    assert values.item() == (-math.inf if dtype[0] == "f" else numpy.iinfo(dtype).min)
    assert indices.item() == 0


def channels_last(x):
    return numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)


@pytest.mark.parametrize("dims", [2, 3])
def test_maxima_of_a_part_of_the_channels_have_their_channels_last(dims):
    x = sample((2, 6, *[4] * dims))
    part = channels_last(x)[:, ::2]
    values, indices = pooling.max_pool(part, dims, (2,), (2,), (0,), (1,))
    expected = pooling.max_pool(x[:, ::2].copy(), dims, (2,), (2,), (0,), (1,))
    for result, same in zip((values, indices), expected, strict=True):
        assert numpy.moveaxis(result, 1, -1).flags.c_contiguous
        numpy.testing.assert_array_equal(result, same)


def test_maxima_of_one_image_of_three_dimensions_have_its_channels_last():
    x = channels_last(sample((1, 6, 4, 4, 4)))[0]
    assert numpy.moveaxis(pooling.max_pool(x, 3, (2,), (2,), (0,), (1,))[0], 0, -1).flags.c_contiguous
    assert pooling.avg_pool(x, 3, (2,), (2,), (0,)).flags.c_contiguous

import ml_dtypes
import numpy
import pytest

from adjoint.kernels.nn import normalization

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
EPS = 1e-5
SHAPES = [(6, 4), (3, 4, 5), (2, 4, 3, 3), (2, 4, 2, 3, 2), (5, 8, 50, 40), (3000, 16)]
EVERY = (True, True, True)


def sample(shape, dtype="f8", seed=0):
    return (numpy.random.default_rng(seed).standard_normal(shape) * 2 + 1).astype(dtype)


def by_channel(parameter, ndim):
    return parameter.reshape(1, -1, *(1,) * (ndim - 2))


def numeric_gradient(function, arrays, grad, which, places):
    """Return central differences of <function(arrays), grad> with respect to some elements of one array."""
    step, slopes = 1e-5, []
    for place in places:
        values = []
        for sign in (1, -1):
            moved = [a if a is None else a.copy() for a in arrays]
            moved[which].reshape(-1)[place] += sign * step
            values.append((function(*moved) * grad).sum())
        slopes.append((values[0] - values[1]) / (2 * step))
    return numpy.array(slopes)


def check_gradients(function, arrays, grad, gradients):
    for which, gradient in enumerate(gradients):
        if arrays[which] is None:
            continue
        assert gradient.shape == arrays[which].shape
        places = range(min(gradient.size, 24))
        expected = numeric_gradient(function, arrays, grad, which, places)
        numpy.testing.assert_allclose(gradient.reshape(-1)[: len(places)], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm(shape, affine):
    x = sample(shape)
    weight, bias = (sample(shape[1], seed=1), sample(shape[1], seed=2)) if affine else (None, None)
    dims = (0, *range(2, x.ndim))
    mean, variance = x.mean(dims, keepdims=True), x.var(dims, keepdims=True)
    expected = (x - mean) / numpy.sqrt(variance + EPS)
    if affine:
        expected = expected * by_channel(weight, x.ndim) + by_channel(bias, x.ndim)
    for each in (x, numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)):
        result, saved_mean, invstd = normalization.batch_norm(each, weight, bias, None, None, True, EPS)
        numpy.testing.assert_allclose(result, expected, atol=1e-9)
        numpy.testing.assert_allclose(saved_mean, mean.reshape(-1))
        numpy.testing.assert_allclose(invstd, 1 / numpy.sqrt(variance.reshape(-1) + EPS))
    count = x.size // shape[1]
    unbiased = normalization.unbiased_variance(invstd, EPS, count)
    numpy.testing.assert_allclose(unbiased, x.var(dims, ddof=1))
    grad = sample(shape, seed=3)
    gradients = normalization.batch_norm_gradients(
        grad, x, weight, saved_mean, invstd, None, None, True, EPS, (True, affine, affine)
    )

    def forward(x, weight, bias):
        return normalization.batch_norm(x, weight, bias, None, None, True, EPS)[0]

    if x.size < 10000:
        check_gradients(forward, [x, weight, bias], grad, gradients)
    centred = gradients[0].sum(dims)  # a shift of the input does not change the result
    numpy.testing.assert_allclose(centred, numpy.zeros(shape[1]), atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_with_running_statistics(shape):
    x, weight, bias = sample(shape), sample(shape[1], seed=1), sample(shape[1], seed=2)
    mean, variance = sample(shape[1], seed=4), sample(shape[1], seed=5) ** 2
    result, *saved = normalization.batch_norm(x, weight, bias, mean, variance, False, EPS)
    scale = by_channel(weight / numpy.sqrt(variance + EPS), x.ndim)
    numpy.testing.assert_allclose(result, (x - by_channel(mean, x.ndim)) * scale + by_channel(bias, x.ndim), atol=1e-9)
    assert [each.size for each in saved] == [0, 0]
    grad = sample(shape, seed=3)
    to_input, to_weight, to_bias = normalization.batch_norm_gradients(
        grad, x, weight, *saved, mean, variance, False, EPS, EVERY
    )
    numpy.testing.assert_allclose(to_input, grad * scale)
    dims = (0, *range(2, x.ndim))
    numpy.testing.assert_allclose(to_bias, grad.sum(dims))
    expected = (grad * (x - by_channel(mean, x.ndim))).sum(dims) / numpy.sqrt(variance + EPS)
    numpy.testing.assert_allclose(to_weight, expected, atol=1e-9)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(("shape", "normalized"), [((6, 4), 1), ((2, 3, 4), 2), ((5,), 1), ((700, 200), 1)])
def test_layer_norm(shape, normalized, affine):
    x, inner = sample(shape), shape[-normalized:]
    weight, bias = (sample(inner, seed=1), sample(inner, seed=2)) if affine else (None, None)
    dims = tuple(range(-normalized, 0))
    mean, variance = x.mean(dims, keepdims=True), x.var(dims, keepdims=True)
    expected = (x - mean) / numpy.sqrt(variance + EPS)
    expected = expected * weight + bias if affine else expected
    result, saved_mean, rstd = normalization.layer_norm(x, inner, weight, bias, EPS)
    numpy.testing.assert_allclose(result, expected, atol=1e-9)
    numpy.testing.assert_allclose(saved_mean, mean)
    numpy.testing.assert_allclose(rstd, 1 / numpy.sqrt(variance + EPS))
    grad = sample(shape, seed=3)
    gradients = normalization.layer_norm_gradients(
        grad, x, inner, weight, saved_mean, rstd, EPS, (True, affine, affine)
    )

    def forward(x, weight, bias):
        return normalization.layer_norm(x, inner, weight, bias, EPS)[0]

    if x.size < 10000:
        check_gradients(forward, [x, weight, bias], grad, gradients)
    elif affine:
        leading = tuple(range(x.ndim - normalized))
        numpy.testing.assert_allclose(gradients[1], (grad * (x - mean) * rstd).sum(leading))
        numpy.testing.assert_allclose(gradients[2], grad.sum(leading))


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (2, 4, 3, 3), (4, 8, 40, 40)])
def test_group_norm(shape, groups):
    if shape[1] // groups * numpy.prod(shape[2:]) < 2:
        pytest.skip("nothing to normalize")
    x, weight, bias, grad = sample(shape), sample(shape[1], seed=1), sample(shape[1], seed=2), sample(shape, seed=3)
    grouped = x.reshape(shape[0], groups, -1)
    mean, variance = grouped.mean(2, keepdims=True), grouped.var(2, keepdims=True)
    expected = ((grouped - mean) / numpy.sqrt(variance + EPS)).reshape(shape)
    expected = expected * by_channel(weight, x.ndim) + by_channel(bias, x.ndim)
    result, saved_mean, rstd = normalization.group_norm(x, weight, bias, groups, EPS)
    numpy.testing.assert_allclose(result, expected, atol=1e-9)
    numpy.testing.assert_allclose(saved_mean, mean[:, :, 0])
    gradients = normalization.group_norm_gradients(grad, x, weight, groups, saved_mean, rstd, EPS, EVERY)
    if x.size < 10000:
        check_gradients(lambda *a: normalization.group_norm(*a, groups, EPS)[0], [x, weight, bias], grad, gradients)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f2", 5e-3), (BFLOAT16, 5e-2), ("f4", 1e-5)], ids=str)
@pytest.mark.long_cases
def test_types(dtype, tolerance):
    x, weight, bias = sample((8, 4, 6), dtype), sample(4, dtype, 1), sample(4, dtype, 2)
    wide = [each.astype("f8") for each in (x, weight, bias)]
    pairs = [
        [normalization.batch_norm(*each, None, None, True, EPS) for each in ((x, weight, bias), wide)],
        (normalization.group_norm(x, weight, bias, 2, EPS), normalization.group_norm(*wide, 2, EPS)),
        (normalization.layer_norm(x, (6,), None, None, EPS), normalization.layer_norm(wide[0], (6,), None, None, EPS)),
    ]  # fmt: skip
    for ours, expected in pairs:
        assert ours[0].dtype == dtype
        numpy.testing.assert_allclose(ours[0].astype("f8"), expected[0], atol=tolerance * 4)
        assert ours[1].dtype == numpy.float32  # the statistics keep their precision for large means


def test_unneeded_gradients_are_not_computed():
    x, weight = sample((6, 4)), sample(4, seed=1)
    _, mean, invstd = normalization.batch_norm(x, weight, None, None, None, True, EPS)
    only_bias = normalization.batch_norm_gradients(
        x, x, weight, mean, invstd, None, None, True, EPS, (False, False, True)
    )
    assert [each is None for each in only_bias] == [True, True, False]


@pytest.mark.parametrize("shape", [(600, 40), (8, 16, 30, 20), (300, 70)], ids=str)
def test_a_mean_far_from_zero(shape):
    """A constant added to the input changes only the mean, even if a sum of squares would lose the deviation by rounding."""
    x, grad = sample(shape), sample(shape, seed=3)
    weight, bias = sample(shape[1], seed=1), sample(shape[1], seed=2)

    def by_batch(x):
        result, mean, invstd = normalization.batch_norm(x, weight, bias, None, None, True, EPS)
        return result, *normalization.batch_norm_gradients(grad, x, weight, mean, invstd, None, None, True, EPS, EVERY)

    def by_group(x):
        result, mean, rstd = normalization.group_norm(x, weight, bias, 2, EPS)
        return result, *normalization.group_norm_gradients(grad, x, weight, 2, mean, rstd, EPS, EVERY)

    def by_layer(x):
        scale, shift = sample(shape[-1], seed=1), sample(shape[-1], seed=2)
        result, mean, rstd = normalization.layer_norm(x, shape[-1:], scale, shift, EPS)
        return result, *normalization.layer_norm_gradients(grad, x, shape[-1:], scale, mean, rstd, EPS, EVERY)

    for function in (by_batch, by_group, by_layer):
        for near, far in zip(function(x - 1), function(x + 1e4), strict=True):
            numpy.testing.assert_allclose(far, near, rtol=1e-7, atol=1e-7)

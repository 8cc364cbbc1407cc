import itertools

import ml_dtypes
import numpy
import pytest

from adjoint.kernels.nn.convolution import conv_forward, conv_input_grad, conv_weight_grad, transposed

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)

# input, weight, stride, padding, dilation, groups
CASES = [
    ((2, 3, 9), (4, 3, 3), (1,), (0,), (1,), 1),
    ((2, 4, 12), (6, 2, 4), (2,), (3,), (2,), 2),
    ((3, 2, 8, 8), (4, 2, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 20, 6, 6), (5, 20, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 20, 7, 6), (5, 20, 3, 2), (2, 1), (0, 1), (1, 2), 1),
    ((2, 6, 7, 7), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), 6),
    ((2, 6, 7, 7), (6, 1, 3, 3), (2, 2), (0, 2), (2, 1), 6),
    ((2, 4, 6, 5), (6, 2, 3, 3), (2, 1), (2, 0), (1, 1), 2),
    ((2, 8, 5, 5), (6, 8, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 8, 5, 5), (6, 4, 1, 1), (2, 2), (0, 0), (1, 1), 2),
    ((2, 3, 5, 4, 6), (2, 3, 2, 2, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), 1),
    ((1, 1, 30, 30), (2, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 3, 4, 4), (2, 3, 3, 3), (3, 3), (1, 1), (1, 1), 1),
    ((3, 6, 9, 7), (6, 1, 3, 2), (2, 3), (1, 2), (1, 1), 6),
    ((40, 5, 11), (5, 1, 4), (1,), (2,), (2,), 5),
    ((2, 3, 4, 5, 6), (3, 1, 2, 1, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), 3),
    ((2, 4, 9), (4, 1, 1), (3,), (0,), (1,), 4),
]


def sample(shape, dtype="f8", seed=0):
    x = numpy.random.default_rng(seed).standard_normal(shape)
    if numpy.dtype(dtype).kind == "c":
        x = x + 1j * numpy.random.default_rng(seed + 7).standard_normal(shape)
    if numpy.dtype(dtype).kind in "iu":
        x = x * 4
    return x.astype(dtype)


def reference(x, weight, bias, stride, padding, dilation, groups):
    """Compute the convolution by its definition: a sum over kernel elements for each output position."""
    spatial = range(2, x.ndim)
    padded = numpy.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    sizes = [(padded.shape[a] - dilation[a - 2] * (weight.shape[a] - 1) - 1) // stride[a - 2] + 1 for a in spatial]
    result = numpy.zeros((len(x), len(weight), *sizes), numpy.result_type(x, weight))
    per_group = len(weight) // groups
    for out in range(len(weight)):
        first = (out // per_group) * weight.shape[1]
        for place in itertools.product(*map(range, sizes)):
            window = tuple(
                slice(i * s, i * s + d * (k - 1) + 1, d)
                for i, s, d, k in zip(place, stride, dilation, weight.shape[2:], strict=True)
            )
            patch = padded[(slice(None), slice(first, first + weight.shape[1]), *window)]
            result[(slice(None), out, *place)] = (patch * weight[out]).reshape(len(x), -1).sum(1)
    return result if bias is None else result + bias.reshape(-1, *(1,) * len(sizes))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("layout", ["first", "last"])
def test_forward(case, layout):
    shape, weight_shape, *options = case
    x, weight, bias = sample(shape), sample(weight_shape, seed=1), sample(weight_shape[:1], seed=2)
    if layout == "last":
        x = numpy.moveaxis(numpy.ascontiguousarray(numpy.moveaxis(x, 1, -1)), -1, 1)
    numpy.testing.assert_allclose(
        conv_forward(x, weight, bias, *options), reference(x, weight, bias, *options), atol=1e-9
    )
    numpy.testing.assert_allclose(
        conv_forward(x, weight, None, *options), reference(x, weight, None, *options), atol=1e-9
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_are_transposes(case):
    """The convolution is linear in input and in weight: <conv(x, w), g> = <x, input grad> = <w, weight grad>."""
    shape, weight_shape, *options = case
    x, weight = sample(shape), sample(weight_shape, seed=1)
    result = conv_forward(x, weight, None, *options)
    grad = sample(result.shape, seed=3)
    product = (result * grad).sum()
    for seed in range(3):
        x, weight = sample(shape, seed=10 + seed), sample(weight_shape, seed=20 + seed)
        product = (conv_forward(x, weight, None, *options) * grad).sum()
        assert (x * conv_input_grad(grad, weight, shape, *options)).sum() == pytest.approx(product)
        assert (weight * conv_weight_grad(grad, x, weight_shape, *options)).sum() == pytest.approx(product)


def test_transposed_adds_its_bias():
    stride, padding, dilation = (2, 2), (1, 1), (1, 1)
    x, weight, bias = sample((2, 4, 5, 5)), sample((4, 3, 3, 3), seed=1), sample((3,), seed=2)
    expected = conv_input_grad(x, weight, (2, 3, 10, 10), stride, padding, dilation, 1) + bias.reshape(-1, 1, 1)
    result = transposed(x, weight, bias, (2, 3, 10, 10), stride, padding, dilation, 1)
    # The instruction set of the processor determines which of the two sums begins with the bias.
    numpy.testing.assert_allclose(result, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("f4", 1e-4), ("c8", 1e-4), ("c16", 1e-9), ("f2", 0.05), (BFLOAT16, 0.4), ("i8", 0)],
    ids=str,
)
def test_types(dtype, tolerance):
    options = (1, 1), (1, 1), (1, 1), 1
    x, weight, bias = sample((2, 5, 6, 6), dtype), sample((3, 5, 3, 3), dtype, 1), sample((3,), dtype, 2)
    wide = {"c8": "c16", "c16": "c16", "i8": "i8"}.get(dtype, "f8")
    result = conv_forward(x, weight, bias, *options)
    assert result.dtype == dtype
    expected = reference(x.astype(wide), weight.astype(wide), bias.astype(wide), *options)
    numpy.testing.assert_allclose(result.astype(wide), expected, atol=tolerance)
    grad = sample(result.shape, dtype, 3)
    assert conv_input_grad(grad, weight, x.shape, *options).dtype == dtype
    assert conv_weight_grad(grad, x, weight.shape, *options).dtype == dtype


def test_large_batches_are_tiled():
    options = (1, 1), (1, 1), (1, 1), 1
    for channels in (3, 24):
        x, weight = sample((40, channels, 24, 24), "f4"), sample((8, channels, 3, 3), "f4", 1)
        whole = conv_forward(x, weight, weight[:, 0, 0, 0], *options)
        parts = [conv_forward(x[i : i + 1], weight, weight[:, 0, 0, 0], *options) for i in range(40)]
        numpy.testing.assert_allclose(whole, numpy.concatenate(parts), atol=1e-4)
        grad = sample(whole.shape, "f4", 2)
        parts = [conv_weight_grad(grad[i : i + 1], x[i : i + 1], weight.shape, *options) for i in range(40)]
        numpy.testing.assert_allclose(
            conv_weight_grad(grad, x, weight.shape, *options), sum(parts), rtol=1e-3, atol=0.05
        )
        parts = [conv_input_grad(grad[i : i + 1], weight, (1, *x.shape[1:]), *options) for i in range(40)]
        numpy.testing.assert_allclose(
            conv_input_grad(grad, weight, x.shape, *options), numpy.concatenate(parts), atol=1e-3
        )


def test_results_do_not_share_the_memory_that_is_used_again():
    options = (1, 1), (1, 1), (1, 1), 1
    x, weight = sample((2, 20, 6, 6)), sample((5, 20, 3, 3), seed=1)
    first = conv_forward(x, weight, None, *options)
    kept = first.copy()
    conv_forward(x * 2, weight, None, *options)
    conv_weight_grad(first, x * 3, weight.shape, *options)
    conv_input_grad(first * 5, weight, x.shape, *options)
    numpy.testing.assert_array_equal(first, kept)


def test_empty_batch():
    options = (1, 1), (1, 1), (1, 1), 1
    x, weight = numpy.zeros((0, 2, 4, 4)), sample((3, 2, 3, 3))
    result = conv_forward(x, weight, None, *options)
    assert result.shape == (0, 3, 4, 4)
    assert conv_input_grad(result, weight, x.shape, *options).shape == x.shape
    assert (conv_weight_grad(result, x, weight.shape, *options) == 0).all()

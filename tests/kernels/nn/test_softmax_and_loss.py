import math

import ml_dtypes
import numpy
import pytest

from adjoint.kernels.nn.loss import multi_margin_loss, nll_loss_backward, nll_loss_forward
from adjoint.kernels.nn.softmax import (
    log_softmax,
    log_softmax_backward,
    logsumexp,
    logsumexp_backward,
    softmax,
    softmax_backward,
)

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
SHAPES = [
    ((5,), 0),
    ((3, 4), 1),
    ((3, 4), 0),
    ((2, 3, 4), 1),
    ((200, 300), 1),
    ((200, 300), 0),
    ((3000, 10), 1),
    ((4, 90000, 2), 1),
]
TOLERANCE = {"f8": 1e-12, "f4": 2e-6, "f2": 2e-3, BFLOAT16: 2e-2}


@pytest.fixture(autouse=True)
def quiet():
    with numpy.errstate(all="ignore"):
        yield


def sample(shape, dtype="f8", seed=0, scale=3.0):
    return (numpy.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


def reference(x, dim):
    wide = x.astype("f8")
    exponentials = numpy.exp(wide - wide.max(dim, keepdims=True))
    return exponentials / exponentials.sum(dim, keepdims=True)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_softmax(shape, dim, dtype, scale):
    x = sample(shape, dtype, scale=scale)
    for each in (x, numpy.ascontiguousarray(x.T).T):
        expected = reference(each, dim)
        result = softmax(each, dim)
        assert result.dtype == dtype
        numpy.testing.assert_allclose(result.astype("f8"), expected, atol=TOLERANCE[dtype])
        if dtype in ("f8", "f4"):
            logs = each.astype("f8") - numpy.log(numpy.exp(each.astype("f8")).sum(dim, keepdims=True))
            numpy.testing.assert_allclose(log_softmax(each, dim), logs, rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_vector_jacobian_products(shape, dim):
    x, grad = sample(shape), sample(shape, seed=1)
    p = softmax(x, dim)
    expected = p * (grad - (p * grad).sum(dim, keepdims=True))
    numpy.testing.assert_allclose(softmax_backward(grad, p, dim), expected, atol=1e-12)
    expected = grad - p * grad.sum(dim, keepdims=True)
    numpy.testing.assert_allclose(log_softmax_backward(grad, numpy.log(p), dim), expected, atol=1e-9)


def test_infinities():
    x = numpy.array([[-math.inf, 0.0, -math.inf], [-math.inf] * 3, [math.nan, 0, 0], [math.inf, 0, 0]])
    for function in (softmax, log_softmax):
        result = function(x, 1)
        assert numpy.isnan(result[1:]).all()
    assert softmax(x, 1)[0].tolist() == [0, 1, 0]
    assert log_softmax(x, 1)[0].tolist() == [-math.inf, 0, -math.inf]
    assert logsumexp(x, 1).tolist()[:2] == [0, -math.inf]
    assert logsumexp(numpy.array([math.inf, -math.inf, 3]), 0) == math.inf


def test_logsumexp():
    x = sample((30, 40, 50), scale=1)
    for dims in (0, -1, (0, 2), None):
        for keepdim in (False, True):
            expected = numpy.log(numpy.exp(x).sum(axis=dims, keepdims=keepdim))
            numpy.testing.assert_allclose(logsumexp(x, dims, keepdim), expected)
    numpy.testing.assert_allclose(logsumexp(x + 1e4, 1), logsumexp(x, 1) + 1e4)
    assert logsumexp(numpy.array([1, 2]), 0).dtype == numpy.float32
    assert logsumexp(numpy.zeros((0, 2)), 0).tolist() == [-math.inf] * 2


def test_types_and_dimensions_are_checked():
    with pytest.raises(NotImplementedError, match="\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"):
        softmax(numpy.array([1, 2]), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        log_softmax(numpy.ones((2, 3)), 2)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [-100, 1])
@pytest.mark.parametrize("shape", [(4,), (6, 4), (3, 4, 5), (2, 4, 3, 2)])
def test_nll_loss(shape, ignore_index, weighted, reduction):
    log_probs = sample(shape)
    target_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = numpy.asarray(numpy.random.default_rng(4).integers(0, 4, target_shape))
    if ignore_index == -100 and target.ndim:
        target.reshape(-1)[0] = ignore_index
    weight = numpy.array([0.5, 1.0, 2.0, 3.0]) if weighted else None
    losses, factors, gradient = numpy.zeros(target_shape), numpy.zeros(target_shape), numpy.zeros(shape)
    for place in numpy.ndindex(*target_shape):
        wanted = int(target[place])
        if wanted == ignore_index:
            continue
        where = (wanted,) if len(shape) == 1 else (place[0], wanted, *place[1:])
        factors[place] = 1 if weight is None else weight[wanted]
        losses[place] = -factors[place] * log_probs[where]
        gradient[where] -= factors[place]
    if reduction == "mean":
        gradient /= factors.sum()
    expected = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / factors.sum()}[reduction]
    result, total = nll_loss_forward(log_probs, target, weight, reduction, ignore_index)
    numpy.testing.assert_allclose(result, expected)
    if reduction != "none":
        numpy.testing.assert_allclose(total, factors.sum())
    grad = numpy.ones(result.shape)
    numpy.testing.assert_allclose(
        nll_loss_backward(grad, log_probs, target, weight, ignore_index, reduction), gradient, atol=1e-12
    )


@pytest.mark.parametrize(
    ("target", "weight", "kind", "words"),
    [
        ([0, 3], None, IndexError, "Target 3 is out of bounds."),
        ([0, -1], None, IndexError, "Target -1 is out of bounds."),
        ([0], None, ValueError, r"Expected input batch_size \(2\) to match target batch_size \(1\)."),
        ([0.0, 1.0], None, RuntimeError, "expected target dtype to be Long or Byte, but got Double"),
        ([0, 1], [1.0, 2.0], RuntimeError, "weight tensor should be defined either for all 3 classes"),
    ],
)
def test_nll_loss_checks(target, weight, kind, words):
    with pytest.raises(kind, match=words):
        nll_loss_forward(numpy.zeros((2, 3)), numpy.array(target), None if weight is None else numpy.array(weight))


def test_nll_loss_of_nothing():
    loss, total = nll_loss_forward(numpy.zeros((2, 3)), numpy.array([-100, -100]))
    assert numpy.isnan(loss)
    assert total == 0


@pytest.mark.parametrize("shape", [(3, 4, 5), (20, 30, 40)])
def test_logsumexp_backward(shape):
    x = numpy.random.default_rng(0).standard_normal(shape)
    for dims in (0, 1, -1, (0, 2), (0, 1, 2)):
        for keepdim in (False, True):
            result = logsumexp(x, dims, keepdim)
            kept = numpy.exp(x - logsumexp(x, dims, True))
            grad = numpy.random.default_rng(1).standard_normal(result.shape)
            expected = grad.reshape(logsumexp(x, dims, True).shape) * kept
            numpy.testing.assert_allclose(logsumexp_backward(grad, x, result, dims, keepdim), expected, rtol=1e-12)


@pytest.mark.parametrize("p", [1, 2])
def test_margins_of_nan_and_infinity_are_zero(p):
    scores = numpy.array([[1.0, math.inf, 2.0], [math.nan, 0.0, 1.0], [math.nan] * 3, [0.0, 1.0, 0.5]], "f4")
    losses = multi_margin_loss(scores, numpy.array([1, 1, 0, 1]), p, 1.0, None, "none")
    numpy.testing.assert_allclose(losses, [0.0, 2**p / 3, 0.0, 0.5**p / 3])

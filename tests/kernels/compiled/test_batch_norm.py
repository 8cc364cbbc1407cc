"""Compiled batch normalization of planes: its results, and the cases that it leaves to NumPy's form."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.compiled.nn import plane_norm
from adjoint.kernels.nn import normalization

SHAPES = [(3, 5, 4, 4), (2, 3, 7, 9), (5, 1, 33), (1, 4, 6, 5, 8), (2, 2, 90, 101), (40, 3, 16)]


def normalized(x, weight, bias, eps):
    """Return the results of compiled code."""
    return plane_norm.normalized(x, weight, bias, None, eps).plan("x weight bias eps".split()).run(x, weight, bias, eps)


def gradients(grad, x, weight, mean, rstd, of_input=True):
    """Return the gradients of compiled code."""
    call = plane_norm.gradients(grad, x, weight, mean, rstd, None, of_input)
    return call.plan("grad x weight mean rstd".split()).run(grad, x, weight, mean, rstd)


def sample(shape, dtype, seed=0):
    return (numpy.random.default_rng(seed).standard_normal(shape) + 0.5).astype(dtype)


def expected(grad, x, weight, bias, eps):
    """Return the result, mean, inverse deviation and gradients in float64."""
    grad, x = grad.astype("f8"), x.astype("f8")
    dims = (0, *range(2, x.ndim))
    spread = lambda numbers: numpy.asarray(numbers, "f8").reshape(-1, *[1] * (x.ndim - 2))
    mean, inverse = x.mean(dims), 1 / numpy.sqrt(x.var(dims) + eps)
    normal = (x - spread(mean)) * spread(inverse)
    total, along = grad.sum(dims), (grad * normal).sum(dims)
    count = x.size // x.shape[1]
    to_input = (grad - spread(total) / count - normal * spread(along) / count) * spread(inverse) * spread(weight)
    return normal * spread(weight) + spread(bias), mean, inverse, to_input, along, total


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_result_and_gradients(shape, dtype):
    x, grad = sample(shape, dtype), sample(shape, dtype, 1)
    weight, bias = sample(shape[1], dtype, 2), sample(shape[1], dtype, 3)
    found = normalized(x, weight, bias, 1e-5)
    back = gradients(grad, x, weight, *found[1:])
    tolerance = 1e-4 if dtype == "f4" else 1e-11
    for actual, exact in zip([*found, *back], expected(grad, x, weight, bias, 1e-5), strict=True):
        assert actual.dtype == x.dtype and actual.shape == exact.shape
        numpy.testing.assert_allclose(actual, exact, rtol=tolerance, atol=tolerance * max(1, abs(exact).max()))


def test_variance_far_from_zero():
    x = (numpy.random.default_rng(0).standard_normal((8, 2, 64, 64)) + 3000).astype("f4")
    _, mean, inverse = normalized(x, None, None, 0.0)
    numpy.testing.assert_allclose(mean, x.astype("f8").mean((0, 2, 3)), rtol=1e-6)
    numpy.testing.assert_allclose(inverse, 1 / x.astype("f8").std((0, 2, 3)), rtol=1e-5)


def test_only_what_is_needed():
    x = sample((2, 3, 5, 5), "f4")
    _, mean, inverse = normalized(x, None, None, 1e-5)
    assert gradients(x, x, None, mean, inverse, of_input=False)[0] is None
    for needs in [(True, False, False), (False, True, False), (False, False, True)]:
        back = normalization.batch_norm_gradients(x, x, None, mean, inverse, None, None, True, 1e-5, needs)
        assert tuple(item is not None for item in back) == needs


def test_what_is_left_to_numpy():
    x = sample((2, 3, 5, 5), "f4")
    last = numpy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    mean = numpy.ones(3, "f4")
    for given in (x.astype("f2"), x[:, :, :2, :2], sample((20, 3), "f4")):
        assert plane_norm.normalized(given, None, None, None, 1e-5) is NotImplemented
    assert plane_norm.normalized(x, mean.astype("f8"), None, None, 1e-5) is NotImplemented
    form = normalization._batch_norm.__wrapped__
    assert form(last, None, None, None, None, True, 1e-5).compiled is NotImplemented
    assert form(x, None, None, mean, mean, False, 1e-5).compiled is NotImplemented


@pytest.mark.parametrize("special", [numpy.nan, numpy.inf])
def test_a_channel_that_is_not_finite(special):
    x = sample((2, 3, 5, 5), "f4")
    x[1, 1, 2, 2] = special
    result, _, _ = normalized(x, None, None, 1e-5)
    assert numpy.isnan(result[:, 1]).all() and numpy.isfinite(result[:, [0, 2]]).all()


def test_layers_train_the_same_with_both_forms():
    def gradients(enabled):
        before, LOOPS.enabled = LOOPS.enabled, enabled
        try:
            torch.manual_seed(0)
            layer = torch.nn.BatchNorm2d(6)
            x = torch.randn(8, 6, 20, 20, requires_grad=True)
            (layer(x).expand(2, 8, 6, 20, 20) * torch.randn(2, 8, 6, 20, 20)).sum().backward()
            return [x.grad, layer.weight.grad, layer.bias.grad, layer.running_mean, layer.running_var]
        finally:
            LOOPS.enabled = before

    for ours, theirs in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)

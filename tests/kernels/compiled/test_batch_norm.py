"""Compiled normalization of planes over a batch: what it computes, and what it leaves to NumPy's form."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.compiled.nn import plane_norm

SHAPES = [(3, 5, 4, 4), (2, 3, 7, 9), (5, 1, 33), (1, 4, 6, 5, 8), (2, 2, 90, 101), (40, 3, 16)]


def planned(plan, *arguments):
    """The results of the plan for these arguments; NotImplemented if there is none."""
    made = plan(*arguments)
    return made if made is NotImplemented else made.run(*arguments)


def sample(shape, dtype, seed=0):
    return (numpy.random.default_rng(seed).standard_normal(shape) + 0.5).astype(dtype)


def expected(grad, x, weight, bias, eps):
    """In float64: the result, mean and inverse deviation, and the gradients."""
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
    found = planned(plane_norm.batch_norm, x, weight, bias, None, None, True, 1e-5)
    back = planned(
        plane_norm.batch_norm_gradients, grad, x, weight, *found[1:], None, None, True, 1e-5, (True, True, True)
    )
    tolerance = 1e-4 if dtype == "f4" else 1e-11
    for actual, exact in zip([*found, *back], expected(grad, x, weight, bias, 1e-5), strict=True):
        assert actual.dtype == x.dtype and actual.shape == exact.shape
        numpy.testing.assert_allclose(actual, exact, rtol=tolerance, atol=tolerance * max(1, abs(exact).max()))


def test_variance_far_from_zero():
    x = (numpy.random.default_rng(0).standard_normal((8, 2, 64, 64)) + 3000).astype("f4")
    _, mean, inverse = planned(plane_norm.batch_norm, x, None, None, None, None, True, 0.0)
    numpy.testing.assert_allclose(mean, x.astype("f8").mean((0, 2, 3)), rtol=1e-6)
    numpy.testing.assert_allclose(inverse, 1 / x.astype("f8").std((0, 2, 3)), rtol=1e-5)


def test_only_what_is_needed():
    x = sample((2, 3, 5, 5), "f4")
    _, mean, inverse = planned(plane_norm.batch_norm, x, None, None, None, None, True, 1e-5)
    for needs in [(True, False, False), (False, True, False), (False, False, True)]:
        back = planned(plane_norm.batch_norm_gradients, x, x, None, mean, inverse, None, None, True, 1e-5, needs)
        assert tuple(item is not None for item in back) == needs


def test_what_is_left_to_numpy():
    x = sample((2, 3, 5, 5), "f4")
    last = numpy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    mean = numpy.ones(3, "f4")
    for given in (last, x.astype("f2"), x[:, :, :2, :2], sample((20, 3), "f4")):
        assert planned(plane_norm.batch_norm, given, None, None, None, None, True, 1e-5) is NotImplemented
    assert planned(plane_norm.batch_norm, x, None, None, mean, mean, False, 1e-5) is NotImplemented
    assert planned(plane_norm.batch_norm, x, mean.astype("f8"), None, None, None, True, 1e-5) is NotImplemented


@pytest.mark.parametrize("special", [numpy.nan, numpy.inf])
def test_a_channel_that_is_not_finite(special):
    x = sample((2, 3, 5, 5), "f4")
    x[1, 1, 2, 2] = special
    result, _, _ = planned(plane_norm.batch_norm, x, None, None, None, None, True, 1e-5)
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

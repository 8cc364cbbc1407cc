"""Compiled group normalization: its results, and the cases that it leaves to NumPy's form."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.compiled.nn import plane_norm
from adjoint.kernels.nn import normalization

SHAPES = [((3, 6, 4, 4), 3), ((2, 4, 7, 9), 1), ((5, 2, 33), 2), ((1, 4, 6, 5, 8), 2), ((2, 4, 90, 101), 2)]


def normalized(x, weight, bias, groups, eps):
    """Return the results of compiled code."""
    call = plane_norm.normalized(x, weight, bias, groups, eps)
    return call.plan("x weight bias eps".split()).run(x, weight, bias, eps)


def sample(shape, dtype, seed=0):
    return (numpy.random.default_rng(seed).standard_normal(shape) + 0.5).astype(dtype)


def expected(grad, x, weight, bias, groups, eps):
    """Return the result, mean, inverse deviation and gradients in float64."""
    batch, channels = x.shape[:2]
    grad, x = (item.astype("f8").reshape(batch, groups, channels // groups, -1) for item in (grad, x))
    by_channel = lambda numbers: numbers.astype("f8").reshape(1, groups, -1, 1)
    mean, inverse = x.mean((2, 3), keepdims=True), 1 / numpy.sqrt(x.var((2, 3), keepdims=True) + eps)
    normal, scaled = (x - mean) * inverse, grad * by_channel(weight)
    to_input = inverse * (
        scaled - scaled.mean((2, 3), keepdims=True) - normal * (scaled * normal).mean((2, 3), keepdims=True)
    )
    along, total = ((item.sum((0, 3))).reshape(channels) for item in (grad * normal, grad))
    return normal * by_channel(weight) + by_channel(bias), mean[..., 0, 0], inverse[..., 0, 0], to_input, along, total


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("shape", "groups"), SHAPES, ids=str)
def test_result_and_gradients(shape, groups, dtype):
    x, grad = sample(shape, dtype), sample(shape, dtype, 1)
    weight, bias = sample(shape[1], dtype, 2), sample(shape[1], dtype, 3)
    found = normalized(x, weight, bias, groups, 1e-5)
    back = normalization.group_norm_gradients(grad, x, weight, groups, *found[1:], 1e-5, (True, True, True))
    tolerance = 1e-4 if dtype == "f4" else 1e-11
    for actual, exact in zip([*found, *back], expected(grad, x, weight, bias, groups, 1e-5), strict=True):
        assert actual.dtype == x.dtype and actual.size == exact.size
        exact = exact.reshape(actual.shape)
        numpy.testing.assert_allclose(actual, exact, rtol=tolerance, atol=tolerance * max(1, abs(exact).max()))


def test_variance_far_from_zero():
    x = (numpy.random.default_rng(0).standard_normal((2, 4, 64, 64)) + 3000).astype("f4")
    _, mean, inverse = normalized(x, None, None, 2, 0.0)
    exact = x.astype("f8").reshape(2, 2, -1)
    numpy.testing.assert_allclose(mean, exact.mean(2), rtol=1e-6)
    numpy.testing.assert_allclose(inverse, 1 / exact.std(2), rtol=1e-5)


def test_only_what_is_needed():
    x = sample((2, 4, 5, 5), "f4")
    _, mean, rstd = normalized(x, None, None, 2, 1e-5)
    for needs in [(True, False, False), (False, True, False), (False, False, True)]:
        back = normalization.group_norm_gradients(x, x, None, 2, mean, rstd, 1e-5, needs)
        assert tuple(item is not None for item in back) == needs


def test_what_is_left_to_numpy():
    for x in (sample((4, 6), "f4"), sample((2, 4, 3), "f4"), sample((2, 4, 5, 5), "f2")):
        assert plane_norm.normalized(x, None, None, 2, 1e-5) is NotImplemented


def test_arrays_in_another_order():
    x = sample((5, 5, 4, 2), "f4").T
    laid = numpy.ascontiguousarray(x)
    for found, expected in zip(
        normalized(x, None, None, 2, 1e-5),
        normalized(laid, None, None, 2, 1e-5),
        strict=True,
    ):
        numpy.testing.assert_array_equal(found, expected)


def test_results_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    x = torch.from_numpy(sample((8, 16, 32, 32), "f4")).requires_grad_()
    direction = torch.from_numpy(sample((8, 16, 32, 32), "f4", 1))
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        x.grad = None
        y = torch.nn.functional.group_norm(x, 4)
        y.backward(direction)
        found.append((y.detach().numpy(), x.grad.numpy()))
    torch.set_num_threads(before)
    assert all(numpy.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))

"""NumPy kernels with plans: the shorter code for small arrays gives the same bits."""

from __future__ import annotations

import numpy
import pytest

import adjoint as torch
import adjoint.nn.functional as F
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.nn import loss


@pytest.fixture(autouse=True)
def without_compiled_loops():
    enabled, LOOPS.enabled = LOOPS.enabled, False
    yield
    LOOPS.enabled = enabled


def equal(found, expected):
    assert [item.dtype for item in found] == [item.dtype for item in expected]
    for item, other in zip(found, expected, strict=True):
        assert item.shape == other.shape
        assert item.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [-100, 2, 7])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (6, 5), (2, 5, 3), (2, 5, 2, 3)])
@pytest.mark.parametrize("some_ignored", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_losses_of_few_classes(dtype, reduction, ignored, shape, some_ignored, transposed):
    generator = numpy.random.default_rng(0)
    x = (
        generator.standard_normal(shape[::-1]).astype(dtype).T
        if transposed
        else generator.standard_normal(shape).astype(dtype)
    )
    target = numpy.asarray(generator.integers(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ()))
    if some_ignored:
        target = numpy.where(generator.random(target.shape) < 0.5, ignored, target)
    expected = loss.nll_loss_forward(x, target, None, reduction, ignored)[0]
    equal([loss.nll_loss(x, target, None, ignored, reduction)], [expected])


@pytest.mark.parametrize("wrong", [5, -1, 1 << 40, -(1 << 63)])
def test_what_is_no_class_is_refused_by_a_kept_plan(wrong):
    x = torch.randn(4, 5)
    F.nll_loss(x, torch.tensor([0, 1, 2, 3]))
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        F.nll_loss(x, torch.tensor([0, 1, wrong, 3]))


def test_sums_past_infinity_do_not_warn():
    x = torch.tensor([[torch.inf, 0.0], [0.0, -torch.inf]])
    assert F.nll_loss(x, torch.tensor([0, 1]), reduction="sum").isnan()

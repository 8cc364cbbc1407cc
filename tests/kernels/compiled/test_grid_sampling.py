"""Compiled grid sampling gives NumPy's results."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.compiled.nn import grid_sampling as compiled
from adjoint.kernels.nn import grid_sampling as kernels
from adjoint.kernels.nn.grid_sampling import BICUBIC, Sampling

TOLERANCE = {"f4": 1e-4, "f8": 1e-11}


@pytest.fixture
def numpy_alone(monkeypatch):
    monkeypatch.setattr(LOOPS, "_enabled", False)


def _same(sizes, places, sampling, dtype, special=False):
    rng = numpy.random.default_rng(0)
    images = rng.standard_normal((2, 3, *sizes)).astype(dtype)
    grid = (1.5 * rng.standard_normal((2, *places, len(sizes)))).astype(dtype)
    if special:
        grid.reshape(-1)[:10] = numpy.nan, 1e30, -1e30, 7e6, 1, -1, numpy.inf, -numpy.inf, 1, numpy.nan
    found = compiled.sampled(images, grid, sampling).plan(["input", "grid"]).run(images, grid)
    with numpy.errstate(invalid="ignore"):
        expected = kernels.grid_sampler(images, grid, *sampling)
    numpy.testing.assert_allclose(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    grad = rng.standard_normal(found.shape).astype(dtype)
    with numpy.errstate(invalid="ignore"):
        gradients = kernels.grid_sampler_gradients(grad, images, grid, sampling, (True, True))
    for one, other in zip(compiled.gradients(grad, images, grid, sampling, (True, True)), gradients, strict=True):
        assert one.dtype == other.dtype
        numpy.testing.assert_allclose(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("mode", "padding", "align_corners"), list(product(range(3), range(3), (False, True))))
def test_modes_and_paddings(mode, padding, align_corners, dtype):
    sampling = Sampling(mode, padding, align_corners)
    _same((7, 6), (3, 11), sampling, dtype, special=True)
    if mode != BICUBIC:
        _same((3, 7, 6), (3, 2, 5), sampling, dtype, special=True)


@pytest.mark.thorough
@pytest.mark.usefixtures("numpy_alone")
def test_sizes():
    for sizes, places in (((1, 1), (1, 1)), ((1, 5), (40, 20)), ((9, 2), (1, 17))):
        for align_corners in (False, True):
            _same(sizes, places, Sampling(kernels.BILINEAR, kernels.REFLECTION, align_corners), "f4")


@pytest.mark.usefixtures("numpy_alone")
def test_what_is_not_needed_is_not_computed_and_halves_are_left_to_numpy():
    sampling = Sampling(kernels.BILINEAR, kernels.ZEROS, False)
    images, grid = numpy.ones((1, 2, 3, 3), "f4").swapaxes(2, 3), numpy.zeros((1, 4, 4, 2), "f4")
    grad = numpy.ones((1, 2, 4, 4), "f4")
    assert compiled.gradients(grad, images, grid, sampling, (False, True))[0] is None
    assert compiled.gradients(grad, images, grid, sampling, (True, False))[1] is None
    assert compiled.sampled(images.astype("f2"), grid.astype("f2"), sampling) is NotImplemented
    assert compiled.sampled(images, grid[:0], sampling) is NotImplemented

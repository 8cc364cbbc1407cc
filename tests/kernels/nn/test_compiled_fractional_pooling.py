"""For windows at random positions, compiled loops and NumPy find the same elements."""

import ml_dtypes
import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.nn.pooling import fractional_max_pool


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize(
    ("spatial", "kernel", "sizes"), [((20, 17), (2, 3), (7, 6)), ((9, 10, 11), (2, 2, 3), (4, 5, 3))]
)
def test_as_numpy_finds_them(dtype, spatial, kernel, sizes, monkeypatch):
    generator = numpy.random.default_rng(0)
    x = generator.integers(0, 9, (2, 4, *spatial)).astype(dtype)
    x.reshape(-1)[::50] = numpy.nan
    samples = generator.random((2, 4, len(spatial))).astype(dtype)
    found = fractional_max_pool(x, kernel, sizes, samples)
    monkeypatch.setattr(LOOPS, "_enabled", False)
    for one, two in zip(found, fractional_max_pool(x, kernel, sizes, samples), strict=True):
        numpy.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, numpy.float16])
def test_half_samples_place_windows_by_rounding_each_step(dtype):
    x, sample = numpy.arange(33.0).reshape(1, 1, 33, 1), numpy.array([[[0.0, 0.06]]])
    _, places = fractional_max_pool(x, (1, 1), (20, 1), sample.astype(dtype))
    step, shift = dtype(32) / dtype(19), dtype(0.06)
    expected = [int(dtype(dtype(i) + shift) * step) - int(shift * step) for i in range(19)]
    assert places.reshape(-1).tolist() == [*expected, 32]
    exact = float(shift)
    assert expected != [int((i + exact) * 32 / 19) - int(exact * 32 / 19) for i in range(19)]

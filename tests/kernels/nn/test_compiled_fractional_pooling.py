"""Windows that random numbers place: compiled loops and NumPy find the same elements."""

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

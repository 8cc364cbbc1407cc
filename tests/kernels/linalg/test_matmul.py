"""Stacks of products, and products plus a bias, on several threads agree with one call of NumPy."""

from __future__ import annotations

import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.linalg import matmul as kernels
from adjoint.kernels.runtime import parallel


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layout", ["rows", "columns", "broadcast"])
def test_stacks_of_products(monkeypatch, dtype, layout):
    monkeypatch.setattr(parallel, "num_threads", 3)
    rng = numpy.random.default_rng(0)
    a, b = (rng.standard_normal((401, 32, 32)).astype(dtype) for _ in range(2))
    if layout == "columns":
        a, b = a.mT, b.mT
    elif layout == "broadcast":
        b = numpy.broadcast_to(b[:1], b.shape)
    found = kernels.bmm(a, b)
    assert found.dtype == dtype
    numpy.testing.assert_allclose(found, numpy.matmul(a, b), rtol=1e-5 if dtype == "f4" else 1e-13, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("width", [1, 7, 300])
def test_biases(monkeypatch, dtype, width):
    monkeypatch.setattr(LOOPS, "enabled", False)
    rng = numpy.random.default_rng(0)
    rows, weight = rng.standard_normal((500, 4)).astype(dtype), rng.standard_normal((4, width)).astype(dtype)
    bias = rng.standard_normal(2 * width).astype(dtype)[::2]
    for added in (bias, bias.copy()):
        assert (kernels.addmm_plain(added, rows, weight) == rows @ weight + bias).all()

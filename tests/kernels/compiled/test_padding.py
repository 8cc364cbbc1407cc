"""Compiled padding gives the results of NumPy's forms."""

from __future__ import annotations

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.nn import padding

CASES = [
    ((2, 3, 11, 19), (1, 2, 3, 1)),
    ((2, 3, 11, 40), (0, 0, 2, 2)),
    ((3, 5, 9), (4, 8)),
    ((1, 2, 4, 5, 6), (1, 2, 3, 4, 2, 1)),
    ((2, 7, 8), (-2, 3, 1, -3)),
    ((2, 7, 8), (-3, -4, -1, 0)),
    ((2, 7, 20), (-3, 2)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bytes_", [16, 64])
def test_padding_and_its_gradient(case, mode, dtype, bytes_, monkeypatch):
    monkeypatch.setattr(HOST, "vector_bytes", bytes_)
    shape, widths = case
    pad, backward = padding.padding(mode, f"pad{len(widths) // 2}d")
    x = numpy.random.default_rng(0).standard_normal(shape).astype(dtype)
    x.reshape(-1)[3] = numpy.nan
    results = []
    for enabled in (False, True):
        monkeypatch.setattr(LOOPS, "_enabled", enabled)
        monkeypatch.setattr(LOOPS, "every_size", enabled)
        padded = pad(x, widths)
        grad = numpy.random.default_rng(1).standard_normal(padded.shape).astype(dtype)
        results.append((padded, backward(grad, x, widths)))
    assert not any("padding" in name for name in LOOPS.failures)
    numpy.testing.assert_array_equal(results[1][0], results[0][0])
    numpy.testing.assert_allclose(results[1][1], results[0][1], atol={"f4": 1e-5, "f8": 1e-13}[dtype])
    assert results[1][0].dtype == results[1][1].dtype == x.dtype

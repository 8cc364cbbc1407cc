"""Compiled Cholesky factorizations read one triangle. LAPACK computes matrices that are not positive-definite."""

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.compiled.linalg.cholesky import cholesky

SIZES = [1, 2, 5, 16, 31, 33, 63, 64, 65, 100, 128, 130, 257]


@pytest.mark.one_each("dtype")
@pytest.mark.parametrize("width", [64, 32, 16])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 2e-5), ("f8", 1e-13)])
def test_factors(dtype, tolerance, upper, width, monkeypatch):
    if width > HOST.vector_bytes:
        pytest.skip("this processor has no such registers")
    monkeypatch.setattr(HOST, "vector_bytes", width)
    generator = numpy.random.default_rng(0)
    for size in SIZES:
        for batch in ((), (3,), (2, 2)):
            b = generator.standard_normal((*batch, size, size))
            whole = b @ b.swapaxes(-1, -2) + size * numpy.eye(size)
            expected = numpy.linalg.cholesky(whole)
            other = numpy.triu(numpy.ones((size, size)), 1)
            a = numpy.where(other if not upper else other.T, numpy.nan, whole).astype(dtype)
            before = a.copy()
            found = cholesky(a, upper)
            numpy.testing.assert_array_equal(a, before)
            assert found.dtype == a.dtype
            expected = expected.swapaxes(-1, -2) if upper else expected
            numpy.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * abs(expected).max())
            triangle = numpy.triu(found) if upper else numpy.tril(found)
            numpy.testing.assert_array_equal(found, triangle)
            assert found.mT.flags.c_contiguous
            assert not numpy.may_share_memory(found, a)


@pytest.mark.parametrize("size", [3, 64, 200])
@pytest.mark.parametrize("value", [-1.0, 0.0, numpy.nan])
def test_other_matrices_are_left_to_lapack(size, value):
    for place in (0, size // 2, size - 1):
        a = numpy.stack([numpy.eye(size)] * 3)
        a[1, place, place] = value
        assert cholesky(a, False) is NotImplemented
        assert cholesky(a.astype("c16"), False) is NotImplemented

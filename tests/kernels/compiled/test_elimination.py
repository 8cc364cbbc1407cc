"""Compiled elimination chooses LAPACK's pivots, and solves as NumPy does. NumPy computes singular matrices."""

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.llvm.host import HOST
from adjoint.kernels.compiled.linalg import elimination

SIZES = [1, 2, 5, 16, 17, 33, 64, 70]


@pytest.fixture(params=[64, 32, 16])
def width(request, monkeypatch):
    if request.param > HOST.vector_bytes:
        pytest.skip("this processor has no such registers")
    monkeypatch.setattr(HOST, "vector_bytes", request.param)


def _row_by_row(matrix):
    """Return the textbook elimination of a matrix, and the exchanged rows."""
    work, pivots = matrix.astype("f8"), []
    for k in range(min(work.shape)):
        other = k + int(abs(work[k:, k]).argmax())
        pivots.append(other)
        work[[k, other]] = work[[other, k]]
        if work[k, k] != 0:
            work[k + 1 :, k] /= work[k, k]
            work[k + 1 :, k + 1 :] -= numpy.outer(work[k + 1 :, k], work[k, k + 1 :])
    return work, pivots


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.usefixtures("width")
def test_factors_and_pivots(dtype):
    rng = numpy.random.default_rng(0)
    for rows in SIZES:
        for columns in SIZES:
            a = rng.standard_normal((3, rows, columns)).astype(dtype)
            a[1] = rng.integers(-1, 2, (rows, columns))  # many elements are equally large
            a[2, :, : columns // 2] = 0
            a[2, 0] = 1
            work, pivots = a.copy(), numpy.empty((3, min(rows, columns)), "i4")
            elimination.factor_panel(work, pivots)
            for place in (0, 2):
                expected, chosen = _row_by_row(a[place])
                assert pivots[place].tolist() == chosen
                numpy.testing.assert_allclose(work[place], expected, rtol=0, atol=3e3 * numpy.finfo(dtype).eps)
            assert pivots[1, 0] == abs(a[1, :, 0]).argmax()
            lower, upper, permutation = elimination.unpack(work, pivots)
            numpy.testing.assert_allclose(permutation @ lower @ upper, a, rtol=0, atol=300 * numpy.finfo(dtype).eps)
            assert (numpy.triu(upper) == upper).all() and (numpy.tril(lower) == lower).all()
            assert abs(lower).max() == 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.usefixtures("width")
def test_solutions_of_systems(dtype):
    rng = numpy.random.default_rng(0)
    for size in SIZES:
        for columns in (1, 4, 9, 17):
            a = (rng.standard_normal((2, 1, size, size)) + numpy.eye(size)).astype(dtype)
            b = rng.standard_normal((3, size, columns)).astype(dtype)
            tolerance = 2e4 * numpy.finfo(dtype).eps
            numpy.testing.assert_allclose(elimination.solve(a.mT, b), numpy.linalg.solve(a.mT, b), tolerance, tolerance)
            for upper in (False, True):
                for unitriangular in (False, True):
                    triangle = a / (2 * size) + numpy.eye(size, dtype=dtype)
                    whole = numpy.triu(triangle) if upper else numpy.tril(triangle)
                    if unitriangular:
                        whole[..., range(size), range(size)] = 1
                    for turned in (triangle, numpy.ascontiguousarray(triangle.mT).mT):
                        plan = elimination.solve_triangular(turned, b, upper, unitriangular)
                        found = plan.run(turned, b)
                        numpy.testing.assert_allclose(whole @ found, b + 0 * found, tolerance, tolerance)
        found = elimination.solve(a, None)
        assert found.flags.c_contiguous and found.dtype == dtype
        numpy.testing.assert_allclose(found, numpy.linalg.inv(a), tolerance, tolerance)
        pivots, sign = elimination.pivots_of(a)
        numpy.testing.assert_allclose(pivots.prod(1) * sign, numpy.linalg.det(a.astype("f8"))[:, 0], 1e-9)


@pytest.mark.parametrize("value", [0.0, numpy.inf, numpy.nan])
def test_other_matrices_are_left_to_lapack(value):
    for size in (3, 40):
        for place in (0, size // 2, size - 1):
            a = numpy.stack([numpy.eye(size)] * 3)
            a[1, place, place] = value
            assert elimination.solve(a, None) is NotImplemented
            assert elimination.pivots_of(a) is NotImplemented
            assert elimination.solve_triangular(a, a, True, False).run(a, a) is NotImplemented
            assert elimination.solve(a.astype("c16"), None) is NotImplemented


def test_large_stacks_are_computed_as_without_loops(monkeypatch):
    rng = numpy.random.default_rng(0)
    for dtype, tolerance in (("f4", 1e-4), ("f8", 1e-11)):
        given = (rng.standard_normal((2, 3, 40, 40)) + 8 * numpy.eye(40)).astype(dtype)
        right = rng.standard_normal((3, 40, 5)).astype(dtype)
        both = []
        for enabled in (True, False):
            monkeypatch.setattr(LOOPS, "_enabled", enabled)
            a = torch.tensor(given)
            results = [
                torch.linalg.inv(a), torch.linalg.solve(a, torch.tensor(right)), *torch.linalg.slogdet(a),
                torch.linalg.solve(a, torch.tensor(right).mT, left=False), torch.linalg.det(a / 8), *torch.linalg.lu(a),
                *torch.linalg.lu_factor(a), torch.linalg.solve_triangular(a, torch.tensor(right), upper=True),
            ]  # fmt: skip
            both.append(results)
        for found, expected in zip(*both, strict=True):
            assert found.dtype == expected.dtype and found.stride() == expected.stride()
            numpy.testing.assert_allclose(found.numpy(), expected.numpy(), tolerance, tolerance)
        monkeypatch.setattr(LOOPS, "_enabled", True)
        given[1, 2] = 0
        with pytest.raises(
            torch.linalg.LinAlgError, match=r"linalg.inv: \(Batch element 5\): The diagonal element 1 is"
        ):
            torch.linalg.inv(torch.tensor(given))
        assert torch.linalg.det(torch.tensor(given))[1, 2] == 0
    assert not LOOPS.failures


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0), (2, 3, 0), (0, 3, 3), (0, 0, 0), (3, 0, 3, 3)])
def test_matrices_without_elements_are_left_to_numpy(shape, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    permutation, lower, upper = torch.linalg.lu(torch.zeros(shape))
    assert (permutation @ lower @ upper).shape == shape

"""LAPACK's results in the dtype of large matrices agree with NumPy's results in double precision."""

import numpy
import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.linalg.stacks import by_lapack

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]

SHAPES = [(50, 50), (70, 50), (50, 70), (2, 3, 60, 60), (600, 60)]

SQUARE = {
    "inv": torch.linalg.inv,
    "inv_ex": lambda a: torch.linalg.inv_ex(a)[0],
    "det": lambda a: torch.linalg.det(a / 4),
    "slogdet": lambda a: torch.stack([part.abs() for part in torch.linalg.slogdet(a)]),
    "solve": lambda a: torch.linalg.solve(a, a[..., :3]),
    "solve of another stack": lambda a: torch.linalg.solve(a, a.mT.expand(2, *a.shape)),
    "solve from the right": lambda a: torch.linalg.solve(a, a[..., :3, :], left=False),
    "solve_triangular": lambda a: torch.linalg.solve_triangular(
        a + 30 * torch.eye(a.shape[-1]), a[..., :3], upper=True
    ),
    "solve_triangular, transposed": lambda a: torch.linalg.solve_triangular(
        a.mT + 30 * torch.eye(a.shape[-1]), a[..., ::2], upper=False, unitriangular=False
    ),
    "lu_factor": lambda a: torch.linalg.lu_factor(a)[0],
    "lu_solve": lambda a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a[..., :2]),
    "cholesky_inverse": lambda a: torch.cholesky_inverse(torch.linalg.cholesky(_positive(a))),
    "cholesky_inverse, upper": lambda a: torch.cholesky_inverse(
        torch.linalg.cholesky(_positive(a), upper=True), upper=True
    ),
    "eigh": lambda a: _product(*torch.linalg.eigh(_positive(a))),
    "eigvalsh": lambda a: torch.linalg.eigvalsh(_positive(a), "U"),
}

ANY = {
    "qr": lambda a: torch.matmul(*torch.linalg.qr(a)),
    "complete qr": lambda a: torch.matmul(*torch.linalg.qr(a, "complete")),
    "r": lambda a: torch.linalg.qr(a, "r")[1].abs(),
    "geqrf": lambda a: torch.geqrf(a)[0].abs(),
    "svd": lambda a: _of_singular(*torch.linalg.svd(a, full_matrices=False)),
    "full svd": lambda a: torch.linalg.svd(a)[1],
    "svdvals": torch.linalg.svdvals,
    "pinv": torch.linalg.pinv,
    **{
        f"lstsq by {driver}": lambda a, driver=driver: torch.linalg.lstsq(a, a[..., :3] * 2, driver=driver).solution
        for driver in ("gels", "gelsy", "gelsd", "gelss")
    },
    "residuals": lambda a: torch.linalg.lstsq(a, a.mT.mT[..., :3].abs().to(a.dtype), driver="gelsd").residuals,
}


def _positive(a):
    return a @ a.mH + a.shape[-1] * torch.eye(a.shape[-1], dtype=a.dtype)


def _product(values, vectors):
    return (vectors * values[..., None, :]) @ vectors.mH


def _of_singular(u, values, vh):
    return (u * values[..., None, :]) @ vh


CASES = [(name, shape) for name in SQUARE | ANY for shape in SHAPES if name in ANY or shape[-1] == shape[-2]]


def _matrices(dtype, shape):
    generator = numpy.random.default_rng(0)
    real, imaginary = generator.standard_normal((2, *shape))
    a = torch.from_numpy(real + 1j * imaginary if dtype.is_complex else real)
    return a.to(dtype)


@pytest.mark.parametrize(("name", "shape"), CASES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_as_in_double_precision_without_lapack(dtype, name, shape, monkeypatch):
    a, function = _matrices(dtype, shape), (SQUARE | ANY)[name]
    found = function(a)
    double = torch.complex128 if dtype.is_complex else torch.float64
    monkeypatch.setattr(LOOPS, "_enabled", False)
    expected = function(a.to(double))
    is_single = dtype in (torch.float32, torch.complex64)
    torch.testing.assert_close(
        found.to(expected.dtype), expected, rtol=2e-3 if is_single else 1e-9, atol=5e-4 if is_single else 1e-9
    )
    assert found.dtype in (dtype, dtype.to_real())


def test_lapack_is_found():
    pytest.importorskip("llvmlite")
    a = numpy.eye(64, dtype="f") * 2
    found = by_lapack("inverse", a)
    if found is NotImplemented:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    assert found.dtype == numpy.float32
    numpy.testing.assert_array_equal(found, numpy.eye(64) / 2)


@pytest.mark.parametrize("shape", [(60, 60), (2, 60, 60)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_singular_matrices_are_refused_with_the_first_zero_pivot(dtype, shape):
    a = _matrices(dtype, shape)
    a[..., 20] = 0
    where = "\\(Batch element 0\\): " if len(shape) > 2 else ""
    with pytest.raises(torch.linalg.LinAlgError, match=f"^linalg.inv: {where}The diagonal element 21 is zero"):
        torch.linalg.inv(a)
    with pytest.raises(torch.linalg.LinAlgError, match=f"^torch.linalg.solve: {where}The solver failed"):
        torch.linalg.solve(a, a)
    assert not torch.linalg.det(a).any()
    sign, logarithm = torch.linalg.slogdet(a)
    assert not sign.any()
    assert (logarithm == -torch.inf).all()

"""Derivatives at singular and degenerate matrices are finite if they exist.

A matrix does not affect the other matrices of its batch.
"""

import itertools
import math

import pytest

import adjoint as torch

REGULAR = torch.tensor([[4.0, 1.0, 0.5], [1.0, 6.0, 0.7], [0.5, 0.7, 3.0]], dtype=torch.float64)
DEGENERATE = {
    "zero": torch.zeros(3, 3),
    "rank 1": torch.ones(3, 3),
    "rank 2": torch.diag(torch.tensor([1.0, 1.0, 0.0])),
    "nilpotent": torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "unit": torch.eye(3),
    "defective": torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]),
    "nan": torch.full((3, 3), math.nan),
}
RIGHT = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
FUNCTIONS = {
    "det": torch.det,
    "logdet": torch.logdet,
    "slogdet": torch.linalg.slogdet,
    "inv_ex": torch.linalg.inv_ex,
    "solve_ex": lambda a: torch.linalg.solve_ex(a, RIGHT.expand(a.shape)),
    "pinv": torch.linalg.pinv,
    "lstsq": lambda a: torch.linalg.lstsq(a, RIGHT.expand(a.shape)).solution,
    "cholesky_ex": torch.linalg.cholesky_ex,
    "qr": torch.linalg.qr,
    "wide qr": lambda a: torch.linalg.qr(a[..., :2, :]),
    "tall qr": lambda a: torch.linalg.qr(a[..., :2]),
    "lu": torch.linalg.lu,
    "lu_factor_ex": torch.linalg.lu_factor_ex,
    "svd": torch.linalg.svd,
    "svdvals": torch.linalg.svdvals,
    "eigh": torch.linalg.eigh,
    "eig": lambda a: (torch.linalg.eig(a).eigenvalues, torch.linalg.eig(a).eigenvectors.abs()),  # phases are arbitrary
    "eigvals": torch.linalg.eigvals,
    "solve_triangular": lambda a: torch.linalg.solve_triangular(a, RIGHT, upper=True),
    "cholesky_solve": lambda a: torch.cholesky_solve(RIGHT, a),
    "matrix_exp": torch.linalg.matrix_exp,
    "matrix_power": lambda a: torch.linalg.matrix_power(a, 3),
    "cond": lambda a: torch.linalg.cond(a, 1),
    "nuclear": lambda a: torch.linalg.matrix_norm(a, "nuc"),
    "spectral": lambda a: torch.linalg.matrix_norm(a, 2),
}
FAILING_FORWARD = {"pinv", "lstsq", "svd", "svdvals", "eigh", "eig", "eigvals", "nuclear", "spectral"}  # nan


def total(results, count):
    found = 0
    for result in results if isinstance(results, tuple) else (results,):
        if result.requires_grad:
            real = torch.view_as_real(result) if result.is_complex() else result
            each = real.reshape(count, -1)
            found = found + (each * torch.arange(1.0, each.shape[-1] + 1)).sum()
    return found


def gradients(function, batch):
    """Return the first gradient, and the gradient of its sum."""
    leaf = batch.clone().requires_grad_()
    (first,) = torch.autograd.grad(total(function(leaf), len(batch)), leaf, create_graph=True)
    if not first.requires_grad:
        return first, first * 0
    return first.detach(), torch.autograd.grad(first.sum(), leaf)[0]


@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_other_matrices_of_a_batch_have_their_own_gradients(name, kind):
    if kind == "nan" and name in FAILING_FORWARD:
        pytest.skip("there is no such factorization")
    function = FUNCTIONS[name]
    batch = torch.stack([REGULAR, DEGENERATE[kind].double(), 2 * REGULAR])
    for alone, together in zip(gradients(function, REGULAR[None]), gradients(function, batch), strict=True):
        torch.testing.assert_close(together[:1], alone, equal_nan=name in ("eig", "eigvals", "eigh", "svd"))


def test_eigenvalues_that_are_equal_have_the_gradient_of_their_sum():
    ones = torch.ones(4, 4, dtype=torch.float64, requires_grad=True)
    (torch.linalg.eigvals(ones).abs() ** 2).sum().backward()
    torch.testing.assert_close(ones.grad, torch.full((4, 4), 2.0, dtype=torch.float64))


def leibniz(matrix):
    """Return the determinant by Leibniz's polynomial."""
    size = matrix.shape[-1]
    found = 0
    for order in itertools.permutations(range(size)):
        sign = (-1) ** sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        term = sign
        for row, column in enumerate(order):
            term = term * matrix[row, column]
        found = found + term
    return found


def of_rank(size, rank, dtype):
    left, right = (torch.randn(size, rank, dtype=dtype) for _ in range(2))
    return left @ right.mT


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(("size", "rank"), [(size, rank) for size in (1, 2, 3, 4) for rank in range(size + 1)])
def test_a_determinant_is_a_polynomial_to_any_order(size, rank, dtype):
    torch.manual_seed(size * 10 + rank)
    weights = [torch.randn(size, size, dtype=dtype) for _ in range(3)]
    found = []
    matrix = of_rank(size, rank, dtype)
    for function in (torch.det, leibniz):
        leaf = matrix.clone().requires_grad_()
        value, orders = function(leaf), []
        for weight in weights:
            value = value.real if value.is_complex() else value
            if not value.requires_grad:
                orders.append(torch.zeros(size, size, dtype=dtype))
                continue
            (gradient,) = torch.autograd.grad(value, leaf, create_graph=True, materialize_grads=True)
            orders.append(gradient.detach())
            value = (gradient * weight).sum()
        found.append(orders)
    for ours, exact in zip(*found, strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-6, atol=1e-9)


@pytest.mark.thorough
def test_hessians_of_determinants_of_a_batch():
    torch.manual_seed(0)
    batch = torch.stack([of_rank(3, rank, torch.float64) for rank in range(4)] + [torch.eye(3, dtype=torch.float64)])
    hessian = torch.func.hessian(torch.det)
    each = torch.stack([torch.func.hessian(leibniz)(matrix) for matrix in batch])
    torch.testing.assert_close(torch.vmap(hessian)(batch), each)
    torch.testing.assert_close(torch.stack([hessian(matrix) for matrix in batch]), each)
    reverse = torch.func.jacrev(torch.func.jacrev(torch.det))
    torch.testing.assert_close(torch.vmap(reverse)(batch), each)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("function", [torch.cholesky_inverse, lambda a, upper: torch.cholesky_solve(RIGHT, a, upper)])
def test_a_triangle_that_is_not_read_has_no_gradient(function, upper):
    given = torch.randn(3, 3, dtype=torch.float64) + 5 * torch.eye(3, dtype=torch.float64)
    leaf = given.requires_grad_()
    for create_graph in (False, True):  # first derivatives run on arrays, second derivatives on tensors
        (gradient,) = torch.autograd.grad(function(leaf, upper=upper).sum(), leaf, create_graph=create_graph)
        triangle = torch.tril(gradient, -1) if upper else torch.triu(gradient, 1)
        assert not triangle.any()
    assert torch.autograd.gradcheck(lambda a: function(a, upper=upper), (leaf,))


def test_factors_of_a_kronecker_product_are_those_of_its_call():
    leaf = torch.tensor([0.3, 0.7], requires_grad=True)
    factor = leaf * 1
    product = torch.kron(factor, factor)
    factor.mul_(3)
    torch.testing.assert_close(torch.autograd.grad(product.sum(), leaf)[0], torch.tensor([2.0, 2.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("size", [2, 4, 7])
def test_equal_eigenvalues_have_independent_eigenvectors_if_there_are_enough(size, dtype):
    single, shifted = torch.ones(size, size, dtype=dtype), torch.ones(size, size, dtype=dtype) + 2 * torch.eye(size)
    batch = torch.stack([single, shifted, torch.ones(size, size, dtype=dtype).triu()])
    values, vectors = torch.linalg.eig(batch)
    torch.testing.assert_close(batch.to(values.dtype) @ vectors, vectors * values[:, None, :])
    torch.testing.assert_close(vectors.abs().square().sum(-2), torch.ones(3, size, dtype=values.abs().dtype))
    assert (torch.linalg.cond(vectors[:2]) < 1e3).all()
    leaf = batch[:2].clone().requires_grad_()
    torch.linalg.eigvals(leaf).real.square().sum().backward()
    torch.testing.assert_close(leaf.grad, 2 * batch[:2].mT.conj())


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_nearly_dependent_eigenvectors_do_not_depend_on_the_scale(dtype, scale):
    matrix = scale * torch.tensor([[1.0, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=dtype)
    values, vectors = torch.linalg.eig(matrix)
    torch.testing.assert_close(matrix.to(values.dtype) @ vectors / scale, vectors * values / scale)

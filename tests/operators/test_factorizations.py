"""Factorizations: the product of the factors is the matrix, and singular matrices raise errors."""

import contextlib
import math
import warnings

import numpy
import pytest

import adjoint as torch
from adjoint._runtime import tracebacks

RANDOM = numpy.random.default_rng(0)
KINDS = ("float32", "float64", "complex64", "complex128")
SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 4), (2, 1, 5, 2), (1, 1), (0, 3, 3), (3, 0), (33, 33)]


def drawn(shape, kind="float64"):
    values = RANDOM.standard_normal(shape)
    if kind.startswith("complex"):
        values = values + 1j * RANDOM.standard_normal(shape)
    return torch.from_numpy(values.astype(kind))


def assert_equal(one, other):
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 if one.dtype.itemsize in (4, 8) else 1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_triangular_factors_make_the_matrix(shape, kind):
    matrix = drawn(shape, kind)
    permutation, lower, upper = torch.linalg.lu(matrix)
    assert_equal(permutation @ lower @ upper, matrix)
    assert lower.abs().max().item() <= 1.5 if lower.numel() else True
    assert (lower.triu(1) == 0).all()
    assert (upper.tril(-1) == 0).all()
    factors, pivots = torch.linalg.lu_factor(matrix)
    assert pivots.dtype == torch.int32
    for one, other in zip(torch.lu_unpack(factors, pivots), (permutation, lower, upper), strict=True):
        assert_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_factors_solve(left, adjoint, kind):
    matrix, right = drawn((2, 4, 4), kind), drawn((3, 2, 4, 4), kind)
    found = torch.linalg.lu_solve(*torch.linalg.lu_factor(matrix), right, left=left, adjoint=adjoint)
    turned = matrix.mH if adjoint else matrix
    assert_equal(turned @ found if left else found @ turned, right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_symmetric_factors_solve(hermitian, kind, zeros):
    matrix = drawn((3, 7, 7), kind)
    matrix = matrix + (matrix.mH if hermitian else matrix.mT)
    if zeros:  # the matrix has blocks of two rows
        matrix = matrix - torch.diag_embed(matrix.diagonal(0, -2, -1))
    right = drawn((7, 2), kind)
    factors = torch.linalg.ldl_factor(matrix, hermitian=hermitian)
    assert_equal(matrix @ torch.linalg.ldl_solve(*factors, right, hermitian=hermitian), right.expand(3, 7, 2))
    assert (factors.pivots.min().item() < 0) == zeros or not zeros


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 4), (0, 3, 3), (33, 20)])
def test_reflections_make_the_factors(shape, kind):
    matrix = drawn(shape, kind)
    factors, tau = torch.geqrf(matrix)
    size = min(shape[-2:])
    vectors = factors[..., :size]
    first = torch.linalg.householder_product(vectors, tau)
    assert_equal(first @ factors.triu()[..., :size, :], matrix)
    whole = torch.ormqr(vectors, tau, torch.eye(shape[-2], dtype=matrix.dtype).expand(*shape[:-2], -1, -1))
    assert_equal(whole[..., :size], first)
    other = drawn((*shape[:-2], 2, shape[-2]), kind)
    assert_equal(torch.ormqr(vectors, tau, other, left=False), other @ whole)
    assert_equal(torch.ormqr(vectors, tau, other.mH, transpose=True), whole.mH @ other.mH)


def test_singular_matrices_are_reported():
    matrices = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 1.0]]])
    inverse, info = torch.linalg.inv_ex(matrices)
    assert info.tolist() == [0, 2, 1]
    assert torch.isfinite(inverse).all((-2, -1)).tolist() == [True, False, False]
    solution, info = torch.linalg.solve_ex(matrices, torch.ones(3, 2))
    assert info.tolist() == torch.linalg.lu_factor_ex(matrices).info.tolist() == [0, 2, 1]
    assert torch.isfinite(solution).all(-1).tolist() == [True, False, False]
    with pytest.raises(torch.linalg.LinAlgError, match=r"\(Batch element 1\): The diagonal element 2 is zero"):
        torch.linalg.inv_ex(matrices, check_errors=True)
    with pytest.raises(RuntimeError, match=r"\(Batch element 1\): U\[2,2\] is zero"):
        torch.linalg.lu_factor(matrices)
    assert torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info.item() == 1
    with pytest.raises(RuntimeError, match=r"D\[1,1\] is zero"):
        torch.linalg.ldl_factor(torch.zeros(2, 2))


@pytest.mark.parametrize("function", ["lu_factor_ex", "lu", "inv_ex", "ldl_factor_ex"])
def test_of_half_numbers_there_are_none(function):
    with pytest.raises((NotImplementedError, RuntimeError), match=r"not implemented for 'Half'|Low precision"):
        getattr(torch.linalg, function)(torch.ones(2, 2, dtype=torch.float16))


def test_many_matrices_at_once():
    matrices, right = drawn((4, 3, 3)), drawn((4, 3, 2))
    factors = torch.vmap(torch.linalg.lu_factor)(matrices)
    assert_equal(torch.vmap(torch.linalg.lu_solve)(*factors, right), torch.linalg.solve(matrices, right))
    for dims in ((0, 0, None), (None, None, 0)):
        given = [part if dim == 0 else part[0] for part, dim in zip((*factors, right), dims, strict=True)]
        each = torch.stack(
            [
                torch.linalg.lu_solve(*(g[i] if d == 0 else g for g, d in zip(given, dims, strict=True)))
                for i in range(4)
            ]
        )
        assert_equal(torch.vmap(torch.linalg.lu_solve, dims)(*given), each)


def test_powers():
    assert torch.vander(torch.tensor([2, 3]), 0).shape == (2, 0)
    assert torch.vander(torch.tensor([True, False])).tolist() == [[1, 1], [0, 1]]
    assert torch.linalg.vander(torch.tensor([[1, 2], [3, 4]], dtype=torch.int32), N=3).dtype == torch.int64


@pytest.mark.parametrize("function", [torch.svd, torch.linalg.lu_factor, torch.linalg.ldl_factor])
def test_of_several_outputs_none_is_written_to_if_one_is_refused(function):
    out = [torch.full_like(part, 7) for part in function(3 * torch.eye(2))]
    out[-1] = torch.full_like(out[-1], 7, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        function(3 * torch.eye(2), out=tuple(out))
    assert all((part == 7).all() for part in out)


@pytest.mark.parametrize("threads", [1, 3])
def test_large_stacks_are_decomposed_as_matrix_by_matrix(threads):
    a = torch.tensor(numpy.random.default_rng(0).standard_normal((2, 5, 48, 50)), dtype=torch.float64)
    s = a[..., :48] + a[..., :48].mT
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for function, given in (
            (torch.linalg.eigh, s),
            (torch.linalg.eigvalsh, s),
            (torch.linalg.svd, a),
            (torch.linalg.svdvals, a),
            (torch.linalg.qr, a),
            (lambda x: torch.linalg.qr(x, "r")[1], a),
            (torch.linalg.eigvals, s),
        ):
            whole = function(given)
            for i in range(2):
                for j in range(5):
                    one = function(given[i, j])
                    pairs = zip(whole, one, strict=True) if isinstance(whole, tuple) else [(whole, one)]
                    for all_, own in pairs:
                        assert all_.shape == (2, 5, *own.shape) and all_.dtype == own.dtype
                        numpy.testing.assert_allclose(all_[i, j].numpy(), own.numpy(), 1e-8, 1e-8)
        s[1, 3, 0, 0] = numpy.nan
        with pytest.raises(torch.linalg.LinAlgError):
            torch.linalg.eigvalsh(s)
    finally:
        torch.set_num_threads(before)


def test_values_alone_are_those_with_vectors():
    a = torch.tensor(numpy.random.default_rng(0).standard_normal((3, 5, 5)), dtype=torch.float64)
    for function in (torch.linalg.eigvalsh, torch.linalg.svdvals):
        alone = function(a)
        tracked = function(a.clone().requires_grad_())
        assert tracked.requires_grad and not alone.requires_grad
        numpy.testing.assert_allclose(alone.numpy(), tracked.detach().numpy(), 1e-12, 1e-12)
        tangent = torch.func.jvp(function, (a,), (torch.ones_like(a),))[1]
        gradient = torch.func.jacrev(function)(a).sum((-3, -2, -1))
        numpy.testing.assert_allclose(tangent.numpy(), gradient.numpy(), 1e-9, 1e-9)


@pytest.mark.parametrize("stack", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_stack_with_numbers_that_are_not_finite_has_an_inverse_or_a_refusal(number, dtype, stack):
    matrix = torch.tensor([[0, number], [0, 1]], dtype=dtype)
    stacked = torch.stack([matrix] * stack)
    inverse, info = torch.linalg.inv_ex(stacked)
    assert inverse.shape == stacked.shape
    assert info.shape == (stack,)
    with contextlib.suppress(torch.linalg.LinAlgError):
        torch.linalg.inv(stacked)


@pytest.mark.parametrize("name", ["svd", "eig", "eigh"])
def test_losses_that_depend_on_phases_are_refused(name):
    torch.manual_seed(0)
    A = torch.randn(3, 3, dtype=torch.complex128, requires_grad=True)
    results = getattr(torch.linalg, name)(A if name != "eigh" else A + A.mH)
    vectors = results[0 if name == "svd" else 1]
    with pytest.raises(RuntimeError, match="ill-defined"):
        vectors.sum().abs().backward(retain_graph=True)
    vectors.abs().sum().backward()


@pytest.mark.parametrize(
    "function",
    [
        torch.linalg.pinv, torch.linalg.cond, torch.linalg.matrix_rank, torch.cholesky_inverse, torch.linalg.eigvals,
        lambda A, out: torch.cholesky_solve(A, A, out=out), lambda A, out: torch.linalg.tensorsolve(A, A[0], out=out),
        lambda A, out: torch.linalg.tensorinv(A, ind=1, out=out),
        lambda A, out: torch.linalg.householder_product(A, A[0], out=out),
    ],
)  # fmt: skip
def test_out_may_have_any_dtype_to_which_the_result_can_be_cast(function):
    A = torch.tensor([[2.0, 0.0], [1.0, 3.0]])
    with pytest.raises(RuntimeError, match=r"safely castable from .* dtype, but got .* with dtype Bool"):
        function(A, out=torch.empty(0, dtype=torch.bool))
    assert function(A, out=torch.empty(0, dtype=torch.complex128)).dtype is torch.complex128


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr"])
@pytest.mark.filterwarnings("default")
def test_older_functions_are_deprecated(name, monkeypatch):
    monkeypatch.setattr(tracebacks, "_given", set())
    with pytest.warns(UserWarning, match=rf"torch.{name} is deprecated in favor of torch.linalg.{name}"):
        getattr(torch, name)(torch.eye(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(torch, name)(torch.eye(2))
        torch.pca_lowrank(drawn((4, 3)), 2)

"""Products of matrices and factorizations, compared with NumPy.

First and second derivatives, compared with finite differences.
"""

import math
import random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as torch

RANDOM = numpy.random.default_rng(0)


def tensor(*shape, complex_numbers=False):
    values = RANDOM.standard_normal(shape)
    if complex_numbers:
        values = values + 1j * RANDOM.standard_normal(shape)
    return torch.from_numpy(values).requires_grad_()


def numbers(results):
    """Return a weighted sum of all elements of the results, with constant weights."""
    weights = numpy.random.default_rng(1)
    total = 0.0
    for result in results if isinstance(results, (tuple, list)) else [results]:
        for part in (result.real, result.imag) if result.dtype.is_complex else (result,):
            total = total + (part * torch.from_numpy(weights.standard_normal(tuple(part.shape)))).sum()
    return total


def slope(function, inputs, directions, step=1e-6):
    """Return the derivative of `function` along the directions, by central differences."""
    with torch.no_grad():
        ends = [
            function(*(x + sign * step * d for x, d in zip(inputs, directions, strict=True))).item() for sign in (1, -1)
        ]
    return (ends[0] - ends[1]) / (2 * step)


def along(gradients, directions):
    """Return the same derivative as the product of gradients and directions."""
    return sum(
        (g.conj() * d).real.sum().item() if g.dtype.is_complex else (g * d).sum().item()
        for g, d in zip(gradients, directions, strict=True)
    )


def check(function, *inputs):
    """Check the first and second derivative of `numbers(function(...))` along a random direction."""

    def value(*points):
        return numbers(function(*points))

    directions = [
        torch.from_numpy(tensor(*x.shape, complex_numbers=x.dtype.is_complex).detach().numpy()) for x in inputs
    ]
    gradients = torch.autograd.grad(value(*inputs), inputs, create_graph=True)
    assert along([g.detach() for g in gradients], directions) == pytest.approx(
        slope(value, inputs, directions), rel=1e-5, abs=1e-6
    )

    def first(*points):
        points = [point.detach().requires_grad_() for point in points]
        with torch.enable_grad():
            return numbers(torch.autograd.grad(value(*points), points))

    seconds = torch.autograd.grad(numbers(gradients), inputs, allow_unused=True)
    used = [(g, d) for g, d in zip(seconds, directions, strict=True) if g is not None]
    assert along([g for g, _ in used], [d for _, d in used]) == pytest.approx(
        slope(first, inputs, directions), rel=1e-4, abs=1e-5
    )


def hermitian(a):
    return a + a.mH


def positive(a):
    return a @ a.mH + 3 * torch.eye(a.shape[-1], dtype=a.dtype)


# Vectors are unique only up to signs or phases. The compared results do not depend on signs and phases.
FACTORIZATIONS = {
    "inv": lambda a: torch.linalg.inv(positive(a)),
    "solve": lambda a: torch.linalg.solve(positive(a), a),
    "solve from the right": lambda a: torch.linalg.solve(positive(a), a, left=False),
    "det": torch.linalg.det,
    "slogdet": lambda a: torch.linalg.slogdet(a),
    "cholesky": lambda a: torch.linalg.cholesky(positive(a)),
    "upper cholesky": lambda a: torch.cholesky(positive(a), upper=True),
    "eigh": lambda a: (torch.linalg.eigh(hermitian(a))[0], torch.linalg.eigh(hermitian(a))[1].abs()),
    "eigvalsh": lambda a: torch.linalg.eigvalsh(hermitian(a)),
    "svd": lambda a: tuple(part.abs() for part in torch.linalg.svd(a, full_matrices=False)),
    "svdvals": torch.linalg.svdvals,
    "qr": lambda a: tuple(part.abs() for part in torch.linalg.qr(a)),
    "nuclear norm": lambda a: torch.linalg.matrix_norm(a, "nuc"),
    "spectral norm": lambda a: torch.linalg.matrix_norm(a, 2),
    "powers": lambda a: (torch.linalg.matrix_power(a, 3), torch.linalg.matrix_power(positive(a), -2)),
}


@pytest.mark.parametrize("complex_numbers", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_derivatives_of_factorizations(name, complex_numbers):
    check(FACTORIZATIONS[name], tensor(3, 3, complex_numbers=complex_numbers))
    check(FACTORIZATIONS[name], tensor(2, 2, 2, complex_numbers=complex_numbers))


@pytest.mark.parametrize("complex_numbers", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", ["svd", "svdvals", "qr", "nuclear norm", "spectral norm"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)], ids=["tall", "wide"])
def test_derivatives_of_factorizations_of_other_shapes(name, shape, complex_numbers):
    check(FACTORIZATIONS[name], tensor(*shape, complex_numbers=complex_numbers))


def test_determinants_of_singular_matrices_can_be_differentiated_twice():
    a = torch.diag(torch.tensor([1.0, 2.0, 0.0], dtype=torch.float64)).requires_grad_()
    check(torch.linalg.det, a)
    one = tensor(1, 1)
    (gradient,) = torch.autograd.grad(torch.linalg.det(one), one, create_graph=True)
    assert gradient.tolist() == [[1.0]]


PRODUCTS = {
    "matmul of stacks": (torch.matmul, [(2, 3, 4), (2, 4, 5)]),
    "matmul of a stack and a matrix": (torch.matmul, [(2, 3, 4), (4, 5)]),
    "matmul of a matrix and a stack": (torch.matmul, [(3, 4), (2, 4, 5)]),
    "matmul of a vector and a stack": (torch.matmul, [(4,), (2, 4, 5)]),
    "matmul, broadcast": (torch.matmul, [(3, 1, 2, 4), (2, 4, 2)]),
    "addmm": (lambda *x: torch.addmm(*x, beta=1 + 2j, alpha=2 - 1j), [(3,), (2, 4), (4, 3)]),
    "addmv": (lambda *x: torch.addmv(*x, beta=1 + 2j, alpha=2 - 1j), [(2,), (2, 4), (4,)]),
    "addbmm": (lambda *x: torch.addbmm(*x, beta=1 + 2j, alpha=2 - 1j), [(2, 3), (5, 2, 4), (5, 4, 3)]),
    "baddbmm": (lambda *x: torch.baddbmm(*x, beta=1 + 2j, alpha=2 - 1j), [(2, 3), (5, 2, 4), (5, 4, 3)]),
    "addr": (lambda *x: torch.addr(*x, beta=1 + 2j, alpha=2 - 1j), [(2, 3), (2,), (3,)]),
    "einsum": (lambda *x: torch.einsum("iij,jk,k->ik", *x), [(2, 2, 3), (3, 4), (4,)]),
    "tensordot": (lambda *x: torch.tensordot(*x, ([0, -1], [1, 0])), [(2, 3, 4), (4, 2, 5)]),
    "kron": (torch.kron, [(2, 3), (3, 2)]),
    "multi_dot": (lambda *x: torch.linalg.multi_dot(x), [(3,), (3, 4), (4, 2), (2,)]),
    "cross": (lambda *x: torch.linalg.cross(*x, dim=0), [(3, 2), (3, 2)]),
    "vecdot": (lambda *x: torch.linalg.vecdot(*x, dim=0), [(3, 2), (3, 2)]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_derivatives_of_products(name):
    function, shapes = PRODUCTS[name]
    check(function, *(tensor(*shape, complex_numbers=True) for shape in shapes))


@pytest.mark.parametrize(
    "shapes", [((70, 40), (3, 8)), ((300,), (30, 2)), ((5, 30, 40), (7,)), ((200,), (100,))], ids=str
)
def test_kron_is_numpys(shapes):
    first, second = [RANDOM.standard_normal(shape).astype("f4") for shape in shapes]
    for recorded in (False, True):
        found = torch.kron(torch.from_numpy(first).requires_grad_(recorded), torch.from_numpy(second))
        numpy.testing.assert_array_equal(found.detach().numpy(), numpy.kron(first, second))


@given(st.integers(0, 10**6))
def test_einsum_is_numpys(seed):
    choose = random.Random(seed)
    sizes = {letter: choose.choice([1, 2, 3]) for letter in "abcXY"}
    terms = ["".join(choose.choices("abcXY", k=choose.randint(0, 4))) for _ in range(choose.randint(1, 3))]
    known = sorted(set("".join(terms)))
    equation = f"{','.join(terms)}->{''.join(choose.sample(known, choose.randint(0, len(known))))}"
    arrays = [RANDOM.standard_normal([sizes[letter] for letter in term]) for term in terms]
    found = torch.einsum(equation, *map(torch.from_numpy, arrays))
    assert numpy.allclose(found.numpy(), numpy.einsum(equation, *arrays))


@pytest.mark.parametrize(
    "equation",
    [
        "ij,kj->ik",
        "bij,bjk->bik",
        "ij,kji->k",
        "ji,kj",
        "...ij,jk->...ik",
        "aij,bij->b",
        "i,j->ij",
        "i,j->ji",
        "ij,j->ji",
    ],
)
def test_einsum_that_is_planned_is_that_which_is_recorded(equation):
    shapes = {
        "ij,kj->ik": [(2, 3), (1, 3)], "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "ij,kji->k": [(2, 3), (4, 3, 2)],
        "i,j->ij": [(2,), (3,)], "i,j->ji": [(2,), (3,)], "ij,j->ji": [(2, 3), (3,)],
    }  # fmt: skip
    default = (
        [(5, 3, 2), (2, 4)] if "." in equation else [(3, 2), (4, 3)] if equation == "ji,kj" else [(2, 3, 4), (5, 3, 4)]
    )
    recorded = [tensor(*shape) for shape in shapes.get(equation, default)]
    plain = [one.detach() for one in recorded]
    expected = torch.einsum(equation, *recorded)
    for _ in range(2):
        found = torch.einsum(equation, *plain)
        assert torch.equal(found, expected)
        assert found.stride() == expected.stride()
    with pytest.raises(RuntimeError):
        torch.einsum(equation, plain[0], torch.ones(7, 7))


def test_einsum_names_dimensions_by_numbers_too():
    a, b = torch.ones(2, 3), torch.ones(4, 3)
    assert torch.einsum(a, [0, 1], b, [2, 1], [2, 0]).shape == (4, 2)
    assert torch.einsum(a, [0, Ellipsis], [Ellipsis, 0]).shape == (3, 2)


@pytest.mark.parametrize(
    ("function", "results"),
    [
        (torch.linalg.inv, 1), (torch.linalg.cholesky, 1), (lambda a: torch.linalg.solve(a, torch.ones_like(a)), 1),
        (lambda a: torch.linalg.eigh(a)[1], 1), (torch.linalg.qr, 2),
        (lambda a: (torch.linalg.svd(a)[0], torch.linalg.svd(a)[2]), 2),
    ],
)  # fmt: skip
def test_factors_lie_in_columns(function, results):
    found = function(positive(tensor(2, 3, 3).detach()))
    for part in found if results > 1 else [found]:
        assert part.stride() == (9, 1, 3)


def test_half_types_are_rounded_once():
    a, b, c = (torch.from_numpy(RANDOM.standard_normal((8, 8))).to(torch.bfloat16) for _ in range(3))
    exact = a.double() * 0.3 + (b.double() @ c.double()) * 0.7
    found = torch.addmm(a, b, c, beta=0.3, alpha=0.7)
    assert found.tolist() == exact.float().to(torch.bfloat16).tolist()


def test_norms_of_nothing():
    for order in ("fro", "nuc", 2, 1, math.inf):
        assert torch.linalg.matrix_norm(torch.ones(0, 0), order).item() == 0.0
    with pytest.raises(IndexError):
        torch.linalg.matrix_norm(torch.ones(0, 0), -2)


def test_products_of_zeros_can_be_differentiated_twice():
    index = torch.tensor([0, 0, 0])

    def product(base, src):
        return torch.scatter_reduce(base, 0, index, src, "prod")

    base, src = torch.tensor([0.0], requires_grad=True), torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(product(base, src).sum(), base, create_graph=True)
    assert gradient.item() == 0.0
    assert torch.autograd.grad(gradient.sum(), src)[0].tolist() == [0.0, 6.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
        (lambda: torch.matmul(torch.ones(2, 2), 2.0), TypeError, r"argument 'other' \(position 2\) must be Tensor"),
        (lambda: torch.addmm(torch.ones(5), torch.ones(2, 3), torch.ones(3, 4)), RuntimeError, "The expanded size"),
        (lambda: torch.einsum("ij", torch.ones(2)), RuntimeError, "does not match the number of dimensions"),
        (lambda: torch.einsum("i-i", torch.ones(2)), RuntimeError, "invalid subscript given at index 1"),
        (lambda: torch.tensordot(torch.ones(2, 3), torch.ones(2, 3), 1), RuntimeError, "contracted dimensions"),
        (lambda: torch.linalg.multi_dot([torch.ones(2, 2), torch.ones(3, 3)]), RuntimeError, "cannot be multiplied"),
        (lambda: torch.linalg.inv(torch.zeros(2, 2)), RuntimeError, "diagonal element 1 is zero"),
        (lambda: torch.linalg.norm(torch.ones(2), "foo"), RuntimeError, "Order foo not supported"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_singular_values_of_what_is_not_finite(value):
    matrix = torch.ones(3, 3) + torch.eye(3)
    matrix[0, 0] = value
    for function in (
        torch.linalg.svd,
        torch.linalg.svdvals,
        torch.linalg.pinv,
        torch.linalg.matrix_rank,
        torch.linalg.cond,
        torch.linalg.det,
    ):
        matrix.requires_grad_(function is torch.linalg.det)
        if matrix.requires_grad:
            function(matrix).backward()
            continue
        with pytest.raises(torch.linalg.LinAlgError, match="input matrix contained non-finite values"):
            function(matrix)


@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
def test_nodes_of_products_show_the_sizes_of_both_factors(needs):
    first, second = (torch.ones(size, requires_grad=each) for size, each in zip(((2, 3), (3, 4)), needs, strict=True))
    node = torch.addmm(torch.ones(4), first, second).grad_fn
    assert (node._saved_mat1_sym_sizes, node._saved_mat2_sym_sizes) == ((2, 3), (3, 4))
    node = (first @ second).grad_fn
    assert (node._saved_self_sym_sizes, node._saved_mat2_sym_sizes) == ((2, 3), (3, 4))

"""Distances between rows, and bounded norms."""

import numpy
import pytest

import adjoint as torch


@pytest.mark.parametrize("p", [0, 1, 1.5, 2, 3, float("inf")])
def test_cdist_is_the_norm_of_differences(p):
    x1, x2 = torch.rand(2, 1, 5, 3, dtype=torch.float64), torch.rand(4, 6, 3, dtype=torch.float64)
    expected = torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)
    assert torch.allclose(torch.cdist(x1, x2, p), expected)
    assert torch.cdist(x1, x2, p).shape == (2, 4, 5, 6)


def test_many_euclidean_distances_by_a_product():
    x1, x2 = (torch.rand(40, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    fast, exact = torch.cdist(x1, x2), torch.cdist(x1, x2, compute_mode="donot_use_mm_for_euclid_dist")
    assert fast.grad_fn.next_functions[0][0].name() == "EuclideanDistBackward0"
    assert torch.allclose(fast, exact)
    for first, second in zip(
        torch.autograd.grad(fast.sum(), (x1, x2)), torch.autograd.grad(exact.sum(), (x1, x2)), strict=True
    ):
        assert torch.allclose(first, second)


def test_distance_zero_has_gradient_zero():
    x = torch.ones(2, 3, requires_grad=True)
    torch.cdist(x, x.detach()).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2


def test_cdist_refuses():
    x = torch.ones(2, 3)
    for wrong, words in (
        (torch.ones(3), "cdist only supports at least 2D tensors, X2 got: 1D"),
        (torch.ones(2, 4), "X1 and X2 must have the same number of columns. X1: 3 X2: 4"),
        (torch.ones(2, 3).long(), "cdist only supports floating-point dtypes, X2 got: Long"),
        (torch.ones(2, 3).double(), "expected scalar type Float but found Double"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.cdist(x, wrong)
    with pytest.raises(ValueError, match="fast is not a valid value for compute_mode"):
        torch.cdist(x, x, compute_mode="fast")


def test_renorm_bounds_the_norms_of_slices():
    x = torch.tensor(numpy.random.default_rng(0).standard_normal((3, 4, 2)) * 3)
    result = torch.renorm(x, 2, 1, 5.0)
    norms = torch.linalg.vector_norm(x, 2, (0, 2))
    assert torch.allclose(torch.linalg.vector_norm(result, 2, (0, 2)), norms.clamp(max=5.0))
    assert torch.equal(result[:, norms <= 5], x[:, norms <= 5])
    assert x.clone().renorm_(2, 1, 5.0).equal(result)
    with pytest.raises(RuntimeError, match="renorm: input needs at least 2 dimensions, got 1 dimensions"):
        torch.renorm(torch.ones(3), 2, 0, 1.0)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_a_nan_is_in_the_distances_of_its_row(p):
    x = torch.tensor([[float("nan"), 1.0], [2.0, 3.0], [2.0, 4.0]])
    places = torch.triu_indices(3, 3, 1)
    pairs = torch.cdist(x, x, p)[tuple(places)]
    assert pairs.isnan().tolist() == torch.pdist(x, p).isnan().tolist() == [True, True, False]

"""Losses with margins, and distances, against their definitions and their numerical derivatives."""

from collections.abc import Callable

import numpy
import pytest

import adjoint as torch
import adjoint.nn.functional as F


def check_gradients(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> None:
    """Compare the gradients of a weighted sum with central differences along a direction for each input."""
    result = function(*inputs)
    weights = torch.randn_like(result)
    grads = torch.autograd.grad(result, inputs, weights)
    for which, (input, grad) in enumerate(zip(inputs, grads, strict=True)):
        direction = torch.randn_like(input)
        values = []
        for step in (1e-6, -1e-6):
            moved = [other.detach() + step * direction if other is input else other.detach() for other in inputs]
            values.append((function(*moved) * weights).sum().item())
        slope = (values[0] - values[1]) / 2e-6
        assert slope == pytest.approx((grad * direction).sum().item(), rel=1e-5, abs=1e-7), which


def scores(*shape: int) -> torch.Tensor:
    torch.manual_seed(len(shape))
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_one_class_is_kept_apart_from_the_others(p: int, reduction: str) -> None:
    x, target, weight = scores(5, 4), torch.tensor([0, 3, 1, 1, 2]), torch.rand(4, dtype=torch.float64)
    losses = [
        weight[t].item() * sum(max(0.0, 0.7 - row[t] + row[i]) ** p for i in range(4) if i != t) / 4
        for row, t in zip(x.tolist(), target.tolist(), strict=True)
    ]
    expected = {"none": losses, "mean": sum(losses) / 5, "sum": sum(losses)}[reduction]
    loss = F.multi_margin_loss(x, target, p, 0.7, weight, reduction=reduction)
    numpy.testing.assert_allclose(loss.detach().numpy(), expected)
    check_gradients(lambda x: F.multi_margin_loss(x, target, p, 0.7, weight, reduction=reduction), x)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_several_classes_are_kept_apart_from_the_others(reduction: str) -> None:
    x, target = scores(3, 4), torch.tensor([[0, 3, -1, 1], [2, 2, -1, 0], [-1, 1, 1, 1]])
    labels = [[0, 3], [2, 2], []]
    losses = [
        sum(max(0.0, 1 - row[j] + row[i]) for j in wanted for i in range(4) if i not in wanted) / 4
        for row, wanted in zip(x.tolist(), labels, strict=True)
    ]
    expected = {"none": losses, "mean": sum(losses) / 3, "sum": sum(losses)}[reduction]
    loss = F.multilabel_margin_loss(x, target, reduction=reduction)
    numpy.testing.assert_allclose(loss.detach().numpy(), expected)
    check_gradients(lambda x: F.multilabel_margin_loss(x, target, reduction=reduction), x)


def test_a_hinge_that_is_nan_is_none() -> None:
    x = torch.tensor([[0.0, 1.0, float("nan"), 3.0]], requires_grad=True)
    loss = F.multilabel_margin_loss(x, torch.tensor([[1, 2, -1, -1]]))
    loss.backward()
    assert loss.item() == 0.75
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, -0.25, 0.0, 0.25]]


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances_of_pairs(p: float) -> None:
    x = scores(5, 3)
    rows = x.detach().numpy()
    expected = [numpy.linalg.norm(rows[i] - rows[j], p) for i in range(5) for j in range(i + 1, 5)]
    numpy.testing.assert_allclose(torch.pdist(x, p).detach().numpy(), expected)
    check_gradients(lambda x: torch.pdist(x, p), x)


def test_what_is_linear_in_each_of_two() -> None:
    first, second, weight, bias = scores(2, 3), scores(2, 4), scores(5, 3, 4), scores(5)
    expected = (
        numpy.einsum("ni,oij,nj->no", *(t.detach().numpy() for t in (first, weight, second))) + bias.detach().numpy()
    )
    numpy.testing.assert_allclose(F.bilinear(first, second, weight, bias).detach().numpy(), expected)
    check_gradients(F.bilinear, first, second, weight, bias)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_targets_out_of_range(reduction):
    x = torch.rand(4, 3)
    for wrong in (-1, 3):
        target = torch.tensor([0, 1, wrong, 2])
        with pytest.raises(RuntimeError, match="target out of range"):
            F.multi_margin_loss(x, target, reduction=reduction)
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
            F.nll_loss(x, target, torch.rand(3), reduction=reduction)


def test_the_largest_rows_of_many_bags_have_the_values_and_gradients_of_gathered_rows():
    table, bags = torch.randn(300, 64, requires_grad=True), torch.randint(0, 300, (600, 20))
    expected = F.embedding(bags, table).max(1).values
    found = F.embedding_bag(bags, table, mode="max")
    direction = torch.randn(600, 64)
    assert found.equal(expected)
    assert torch.autograd.grad(found, table, direction)[0].equal(torch.autograd.grad(expected, table, direction)[0])


def test_a_score_without_dimensions_has_no_margin():
    assert F.multi_margin_loss(torch.tensor(2.0), torch.tensor(0)).item() == 0

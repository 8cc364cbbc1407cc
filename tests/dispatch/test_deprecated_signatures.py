"""Calls with deprecated signatures, and the warnings about them."""

import warnings

import pytest

import adjoint as torch

CALLS = {
    "add": (lambda x, y: x.add(2, y), lambda x, y: x.add(y, alpha=2)),
    "add_": (lambda x, y: x.add_(2, y), lambda x, y: x.add_(y, alpha=2)),
    "function": (lambda x, y: torch.sub(x, 2, y), lambda x, y: torch.sub(x, y, alpha=2)),
    "addcmul_": (lambda x, y: x.addcmul_(3, y, y), lambda x, y: x.addcmul_(y, y, value=3)),
    "addcdiv": (lambda x, y: torch.addcdiv(x, 3, y, y), lambda x, y: torch.addcdiv(x, y, y, value=3)),
    "addr": (lambda x, y: x.diag().addr(2, y, y), lambda x, y: x.diag().addr(y, y, beta=2)),
    "addmm": (
        lambda x, y: torch.addmm(2, x.diag(), 3, y.diag(), y.diag()),
        lambda x, y: torch.addmm(x.diag(), y.diag(), y.diag(), beta=2, alpha=3),
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:This overload")
def test_numbers_may_stand_before_tensors(name):
    former, present = CALLS[name]
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    assert torch.equal(former(x.clone(), y), present(x.clone(), y))


def test_the_first_such_call_warns(monkeypatch):
    monkeypatch.setattr("adjoint._runtime.tracebacks._given", set())
    x = torch.ones(2)
    with pytest.warns(
        UserWarning, match=r"This overload of add_ is deprecated:\n\tadd_\(Number alpha, Tensor other\)"
    ) as found:
        x.add_(2, x.clone())
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.add_(2, x.clone())


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.add(2, 3),
        lambda x: x.add(2, x, alpha=3),
        lambda x: x.add(2, 3, x),
        lambda x: x.add(x, 2),
        lambda x: x.addcmul(x, x, 2),
    ],
)
def test_no_other_form_is_taken(call):
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        call(torch.ones(2))


@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_dimensions_are_kept_only_where_they_are_named(name):
    x = torch.ones(2, 3)
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        getattr(x, name)(keepdim=True)
    assert getattr(x, name)(0, keepdim=True).shape == (1, 3)
    assert getattr(x, name)(0, True).shape == (1, 3)

"""Optimizers that temporarily use other parameters and another state."""

from copy import deepcopy

import pytest

import adjoint as torch
from adjoint.optim._stateless import swap_in_optimizer_params_and_state as swap_in


@pytest.fixture
def given():
    params = [torch.full((2,), 1.0, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)]
    optimizer = torch.optim.Adam([{"params": params[:1], "lr": 0.5}, {"params": params[1:]}], lr=0.25)
    for param in params:
        param.grad = torch.ones_like(param)
    optimizer.step()
    others = {"a": torch.zeros(2), "b": torch.zeros(3)}
    return optimizer, others, deepcopy(optimizer.state_dict())


def test_steps_change_the_given_tensors_and_nothing_of_the_optimizer(given):
    optimizer, others, state = given
    own, groups, before = optimizer.state, optimizer.param_groups, deepcopy(optimizer.state_dict())
    with swap_in(optimizer, others, state):
        assert [group["params"][0] for group in optimizer.param_groups] == list(others.values())
        for other in others.values():
            other.grad = torch.ones_like(other)
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 7.0
        optimizer.state[others["a"]]["new"] = 1
    assert (others["a"] < 0).all()
    assert state["state"][0]["step"] == 2
    assert state["param_groups"][0]["lr"] == 0.5
    assert "new" not in state["state"][0]
    assert optimizer.state is own
    assert optimizer.param_groups is groups
    assert str(optimizer.state_dict()) == str(before)


def test_an_error_restores_the_optimizer_and_a_parameter_may_lack_state(given):
    optimizer, others, state = given
    own, groups = optimizer.state, optimizer.param_groups
    del state["state"][1]
    with pytest.raises(KeyError, match="missing"), swap_in(optimizer, others, state):
        optimizer.state[others["b"]]["missing"]
    assert optimizer.state is own
    assert optimizer.param_groups is groups


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: [], "requires a DCP-style optimizer state_dict"),
        (lambda state: {**state, "state": []}, r"\['state'\] to be a dict .* got list"),
        (lambda state: {**state, "param_groups": {}}, r"\['param_groups'\] to be a list .* got dict"),
        (lambda state: {**state, "param_groups": []}, "a different number of parameter groups"),
        (
            lambda state: state["param_groups"][1].update(params=[1, 2]),
            "param group 1 has a different number of params",
        ),
        (lambda state: state["param_groups"][0].update(params=["a"]), "entries keyed by packed parameter ids"),
        (lambda state: state["param_groups"][0].update(more=1), r"in swap-in: \['more'\]. Keys only in live: \[\]"),
        (lambda state: state["param_groups"][0].pop("lr") and None, r"Keys only in live: \['lr'\]"),
        (lambda state: state["state"].update(more={}), r"got extra keys \['more'\]"),
        (lambda state: state["state"].update({torch.tensor(0): {}}), "state keyed by packed parameter ids"),
        (lambda state: state["state"].update({0: 1}), "per-parameter optimizer state entries to be dictionaries"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(given, change, message):
    optimizer, others, state = given
    changed = change(state)
    with pytest.raises(RuntimeError, match=message), swap_in(optimizer, others, state if changed is None else changed):
        pass


def test_too_few_parameters_and_an_optimizer_without_state_are_refused(given):
    optimizer, others, state = given
    ordering = pytest.raises(RuntimeError, match=r"match optimizer\.param_groups ordering")
    with ordering, swap_in(optimizer, {"a": others["a"]}, state):
        pass
    fresh = torch.optim.SGD(list(others.values()), lr=0.1)
    uninitialized = pytest.raises(RuntimeError, match="requires initialized optimizer state")
    with uninitialized, swap_in(fresh, others, fresh.state_dict()):
        pass

"""Clipping of the gradients of a model, and conversion of its parameters to one vector."""

import math

import pytest

import adjoint as torch

utils = torch.nn.utils


@pytest.fixture
def params():
    params = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))]
    params[0].grad, params[1].grad = torch.tensor([3.0, 0.0]), torch.tensor([-4.0])
    return params


def test_clipping_by_norm(params):
    assert utils.clip_grad_norm_(params, 1.0).item() == 5
    assert params[0].grad.tolist() == pytest.approx([0.6, 0])
    assert params[1].grad.item() == pytest.approx(-0.8)


def test_small_gradients_are_left_alone(params):
    utils.clip_grad_norm_(params, 10.0)
    assert params[0].grad.tolist() == [3, 0]


def test_other_norms(params):
    grads = [param.grad for param in params]
    assert utils.get_total_norm(grads, 1).item() == 7
    assert utils.get_total_norm(grads, math.inf).item() == 4
    assert utils.clip_grad_norm_([], 1.0).item() == 0


def test_a_norm_that_is_not_finite(params):
    params[0].grad[0] = math.nan
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert params[1].grad.item() == -4


def test_clipping_by_value(params):
    utils.clip_grad_value_(params, 2.0)
    assert params[0].grad.tolist() == [2, 0]
    assert params[1].grad.item() == -2


def test_parameters_as_a_vector(params):
    utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), params)
    assert utils.parameters_to_vector(params).tolist() == [1, 2, 3]
    assert params[0].tolist() == [1, 2]

"""Calls of modules with other parameters, by the older names in `torch.nn.utils.stateless`."""

import pytest

import adjoint as torch

stateless = torch.nn.utils.stateless


def test_functional_call_warns_of_its_name():
    layer = torch.nn.Linear(2, 1)
    with pytest.warns(
        FutureWarning, match=r"`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0"
    ):
        result = stateless.functional_call(layer, {"weight": torch.zeros(1, 2)}, torch.ones(1, 2))
    assert torch.equal(result[0], layer.bias)


def test_parameters_are_others_within_a_block():
    layer = torch.nn.Linear(2, 1)
    own = layer.weight
    with stateless._reparametrize_module(layer, {"weight": torch.zeros(1, 2)}):
        assert torch.equal(layer(torch.ones(2)), layer.bias)
    assert layer.weight is own
    with (
        pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias'"),
        stateless._reparametrize_module(layer, {"weight": own}, strict=True),
    ):
        pass

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


def test_tensors_replace_attributes_that_modules_lack():
    class Shifted(torch.nn.Module):
        def forward(self, x):
            return x + self.shift

    model = Shifted()
    assert torch.func.functional_call(model, {"shift": torch.ones(1)}, torch.ones(1)).item() == 2
    assert not hasattr(model, "shift")
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'shift'"):
        torch.func.functional_call(model, {"shift": torch.ones(1)}, torch.ones(1), strict=True)
    model.shift = 1.0
    with pytest.raises(TypeError, match=r"attribute `shift`: 1\.0 is not an instance"):
        torch.func.functional_call(model, {"shift": torch.ones(1)}, torch.ones(1))


def test_modules_that_contain_themselves_are_called_without_ties():
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
    model[0].owner = model
    weight = torch.tensor([[3.0]])
    given = {"0.owner.0.weight": weight}
    assert torch.nn.utils.stateless._functional_call(model, given, torch.ones(1), tie_weights=False).item() == 3

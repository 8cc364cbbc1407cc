"""Parametrizations whose tensors change in place or exchange their contents, and their errors."""

from copy import deepcopy

import pytest

import adjoint as torch
from adjoint.nn.utils import parametrizations, parametrize


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def layer():
    made = torch.nn.Linear(1, 1, bias=False)
    made.weight.data.fill_(4)
    made.weight.grad = torch.ones(1, 1)
    return made, made.weight


@pytest.mark.usefixtures("swapping")
def test_exchanged_tensors_remain_the_same_objects_and_lose_their_gradients():
    module, weight = layer()
    parametrize.register_parametrization(module, "weight", Doubled())
    assert module.parametrizations.weight.original is weight
    assert (weight.item(), weight.grad, weight.requires_grad) == (2, None, True)
    weight.grad = torch.ones(1, 1)
    module.weight = torch.full((1, 1), 10.0)
    assert (weight.item(), weight.grad) == (5, None)
    parametrize.remove_parametrizations(module, "weight")
    assert module.weight is weight
    assert weight.item() == 10


def test_tensors_keep_their_gradients_otherwise():
    module, weight = layer()
    parametrize.register_parametrization(module, "weight", Doubled())
    module.weight = torch.full((1, 1), 10.0)
    parametrize.remove_parametrizations(module, "weight")
    assert module.weight is weight
    assert (weight.item(), weight.grad.item()) == (10, 1)


def test_a_right_inverse_on_another_device_is_refused():
    class Moved(Doubled):
        def right_inverse(self, x):
            return x.to("meta")

    with pytest.raises(ValueError, match=r"may not change the device\.\noriginal.device: cpu\n.*: meta"):
        parametrize.register_parametrization(layer()[0], "weight", Moved())


def test_a_value_that_the_stored_tensor_cannot_take_is_refused():
    class Double(torch.nn.Module):
        def forward(self, x):
            return x.double()

    module = parametrize.register_parametrization(layer()[0], "weight", Double(), unsafe=True)
    with pytest.raises(RuntimeError, match=r"leave_parametrized=True .* requires set_\(\)"):
        parametrize.remove_parametrizations(module, "weight")


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'other'"):
        parametrizations.orthogonal(layer()[0], "other")


def test_an_old_state_of_spectral_normalization_may_contain_both_the_weight_and_the_vector():
    module = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 5))
    state = deepcopy(module.state_dict())
    del state._metadata[""]["spectral_norm"]
    state["weight"] = state["weight_orig"] * 0.5
    assert module.load_state_dict(state) == ([], [])
    assert (module.weight_u @ module.weight_orig @ module.weight_v).item() == pytest.approx(2, rel=1e-4)

"""Sequences and dictionaries of modules and parameters."""

from collections import OrderedDict

import pytest

import adjoint as torch


def kinds(modules):
    return [type(module).__name__ for module in modules]


@pytest.fixture
def three():
    return torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh(), torch.nn.Sigmoid())


@pytest.mark.thorough
def test_sequential_calls_in_order():
    net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Softplus())
    assert net(torch.tensor(-5.0)).item() == pytest.approx(0.6931472)
    assert torch.nn.Sequential()(3) == 3


def test_sequential_is_a_sequence(three):
    assert len(three) == 3
    assert kinds([three[0], three[-1]]) == ["ReLU", "Sigmoid"]
    assert kinds(three[1:]) == ["Tanh", "Sigmoid"]
    assert kinds(three + three[:1]) == ["ReLU", "Tanh", "Sigmoid", "ReLU"]
    assert kinds(three * 2) == ["ReLU", "Tanh", "Sigmoid"] * 2
    with pytest.raises(IndexError, match="index 3 is out of range"):
        three[3]


def test_sequential_changes(three):
    three.append(torch.nn.Identity()).insert(1, torch.nn.Flatten())
    assert kinds(three) == ["ReLU", "Flatten", "Tanh", "Sigmoid", "Identity"]
    assert kinds([three.pop(0)]) == ["ReLU"]
    del three[-1]
    three[0] = torch.nn.GELU()
    three.extend([torch.nn.ELU()])
    assert kinds(three) == ["GELU", "Tanh", "Sigmoid", "ELU"]
    assert [name for name, _ in three.named_children()] == ["0", "1", "2", "3"]


def test_sequential_with_names():
    net = torch.nn.Sequential(OrderedDict(first=torch.nn.ReLU(), second=torch.nn.Tanh()))
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert net.first is net[0]


def test_module_list():
    layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(3))
    layers += [torch.nn.ReLU()]
    layers.insert(0, torch.nn.Tanh())
    assert kinds(layers) == ["Tanh", "Linear", "Linear", "Linear", "ReLU"]
    assert len(list(layers.parameters())) == 6
    assert kinds(layers[::-2]) == ["ReLU", "Linear", "Tanh"]
    with pytest.raises(NotImplementedError, match=r'Module \[ModuleList\] is missing the required "forward" function'):
        layers(1)


def test_module_list_prints_runs_once():
    layers = torch.nn.ModuleList([*(torch.nn.Linear(1, 2) for _ in range(2)), torch.nn.ReLU()])
    assert repr(layers) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=2, bias=True)\n  (2): ReLU()\n)"
    )


def test_module_dict():
    branches = torch.nn.ModuleDict({"a": torch.nn.ReLU()})
    branches["b"] = torch.nn.Tanh()
    branches.update([("c", torch.nn.ELU())])
    assert list(branches) == ["a", "b", "c"]
    assert kinds([branches.pop("a")]) == ["ReLU"]
    assert "a" not in branches
    with pytest.raises(KeyError, match="already exists"):
        branches["keys"] = torch.nn.ReLU()


def test_parameter_list():
    params = torch.nn.ParameterList([torch.ones(2), 3])
    params.append(torch.nn.Parameter(torch.ones(1, 3)))
    assert isinstance(params[0], torch.nn.Parameter)
    assert params[1] == 3
    assert [name for name, _ in params.named_parameters()] == ["0", "2"]
    assert repr(params) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2]\n"
        "    (1): Object of type: int\n"
        "    (2): Parameter containing: [torch.float32 of size 1x3]\n"
        ")"
    )
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        params(1)


def test_parameter_dict():
    params = torch.nn.ParameterDict({"w": torch.ones(2)})
    params["b"] = torch.zeros(1)
    assert list(params.state_dict()) == ["w", "b"]
    assert isinstance(params.get("w"), torch.nn.Parameter)
    assert params.get("x", 5) == 5
    assert list((params | {"x": torch.ones(1)}).keys()) == ["w", "b", "x"]
    assert params.popitem()[0] == "b"
    params.clear()
    assert repr(params) == "ParameterDict()"

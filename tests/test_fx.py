"""Graphs of calls: traced, changed, copied, run."""

import copy
import operator
import pickle

import pytest

import adjoint as torch
import adjoint.nn.functional as F
from adjoint import fx, nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.layers = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(5))
        self.register_buffer("shift", torch.ones(5))

    def forward(self, x, negate=True, *, k=2):
        y = F.relu(self.norm(self.conv(x)), inplace=True).mean((2, 3))
        y = self.layers(y) * self.scale + self.shift
        a, b = y.chunk(2, dim=1)
        z = torch.cat([a, b], -1).view(y.shape[0], -1) + k
        if negate:
            z = -z
        z += 1
        return {"out": z[:, 1:], "pair": (z.softmax(dim=-1), torch.tensor(1.0) * z)}


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model().eval()


X = torch.linspace(-1, 1, 216).view(2, 3, 6, 6)


def test_a_traced_module_does_the_same(model):
    traced, expected = fx.symbolic_trace(model, concrete_args={"negate": True}), model(X)
    assert torch.equal(traced(X)["out"], expected["out"])
    assert "relu = torch.nn.functional.relu(norm, inplace = True)" in traced.code
    assert 'layers_0 = getattr(self.layers, "0")(mean)' in traced.code
    traced(X)["out"].sum().backward()
    assert traced.scale.grad is not None
    with pytest.raises(AssertionError, match="negate has been specialized"):
        traced(X, False)


def test_graphs_are_changed_copied_and_pickled(model):
    traced = fx.symbolic_trace(model, concrete_args={"negate": True})
    for node in traced.graph.find_nodes(op="call_function", target=F.relu):
        with traced.graph.inserting_after(node):
            node.replace_all_uses_with(traced.graph.call_function(torch.sigmoid, (node.args[0],)))
        traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    result = traced(X)["out"]
    assert not torch.equal(result, model(X)["out"])
    for other in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), copy.copy(traced)):
        assert torch.equal(other(X)["out"], result)


def test_interpreters_and_transformers_change_what_nodes_do(model):
    traced = fx.symbolic_trace(model, concrete_args={"negate": True})

    class Sigmoid(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(*((torch.tanh, args[:1], {}) if target is F.relu else (target, args, kwargs)))

    class Rewritten(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(*((torch.tanh, args[:1], {}) if target is F.relu else (target, args, kwargs)))

    changed = Rewritten(traced).transform()
    assert "torch.tanh(norm)" in changed.code
    assert torch.equal(changed(X)["out"], Sigmoid(traced).run(X, True, 2)["out"])


def test_programs_that_ask_for_values_are_refused():
    with pytest.raises(fx.TraceError, match="cannot be used as inputs to control flow"):
        fx.symbolic_trace(lambda x: 1 if x.sum() > 0 else 2)
    with pytest.raises(fx.TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: list(x))


def test_variadic_functions_are_traced():
    def total(x, *args, factor=2, **kwargs):
        return x * factor + args[0]

    traced = fx.symbolic_trace(total)
    assert [node.target for node in traced.graph.find_nodes(op="placeholder")] == ["x", "*args", "factor", "**kwargs"]


def test_parts_of_graphs_are_replaced():
    traced = fx.symbolic_trace(lambda x, y: torch.add(x, y) * 2 + torch.add(y, x.relu()))
    matches = fx.replace_pattern(traced, lambda a, b: torch.add(a, b), lambda a, b: a - b)
    assert [[str(node) for node in match.nodes_map.values()] for match in matches] == [
        ["add", "x", "y"],
        ["add_1", "y", "relu"],
    ]
    x, y = torch.tensor([2.0]), torch.tensor([5.0])
    assert traced(x, y).item() == -3 * 2 + 3
    assert fx.replace_pattern(traced, lambda a: a.sigmoid(), lambda a: a) == []

    chained = fx.symbolic_trace(lambda x: x.relu().relu().relu())
    assert len(fx.replace_pattern(chained, lambda a: a.relu().relu(), lambda a: a.neg())) == 1  # parts do not overlap
    assert chained(x).item() == 0

    def shares(x):
        part = x.relu()
        return part.neg() + part

    used_elsewhere = fx.symbolic_trace(shares)
    assert fx.replace_pattern(used_elsewhere, lambda a: a.relu().neg(), lambda a: a.abs()) == []
    assert repr(used_elsewhere) == "shares()"
    with pytest.raises(AssertionError, match="the pattern has 1 parameters, and the replacement has 2"):
        fx.replace_pattern(used_elsewhere, lambda a: a.neg(), lambda a, b: a)


def test_graphs_are_made_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    unused = graph.call_function(operator.add, (x, 1))
    graph.output(graph.call_method("view", (x, -1)))
    module = fx.GraphModule({}, graph)
    assert module(torch.ones(2, 2)).shape == (4,)
    with pytest.raises(RuntimeError, match="still had 2 users"):
        graph.erase_node(x)
    graph.erase_node(unused)
    assert len(graph.nodes) == 3
    assert next(iter(graph.nodes)).op == "placeholder"

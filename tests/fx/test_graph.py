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
    assert [node.target for node in traced.graph.find_nodes(op="placeholder")] == ["x", "factor", "*args", "**kwargs"]


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
    assert (
        len(fx.replace_pattern(chained, lambda a: a.relu().relu(), lambda a: a.neg())) == 1
    )  # the matched parts do not overlap
    assert chained(x).item() == 0

    def shares(x):
        part = x.relu()
        return part.neg() + part

    used_elsewhere = fx.symbolic_trace(shares)
    assert fx.replace_pattern(used_elsewhere, lambda a: a.relu().neg(), lambda a: a.abs()) == []
    assert repr(used_elsewhere) == "shares()"
    with pytest.raises(AssertionError, match="Placeholder count mismatch: 1 vs 2"):
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


def lines(traced):
    return [line.split(";")[0].strip() for line in traced.code.strip().splitlines()[1:]]


REPLACED = {
    "each place": (
        lambda x, y: torch.cat([x, y]).sum() + torch.cat([y, x]).sum(),
        lambda a, b: torch.cat([a, b]).sum(),
        lambda a, b: torch.stack([a, b]),
        ["stack = torch.stack([x, y])", "stack_1 = torch.stack([y, x])", "add = stack + stack_1", "return add"],
    ),
    "places that overlap": (
        lambda x: torch.relu(torch.relu(torch.relu(x))),
        lambda x: torch.relu(torch.relu(x)),
        lambda x: torch.sigmoid(x),
        ["sigmoid = torch.sigmoid(x)", "relu_2 = torch.relu(sigmoid)", "return relu_2"],
    ),
    "places one behind the other": (
        lambda x: torch.relu(torch.relu(x)),
        lambda x: torch.relu(x),
        lambda x: torch.sigmoid(x),
        ["sigmoid = torch.sigmoid(x)", "sigmoid_1 = torch.sigmoid(sigmoid)", "return sigmoid_1"],
    ),
    "a value that others use": (
        lambda x: (lambda negative: negative + negative.relu())(x.neg()),
        lambda x: x.neg().relu(),
        lambda x: x.abs(),
        ["neg = x.neg()", "relu = neg.relu()", "add = neg + relu", "return add"],
    ),
    "two results": (
        lambda x, y: x.sin() * y.cos(),
        lambda x, y: (x.sin(), y.cos()),
        lambda x, y: (x.tan(), y.tanh()),
        ["tan = x.tan()", "tanh = y.tanh()", "mul = tan * tanh", "return mul"],
    ),
    "numbers": (
        lambda x: (x + 1, x + 1.0, x + True, x[0:2]),
        lambda x: x + 1,
        lambda x: x.sin(),
        ["add_1 = x + 1.0", "add_2 = x + True", "getitem = x[slice(0, 2, None)]", "sin = x.sin()"]
        + ["return (sin, add_1, add_2, getitem)"],
    ),
    "an argument that is a number": (
        lambda x: torch.sum(x, 1),
        lambda x, d: torch.sum(x, d),
        lambda x, d: x.mean(d),
        ["mean = x.mean(1)", "return mean"],
    ),
    "different arguments, one value": (
        lambda x: torch.mul(x, x),
        lambda x, y: torch.mul(x, y),
        lambda x, y: x - y,
        ["mul = torch.mul(x, x)", "return mul"],
    ),
    "nothing instead": (lambda x: x.relu().sin(), lambda x: x.relu(), lambda x: x, ["sin = x.sin()", "return sin"]),
    "no result used": (
        lambda x: (x.relu_(), x)[1],
        lambda x: x.relu_(),
        lambda x: x.sin_(),
        ["sin_ = x.sin_()", "return x"],
    ),
}


@pytest.mark.parametrize("case", REPLACED)
def test_patterns_are_replaced_as_in_pytorch(case):
    program, pattern, replacement, expected = REPLACED[case]
    traced = fx.symbolic_trace(program)
    fx.replace_pattern(traced, pattern, replacement)
    assert lines(traced) == expected


def test_what_only_the_replacement_has_is_copied():
    class Layer(nn.Module):
        def __init__(self, after, **more):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.add_module(after, nn.Tanh())
            self.after = after
            for name, value in more.items():
                setattr(self, name, value)

        def forward(self, x):
            x = getattr(self, self.after)(self.linear(x))
            return x * self.scale if hasattr(self, "scale") else x

    traced, other = fx.symbolic_trace(Layer("relu")), Layer("tanh", scale=nn.Parameter(torch.ones(3)))
    linear = traced.linear
    (match,) = fx.replace_pattern(traced, Layer("relu"), other)
    assert [name for name, _ in traced.named_modules()] == ["", "linear", "tanh"]
    assert [name for name, _ in traced.named_parameters()] == ["scale", "linear.weight", "linear.bias"]
    assert traced.linear is linear
    assert [(str(a), str(b)) for a, b in match.nodes_map.items()] == [
        ("relu", "relu"),
        ("linear", "linear"),
        ("x", "x"),
    ]


def test_replacements_are_filtered_and_made_for_each_match():
    rewriter = fx.subgraph_rewriter
    program = lambda x: torch.add(x, 1) * torch.add(x, 2)

    def made(match, graph, pattern):
        assert [str(node) for node in match.returning_nodes] in (["add"], ["add_1"])
        return fx.symbolic_trace(lambda x: x.sin()).graph

    traced = fx.symbolic_trace(program)
    pattern = lambda x: torch.add(x, 5)
    assert rewriter.replace_pattern_with_filters(traced, pattern, None, ignore_literals=False) == []
    (_, second) = rewriter.replace_pattern_with_filters(
        traced, pattern, ignore_literals=True, replacement_callback=made
    )
    assert [str(node) for node in second.replacements] == ["sin_1"]
    assert lines(traced) == ["sin = x.sin()", "sin_1 = x.sin()", "mul = sin * sin_1", "return mul"]

    traced = fx.symbolic_trace(program)
    second_only = lambda match, graph, pattern: str(match.returning_nodes[0]) == "add_1"
    rewriter.replace_pattern_with_filters(traced, pattern, lambda x: x - 5, [second_only], ignore_literals=True)
    assert lines(traced) == ["add = torch.add(x, 1)", "sub = x - 5", "mul = add * sub", "return mul"]


def test_replacements_of_another_form_are_refused():
    refused = [
        (lambda x, y: x * y, "Placeholder count mismatch: 1 vs 2"),
        (lambda x: (x, x), "Returning nodes count mismatch: 1 vs 2"),
    ]
    for replacement, message in refused:
        with pytest.raises(AssertionError, match=message):
            fx.replace_pattern(fx.symbolic_trace(lambda x: x.relu()), lambda x: x.relu(), replacement)


def test_operators_of_a_derivative_become_a_graph():
    from adjoint.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

    modes = []

    def loss(weights, x):
        modes.append(get_proxy_mode())
        return (x @ weights["w"]).relu().sum()

    weights, x = {"w": torch.randn(3, 2)}, torch.randn(4, 3)
    step = torch.func.grad(loss)
    graph = make_fx(step)(weights, x)
    assert modes[0] is not None and get_proxy_mode() is None
    assert "threshold_backward" in [node.name for node in graph.graph.nodes]
    other = torch.randn(4, 3)
    assert torch.equal(graph(weights, other)["w"], step(weights, other)["w"])


def test_a_graph_draws_dropout_anew():
    from adjoint.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: torch.nn.functional.dropout(x))(torch.ones(100))
    assert not torch.equal(graph(torch.ones(100)), graph(torch.ones(100)))


def test_annotations_of_parameters_are_shown():
    def scaled(x: torch.Tensor, k: int = 2, *, sizes: list[int] = ()):
        return x * k

    traced = fx.symbolic_trace(scaled)
    assert "%k : int [num_users=1] = placeholder[target=k](default=2)" in str(traced.graph)
    assert "%sizes : list[int] [num_users=0]" in str(traced.graph)
    assert "def forward(self, x : torch.Tensor, k : int = 2, sizes : list[int] = ()):" in traced.code
    assert fx.symbolic_trace(traced).code == traced.code


def test_shapes_are_stored_in_nodes():
    from adjoint.fx.passes.shape_prop import ShapeProp

    traced = fx.symbolic_trace(lambda x: (x.t().unbind(), x.shape[0]))
    ShapeProp(traced).propagate(torch.ones(2, 3, dtype=torch.float64))
    metadata = {node.name: node.meta.get("tensor_meta") for node in traced.graph.nodes}
    assert (metadata["t"].shape, metadata["t"].stride, metadata["t"].memory_format) == ((3, 2), (1, 3), None)
    assert metadata["x"].memory_format is torch.contiguous_format
    assert [each.dtype for each in metadata["unbind"]] == [torch.float64] * 3
    assert metadata["getattr_1"] is None
    failing = fx.symbolic_trace(lambda x: x.view(-1) @ torch.ones(3))
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%matmul"):
        ShapeProp(failing).propagate(torch.ones(2, 2))

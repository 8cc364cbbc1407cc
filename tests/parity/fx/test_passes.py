"""Graphs are divided, fused and named as in PyTorch: the code of all modules is the same."""

import importlib
import warnings

import pytest

import adjoint

torch = pytest.importorskip("torch")


def model(m):
    class Model(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = m.nn.Linear(3, 3)
            self.scale = m.nn.Parameter(m.ones(3))
            self.register_buffer("shift", m.ones(3))
            self.rest = m.nn.Sequential(m.nn.ReLU(), m.nn.Linear(3, 3))

        def forward(self, x, y, k=3):
            z = self.first(x + self.scale)
            w = self.rest(z) + y
            v = m.relu(w) * z + k
            return v.sum(dim=-1), w + self.shift

    return Model()


def code_of(module):
    """Return the code of a module and of its submodules."""
    parts = [module.code]
    for name, child in module.named_children():
        if hasattr(child, "graph"):
            parts += [name, child.code, [each for each, _ in child.named_children()]]
    return parts


def every(count):
    """Return a policy that puts `count` consecutive nodes into each partition."""

    def policy(traced):
        place = {node: number for number, node in enumerate(traced.graph.nodes)}
        return lambda node: place[node] // count

    return policy


def divided(m, policy, **options):
    split_module = importlib.import_module(f"{m.__name__}.fx.passes.split_module").split_module
    original = model(m)
    traced, names = m.fx.symbolic_trace(original), {}
    for node in traced.graph.nodes:
        node.meta["origin"] = node.name
    found = split_module(traced, original, policy(traced), names, **options)
    x, y = m.ones(2, 3), m.ones(2, 3)
    for mine, theirs in zip(found(x, y), original(x, y), strict=True):
        assert m.equal(mine, theirs)
    origins = [
        [(node.name, node.meta.get("origin")) for node in each.graph.nodes] for each in (found, *found.children())
    ]
    return code_of(found), names, origins, sorted(found.state_dict())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keep_original_node_name": True},
        {"keep_original_input_name": False},
        {"partition_affix": "part"},
        {"tuple_return": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_graphs_are_divided_as_in_pytorch(count, options):
    assert divided(adjoint, every(count), **options) == divided(torch, every(count), **options)


def test_partitions_in_the_original_order():
    options = {"keep_original_order": True}
    assert divided(adjoint, every(3), **options) == divided(torch, every(3), **options)


@pytest.mark.parametrize("m", [adjoint, torch], ids=["adjoint", "torch"])
def test_partitions_that_depend_on_each_other_are_refused(m):
    with pytest.raises(RuntimeError, match="cycle exists between partitions!"):
        divided(m, lambda traced: lambda node: int(node.op == "call_module"))


def fused(m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's module uses deprecated functions
        optimization = importlib.import_module(f"{m.__name__}.fx.experimental.optimization")
    layers = [m.nn.Conv2d(1, 2, 3), m.nn.BatchNorm2d(2), m.nn.ReLU(), m.nn.Conv2d(2, 2, 1, bias=False)]
    layers += [m.nn.BatchNorm2d(2), m.nn.Dropout(), m.nn.Flatten(), m.nn.Linear(8, 2), m.nn.BatchNorm1d(2)]
    layers = m.nn.Sequential(*layers).eval()
    x = m.ones(2, 1, 4, 4)
    found = optimization.fuse(layers)
    assert m.allclose(found(x), layers(x), atol=1e-5)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        optimization.fuse(m.nn.Sequential(m.nn.Conv2d(1, 2, 3), m.nn.BatchNorm2d(2)))
    return found.code, list(found.state_dict()), optimization.remove_dropout(layers).code


def test_layers_are_fused_as_in_pytorch():
    assert fused(adjoint) == fused(torch)


@pytest.mark.parametrize(
    "names",
    [
        ("add_1", "add", "add"),
        ("add_3", "add_3", "add", "add"),
        ("x_1_1", "x_1", "x"),
        ("add_01", "add_01", "add_1"),
        ("self", "self", "for", "len"),
    ],
    ids=str,
)
def test_nodes_get_the_names_of_pytorch(names):
    graphs = [m.fx.Graph() for m in (adjoint, torch)]
    mine, theirs = ([graph.placeholder(name).name for name in names] for graph in graphs)
    assert mine == theirs

"""What a trace records: parameters, annotations, wrapped functions, fixed arguments, and what it refuses."""

import math
import pickle
import typing
from typing import NamedTuple

import pytest

import adjoint as torch
from adjoint import fx, nn


def weighted(pair, scale):
    return pair[0] + pair[1] * scale


fx.wrap("weighted")


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Both(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def added(self, other):
        return Both(self.left + other.left, self.right + other.right)


class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3))

    def forward(self, x):
        return x @ self.weight.t()


def test_methods_of_parameters_are_recorded_and_see_later_changes():
    model = Weights()
    traced = fx.symbolic_trace(model)
    with torch.no_grad():
        model.weight.fill_(5.0)
    assert "weight.t()" in traced.code
    assert traced(torch.ones(1, 3)).tolist() == [[15.0, 15.0]]


def test_shapes_of_parameters_can_be_constants():
    class Checked(Weights):
        def forward(self, x):
            return super().forward(x) if self.weight.shape[0] == 2 and self.weight.dim() == 2 else x

    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(Checked())
    tracer = fx.Tracer(param_shapes_constant=True)
    graph = tracer.trace(Checked())
    assert "weight.t()" in fx.GraphModule(tracer.root, graph).code


def test_wrapped_functions_stay_calls_when_a_graph_is_traced_again():
    traced = fx.symbolic_trace(lambda y: weighted((2, y), 3) + weighted((1, 2), 3))
    assert traced(4) == 14 + 7
    assert traced.code.count("weighted((2, y), 3)") == 1, "an item of a tuple is a stand-in"
    assert 'wrap("' in traced.code
    assert "weighted" in fx.symbolic_trace(traced).code


def test_annotations_are_written():
    def selected(x: torch.Tensor, k: typing.Optional[list[int]] = None) -> tuple[torch.Tensor, int | None]:  # noqa: UP045
        return x, None

    traced = fx.symbolic_trace(selected)
    expected = "x : torch.Tensor, k : typing_Union[list[int],NoneType] = None) -> tuple[torch.Tensor,int|NoneType]:"
    assert expected in traced.code
    assert traced(1) == (1, None)


def test_the_arguments_of_nodes_cannot_be_changed_in_place():
    node = fx.symbolic_trace(lambda x: torch.cat([x, x], dim=0)).graph.find_nodes(op="call_function", target=torch.cat)[
        0
    ]
    for change in (
        lambda: node.args[0].append(1),
        lambda: node.kwargs.update(dim=1),
        lambda: node.args[0].__setitem__(0, 1),
    ):
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    assert type(pickle.loads(pickle.dumps(node.kwargs))) is type(node.kwargs)
    assert torch.utils._pytree.tree_map(lambda x: x, node.kwargs) == {"dim": 0}


def test_names_of_nodes_are_in_lower_case_and_do_not_hide_constants():
    traced = fx.symbolic_trace(lambda A, someName: (A + math.inf) * someName)
    assert [node.name for node in traced.graph.nodes] == ["a", "some_name", "add", "mul", "output"]
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.create_node("call_function", torch.add, (x, math.inf), name="inf"))
    assert fx.GraphModule({}, graph)(torch.ones(1)).item() == math.inf


def test_objects_that_hold_values_become_nodes():
    traced = fx.symbolic_trace(lambda x: Pair(x, x + 1))
    assert isinstance(traced(torch.ones(1)), Pair)
    assert traced.graph.output_node().args[0].target is Pair
    constant = fx.symbolic_trace(lambda x: x.added(Both(torch.ones(1), torch.zeros(1))))
    assert "self._Both_constant_0" in constant.code
    assert constant(Both(torch.ones(1), torch.ones(1))).left.item() == 2


def test_what_a_trace_refuses():
    class Variadic(nn.Module):
        def forward(*args):
            return args[1]

    class Functional(fx.Tracer):
        check_mutable_operations = True

    with pytest.raises(RuntimeError, match="cannot be part of"):
        fx.symbolic_trace(Variadic())
    with pytest.raises(RuntimeError, match="cannot contain a Node"):
        fx.symbolic_trace(lambda x: {x: 1})
    with pytest.raises(RuntimeError, match="mutable operation aten::sigmoid"):
        Functional().trace(lambda x: torch.sigmoid(x, out=torch.ones(1)))
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        fx.symbolic_trace(lambda x, sizes: x, concrete_args={"sizes": (1, 2)})


def test_traces_can_record_where_calls_are():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(lambda x: x + 1)
    assert "x + 1" in graph.output_node().args[0].stack_trace


def test_operators_of_aten_are_targets():
    traced = fx.symbolic_trace(lambda x: torch.ops.aten.add.Tensor(torch.ops.aten.sigmoid(x), 1))
    assert [node.target for node in traced.graph.find_nodes(op="call_function", target=torch.ops.aten.sigmoid)]
    assert traced.graph.output_node().args[0].target is torch.ops.aten.add.Tensor
    assert traced(torch.zeros(1)).item() == 1.5


def test_errors_of_interpreters_name_the_node():
    traced = fx.symbolic_trace(lambda x: x.view(7))
    with pytest.raises(RuntimeError, match=r"(?s)invalid for input.*While executing %view"):
        fx.Interpreter(traced).run(torch.ones(2))


def test_operators_are_written_with_the_modules_that_hold_them_in_pytorch():
    def computed(x):
        y = nn.functional.gelu(nn.functional.linear(x, x)) + nn.functional.conv1d(x[None], x[:, :, None])[0]
        return torch.linalg.inv(y) + torch.fft.fft(torch.einsum("ij->ji", torch.special.erf(x))).real

    traced = fx.symbolic_trace(computed)
    for call in (
        "torch._C._nn.gelu(", "torch._C._nn.linear(", "torch.conv1d(", "torch._C._linalg.linalg_inv(", "torch._C._fft.fft_fft(",
        "torch.functional.einsum(", "torch._C._special.special_erf(",
    ):  # fmt: skip
        assert call in traced.code
    x = torch.tensor([[2.0, 1.0], [0.5, 3.0]])
    assert torch.equal(traced(x), computed(x))

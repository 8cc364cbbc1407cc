"""A snapshot agrees with the live graph in every edge and every saved value."""

import gc
import weakref

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adjoint as torch
from adjoint.inspect import graph
from adjoint.inspect.model import Snapshot
from adjoint.inspect.snapshot import snapshot
from adjoint.inspect.values import SAMPLE, in_short, statistics
from adjoint.tape.hook_handles import HookDict
from tests.inspect.edges import assert_same_edges


def by_name(picture: Snapshot, name: str):
    (found,) = [node for node in picture.nodes if node.name == name]
    return found


def tensor_called(picture: Snapshot, name: str):
    (found,) = [tensor for tensor in picture.tensors if tensor.name == name]
    return found


@st.composite
def programs(draw):
    """Random computations with several results, shared and unused inputs, constants, views, in-place changes, many outputs."""
    leaves = [torch.ones(4, requires_grad=draw(st.booleans()) or number == 0) for number in range(3)]
    pool = list(leaves)
    for _ in range(draw(st.integers(1, 14))):
        a, b = (draw(st.sampled_from(pool)) for _ in range(2))
        kind = draw(st.integers(0, 8))
        if kind == 0:
            pool.append(a * b)
        elif kind == 1:
            pool.append(a + b)
        elif kind == 2:
            pool.append(a.exp())
        elif kind == 3:
            pool.extend(torch.cat([part * 2 for part in a.chunk(2)]).split(4))
        elif kind == 4:
            pool.append(torch.stack([a, b]).sum(0))
        elif kind == 5:
            pool.append(torch.where(a > b, a, b * 3))
        elif kind == 6:
            pool.append(a.view(2, 2).t().reshape(4))
        elif kind == 7:
            values, _ = torch.sort(a - b)
            pool.append(values)
        else:
            changed = a * 1
            changed[1:3] = b[:2]
            pool.append(changed)
    roots = [each for each in pool[-2:] if each.requires_grad]
    return roots or [leaves[0] * 2]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(programs())
def test_edges_are_those_of_next_functions(roots):
    assert_same_edges(snapshot(roots), roots)


def test_edges_of_a_network():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    loss = torch.nn.functional.cross_entropy(model(torch.randn(5, 3)), torch.tensor([0, 1, 0, 1, 1]))
    picture = snapshot([loss], model)
    assert_same_edges(picture, [loss])
    assert {tensor.name for tensor in picture.tensors if tensor.kind == "leaf"} == set(dict(model.named_parameters()))
    assert {node.module for node in picture.nodes} >= {"0", "2", "3"}


def test_kinds_names_and_values():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, 4.0])
    y = w * x
    loss = y.sum()
    picture = graph(loss).snapshot
    assert [tensor.name for tensor in picture.tensors] == ["w", "y", "x", "loss"]
    assert [tensor.kind for tensor in picture.tensors] == ["leaf", "intermediate", "constant", "intermediate"]
    assert tensor_called(picture, "x").data == "[3, 4]"
    assert (tensor_called(picture, "y").data, tensor_called(picture, "y").known) == ("[3, 8]", True)
    assert tensor_called(picture, "w").requires_grad
    assert tensor_called(picture, "w").is_leaf
    assert not tensor_called(picture, "loss").is_leaf
    (multiplication,) = [each for each in picture.operations if each.name == "mul"]
    names = {tensor.id: tensor.name for tensor in picture.tensors}
    assert [names[key] for key in multiplication.inputs] == ["w", "x"]
    node = by_name(picture, "MulBackward0")
    assert node.line.text == "y = w * x"
    assert node.line.function == "test_kinds_names_and_values"
    assert node.formula["self"] == "def grad_self(grad, other):\n    return grad * other.conj()"
    assert picture.title == "graph of loss"


def test_ambiguous_variables_name_nothing():
    w = torch.ones(2, requires_grad=True)
    v = w
    assert v is w
    assert graph(w * 2).snapshot.tensors[0].name is None


@pytest.mark.parametrize("form", [dict, list, iter])
def test_params_in_several_forms(form):
    w, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    pairs = {"layer.weight": w, "layer.bias": b}
    params = pairs if form is dict else form(pairs.items())
    picture = snapshot([w * b], params)
    assert [tensor.name for tensor in picture.tensors if tensor.kind == "leaf"] == ["layer.weight", "layer.bias"]


def test_wrong_arguments_are_refused():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=r"graph\(\): expected tensors, but got int"):
        graph(3)
    with pytest.raises(TypeError, match="expected a Tensor for 'w', but got int"):
        graph(w * 2, params={"w": 3})
    with pytest.raises(TypeError, match="iterable of pairs"):
        graph(w * 2, params=[w])


def test_a_gradient_edge_is_a_root():
    w = torch.ones(2, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(w * 2)
    assert by_name(snapshot([edge]), "MulBackward0").id == snapshot([edge]).tensors[-2].node


def test_leaves_and_constants_alone():
    w, x = torch.ones(2, requires_grad=True), torch.ones(2)
    picture = snapshot([w, x])
    assert [tensor.kind for tensor in picture.tensors] == ["leaf", "constant"]
    assert [node.name for node in picture.nodes] == ["AccumulateGrad"]


# ---------------------------------------------------------------- saved values


def test_freed_after_backward():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = (w.exp() * 2).sum()
    before = snapshot([loss])
    loss.backward()
    after = snapshot([loss])
    assert [node.name for node in after.nodes] == [node.name for node in before.nodes]
    assert [saved.state for saved in by_name(before, "ExpBackward0").saved] == ["ok"]
    assert [saved.state for saved in by_name(after, "ExpBackward0").saved] == ["freed"]
    assert by_name(after, "ExpBackward0").saved[0].shape == [2]
    assert (before.bytes, after.bytes) == (8, 0)
    assert after.tensors[0].grad == in_short(w.grad._array)


def test_stale_after_a_change_in_place():
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    loss = y.sum()
    y.add_(1)
    (saved,) = by_name(snapshot([loss]), "ExpBackward0").saved
    assert (saved.state, saved.version_saved, saved.version_now) == ("stale", 0, 1)
    x = torch.ones(3)
    product = w * x
    x.mul_(2)
    saved = {each.name: each for each in by_name(snapshot([product]), "MulBackward0").saved}
    assert (saved["other"].state, saved["other"].version_now) == ("stale", 1)
    assert saved["self"].state == "none"


def test_packed_is_not_unpacked():
    w = torch.ones(3, requires_grad=True)
    unpacked = []

    def unpack(packed):
        unpacked.append(packed)
        return packed

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.numpy(force=True).copy(), unpack):
        y = w.exp()
    picture = snapshot([y])
    (saved,) = by_name(picture, "ExpBackward0").saved
    assert (saved.state, saved.shape, saved.bytes) == ("packed", [3], 12)
    assert picture.bytes == 12
    assert unpacked == []


def test_custom_functions():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor, y):
            result = x * factor
            ctx.save_for_backward(x, None, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None, None

    w = torch.ones(2, requires_grad=True)
    out = Scaled.apply(w, 2.0, torch.ones(1))
    picture = snapshot([out], {"w": w})
    node = by_name(picture, "ScaledBackward")
    assert node.inputs == ["x", "y"]
    assert [(saved.name, saved.state) for saved in node.saved] == [
        ("saved_tensors[0]", "ok"), ("saved_tensors[1]", "none"), ("saved_tensors[2]", "ok"),
    ]  # fmt: skip
    assert node.saved[0].tensor == picture.tensors[0].id
    assert node.saved[2].tensor == picture.roots[0]
    assert "return grad * 2, None, None" in node.formula["backward"]
    assert picture.operations[0].name == "Scaled"
    out.sum().backward()
    assert [saved.state for saved in by_name(snapshot([out]), "ScaledBackward").saved] == ["freed"]


def test_changing_a_view_in_place():
    w = torch.ones(4, requires_grad=True)
    base = w * 2
    part = base[1:3]
    part.exp_()
    picture = snapshot([base.sum()], {"w": w}, {"base": base, "part": part})
    node = by_name(picture, "CopySlices")
    assert [saved.name for saved in node.saved] == ["result"]
    assert [each.name for each in picture.operations] == ["mul", "exp_", "sum"]
    assert tensor_called(picture, "base").node == node.id


def test_views_say_of_what():
    w = torch.ones(2, 3, requires_grad=True)
    a = w * 2
    b = a.t()
    c = b[0]
    first, second = c.chunk(2)
    picture = graph(first, second).snapshot
    assert all(tensor_called(picture, name).view_of == tensor_called(picture, "a").id for name in ("b", "c", "first"))
    assert tensor_called(picture, "a").view_of is None
    assert tensor_called(picture, "second").output_nr == 1
    assert tensor_called(picture, "b").storage == tensor_called(picture, "a").storage


def test_storage_counts_once():
    w = torch.ones(10, requires_grad=True)
    x = torch.ones(10)
    loss = (w * x).sum() + (w * x.view(2, 5).view(10)).sum() + (w * w).sum() + (w * 3).sum()
    picture = snapshot([loss])
    assert picture.bytes == 40  # the bytes of `x`; `w` is a leaf, and 3 is a number
    assert len({saved.storage for node in picture.nodes for saved in node.saved if saved.storage}) == 2


def test_hooks_in_the_order_in_which_they_run():
    ran = []
    w = torch.ones(2, requires_grad=True)
    y = w * 2

    def noting(text):
        def hook(*_):
            ran.append(text)

        hook.__qualname__ = text
        return hook

    y.grad_fn.register_hook(noting("post"))
    y.register_hook(noting("tensor one"))
    y.grad_fn.register_prehook(noting("pre"))
    y.register_hook(noting("tensor two"))
    y.retain_grad()
    w.register_post_accumulate_grad_hook(noting("post accumulate"))
    w.register_hook(noting("leaf"))
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_hook(noting("accumulator post"))
    accumulator.register_prehook(noting("accumulator pre"))
    picture = snapshot([y.sum()])
    listed = [hook for node in picture.nodes[::-1] for hook in node.hooks]
    y.sum().backward()
    assert [hook.text.split(" (")[0] for hook in listed if hook.when != "retain_grad"] == ran
    assert [hook.when for hook in listed] == [
        "tensor", "tensor", "retain_grad", "node pre", "node post",
        "tensor", "node pre", "post accumulate", "node post",
    ]  # fmt: skip


def test_nothing_is_changed():
    w = torch.ones(2, requires_grad=True)
    y = (w * 2).sum()
    snapshot([y])
    assert w._extra is None  # the snapshot has created no `AccumulateGrad`
    assert y.grad_fn._hooks is None
    y.backward()


def test_a_snapshot_keeps_nothing_alive():
    w = torch.ones(2, requires_grad=True)
    y = (w * torch.ones(2)).exp()
    references = [weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])]
    gc.disable()
    try:
        drawn = graph(y)
        assert all(reference() is not None for reference in references)
        del y
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()
    seen, stack = set(), [drawn]
    while stack:
        each = stack.pop()
        assert not isinstance(each, (torch.Tensor, numpy.ndarray, HookDict))
        for inner in gc.get_referents(each):
            if id(inner) not in seen and not isinstance(inner, type):
                seen.add(id(inner))
                stack.append(inner)


@pytest.mark.thorough
def test_deep_chains_do_not_recurse():
    w = torch.ones(1, requires_grad=True)
    y = w
    for _ in range(50_000):  # the graph is fifty times as deep as Python's stack
        y = -y
    drawn = graph(y)
    assert len(drawn.snapshot.nodes) == 50_001
    assert "neg × 50000" in str(drawn)
    assert drawn.text(full=True).count("NegBackward0") == 50_000


def test_records_can_be_written_and_read():
    import json

    w = torch.tensor([1.0, float("nan")], requires_grad=True)
    drawn = graph((w * 2).exp())
    data = json.loads(drawn.json())
    assert data["format"] == "adjoint.inspect/1"
    assert data["nodes"][1]["next"] == [["n1", 0], [None, 0]]
    assert data["tensors"][0]["statistics"]["nan"] == 1
    assert json.loads(json.dumps(drawn.snapshot.as_dict())) == data


# ---------------------------------------------------------------- rare cases


def test_inference_tensors_have_no_version():
    with torch.inference_mode():
        x = torch.ones(2)
        view = x[:1]
    picture = graph(x, view).snapshot
    assert [(tensor.name, tensor.version) for tensor in picture.tensors] == [("x", None), ("view", None)]


def test_views_made_while_nothing_was_recorded_lead_nowhere():
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        view = w[:1]
    y = view * 2
    picture = snapshot([y, view])
    assert [node.next for node in picture.nodes] == [[(None, 0), (None, 0)]]
    assert [tensor.kind for tensor in picture.tensors if tensor.id in picture.roots] == ["intermediate", "constant"]


def test_within_transforms_of_functions_elements_are_not_read():
    w = torch.ones(3, requires_grad=True)
    found = []

    def function(x):
        y = (x * w).sin()
        found.append(graph(y).snapshot)
        return y.sum()

    torch.func.vmap(torch.func.grad(function))(torch.ones(4, 3))
    names = {tensor.name: tensor for tensor in found[0].tensors}
    assert names["x"].data is None
    assert names["x"].shape == [3]
    assert names["w"].data == "[1, 1, 1]"
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(3, requires_grad=True), torch.ones(3))
        assert by_name(snapshot([dual.exp()]), "ExpBackward0").saved[0].state == "ok"


def test_checkpoints_pack_the_values_to_recompute():
    w = torch.ones(3, requires_grad=True)
    calls = []

    def function(x):
        calls.append(x)
        return x.exp().sin()

    out = torch.utils.checkpoint.checkpoint(function, w, use_reentrant=False)
    picture = snapshot([out])
    assert [saved.state for node in picture.nodes for saved in node.saved] == ["packed", "packed"]
    assert len(calls) == 1


def test_empty_and_complex_tensors():
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    empty = torch.ones(0, 3, requires_grad=True)
    picture = graph((z * z).abs().sum() + empty.exp().sum()).snapshot
    assert tensor_called(picture, "z").data == "[1+0j, 1+0j]"
    assert (tensor_called(picture, "empty").data, tensor_called(picture, "empty").statistics) == ("[]", None)


# ---------------------------------------------------------------- values


def test_values_in_short():
    assert in_short(numpy.array(2.5)) == "2.5"
    assert in_short(numpy.array([True, False])) == "[True, False]"
    assert in_short(numpy.array([1 + 2j])) == "[1+2j]"
    assert in_short(numpy.arange(6.0).reshape(2, 3)) == "[[0, 1, 2], [3, 4, 5]]"
    assert in_short(numpy.zeros((0, 3))) == "[]"
    assert in_short(torch.tensor([1.0], dtype=torch.bfloat16)._array) == "[1]"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.floats(-1e6, 1e6, width=32) | st.sampled_from([float("nan"), float("inf"), 0.0]), min_size=1, max_size=50
    )
)
def test_statistics_are_those_of_the_finite_elements(values):
    array = numpy.array(values)
    finite = array[numpy.isfinite(array)]
    found = statistics(array)
    assert (found.count, found.nan, found.inf) == (len(array), numpy.isnan(array).sum(), numpy.isinf(array).sum())
    assert found.zero == (array == 0).sum()
    if finite.size:
        assert found.min == pytest.approx(finite.min(), rel=1e-5)
        assert found.max == pytest.approx(finite.max(), rel=1e-5)
        assert found.mean == pytest.approx(finite.mean(), rel=1e-5, abs=1e-3)
        assert found.std == pytest.approx(finite.std(), rel=1e-4, abs=1e-3)
        assert sum(found.histogram) == finite.size
    else:
        assert found.min is None


@pytest.mark.parametrize("array", [numpy.arange(1e5), numpy.arange(1e5).reshape(100, 1000).T, numpy.arange(1e5)[::2]])
def test_statistics_of_large_arrays_are_of_a_sample(array):
    found = statistics(array)
    assert SAMPLE / 4 <= found.count <= SAMPLE
    assert found.mean == pytest.approx(array.mean(), rel=0.05)

"""`torch.export`: graphs of modules, their signatures, and the modules that they become again."""

import io

import pytest

import adjoint as torch

nn, Dim, export = torch.nn, torch.export.Dim, torch.export.export
UserError = torch._dynamo.exc.UserError


class Affine(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 2)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x, factor=None):
        h = torch.relu(self.linear(x)) + self.shift
        return h if factor is None else {"h": h * factor["of"], "rows": x.shape[0]}


def test_a_graph_and_its_signature():
    module = Affine()
    program = export(module, (torch.ones(2, 3),))
    nodes = [(node.op, node.name) for node in program.graph.nodes]
    assert nodes[:4] == [("placeholder", name) for name in ("p_linear_weight", "p_linear_bias", "b_shift", "x")]
    assert [name for op, name in nodes if op == "call_function"] == ["linear", "relu", "add"]
    signature = program.graph_signature
    assert [(each.kind.name, each.arg.name, each.target) for each in signature.input_specs] == [
        ("PARAMETER", "p_linear_weight", "linear.weight"),
        ("PARAMETER", "p_linear_bias", "linear.bias"),
        ("BUFFER", "b_shift", "shift"),
        ("USER_INPUT", "x", None),
    ]
    assert signature.user_inputs == ("x",) and signature.user_outputs == ("add",)
    assert signature.parameters == ("linear.weight", "linear.bias") and signature.buffers == ("shift",)
    assert [*program.state_dict] == ["linear.weight", "linear.bias", "shift"]
    assert [name for name, _ in program.named_parameters()] == ["linear.weight", "linear.bias"]
    assert str(program).startswith("ExportedProgram:\n") and "b_shift: BUFFER target='shift' persistent=True" in str(
        program
    )
    program.validate()
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(2, 3))


def test_the_module_of_a_program_is_trained():
    module = Affine()
    made = export(module, (torch.ones(2, 3),)).module()
    assert isinstance(made, torch.fx.GraphModule) and {*made.parameters()} == {*module.parameters()}
    x = torch.randn(2, 3)
    assert torch.equal(made(x), module(x))
    made(x).sum().backward()
    assert all(each.grad is not None for each in module.parameters())
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[0\] == 2"):
        made(torch.ones(4, 3))
    with pytest.raises(AssertionError, match=r"a tensor of torch\.float32"):
        made(torch.ones(2, 3, dtype=torch.float64))


def test_structures_of_arguments_and_results():
    module, factor = Affine(), {"of": torch.tensor([2.0, 3.0])}
    made = export(module, (torch.ones(2, 3),), {"factor": factor}).module()
    found, expected = made(torch.ones(2, 3), factor=factor), module(torch.ones(2, 3), factor)
    assert torch.equal(found["h"], expected["h"]) and found["rows"] == 2
    with pytest.raises(ValueError, match="structure"):
        made(torch.ones(2, 3))


@pytest.mark.parametrize("dim", [Dim("batch"), Dim.AUTO, Dim.DYNAMIC, Dim("batch", min=2, max=8)])
def test_sizes_that_change(dim):
    module = Affine()
    program = export(module, (torch.ones(4, 3), {"of": torch.ones(2)}), dynamic_shapes=({0: dim}, {"of": None}))
    for rows in (2, 5, 8):
        x = torch.randn(rows, 3)
        found = program.module()(x, {"of": torch.ones(2)})
        assert torch.equal(found["h"], module(x)) and found["rows"] == rows
    if isinstance(dim, Dim):
        assert program.range_constraints == {"batch": (dim.min, dim.max)}
    if isinstance(dim, Dim) and dim.max:
        with pytest.raises(AssertionError, match=r"x\.size\(\)\[0\] <= 8"):
            program.module()(torch.ones(9, 3), {"of": torch.ones(2)})


class Sized(nn.Module):
    def forward(self, x, y):
        h = x.view(x.shape[0] // 2, 2, -1).sum(1) if x.shape[0] > 3 else x
        return h.sum() / len(x) + (x * y).sum()


def test_code_that_computes_with_sizes():
    batch = Dim("batch")
    made = export(
        Sized(), (torch.ones(6, 4), torch.ones(6, 4)), dynamic_shapes={"x": {1: batch}, "y": {1: batch}}
    ).module()
    x = torch.randn(6, 7)
    assert torch.equal(made(x, x), Sized()(x, x))
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[1\] == 7"):
        made(x, torch.ones(6, 1))


def test_a_size_that_is_fixed():
    with pytest.raises(UserError, match=r"Constraints violated \(width\)"):
        export(Affine(), (torch.ones(2, 3),), dynamic_shapes={"x": {1: Dim("width")}})
    made = export(Affine(), (torch.ones(2, 3),), dynamic_shapes={"x": {1: Dim.AUTO}}).module()
    assert made(torch.ones(2, 3)).shape == (2, 2)
    with pytest.raises(UserError, match=r"must be the arg names \['x'\]"):
        export(Affine(), (torch.ones(2, 3),), dynamic_shapes={"z": None})


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.norm, self.drop = nn.BatchNorm1d(2), nn.Dropout(0.5)

    def forward(self, x):
        self.count.add_(1)
        return self.drop(self.norm(x)) + self.count


def test_an_export_changes_nothing_and_buffers_advance_afterwards():
    module = Counting()
    before, state = {name: each.clone() for name, each in module.state_dict().items()}, torch.get_rng_state()
    made = export(module, (torch.ones(3, 2),)).module()
    assert all(torch.equal(each, before[name]) for name, each in module.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    made(torch.ones(3, 2))
    assert module.count.item() == 1 and module.norm.num_batches_tracked.item() == 1


def test_decompositions():
    program = export(Affine(), (torch.ones(2, 3),))
    core = program.run_decompositions()
    assert [str(node.target) for node in core.graph.nodes if node.op == "call_function"] == [
        "aten.t.default", "aten.addmm.default", "aten.relu.default", "aten.add.Tensor"
    ]  # fmt: skip
    x = torch.randn(2, 3)
    assert torch.equal(core.module()(x), program.module()(x))
    assert core.graph_signature.input_specs == program.graph_signature.input_specs


def test_files():
    program, file = export(Affine(), (torch.ones(2, 3),), dynamic_shapes={"x": {0: Dim("batch")}}), io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    x = torch.randn(5, 3)
    assert torch.equal(loaded.module()(x), program.module()(x)) and str(loaded) == str(program)
    assert torch.equal(torch.export.unflatten(loaded)(x), program.module()(x))
    file = io.BytesIO()
    torch.save([1], file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="does not contain"):
        torch.export.load(file)


class Branching(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Storing(nn.Module):
    def forward(self, x):
        self.last = x + 1
        return self.last


@pytest.mark.parametrize(
    ("module", "message"), [(Branching(), "reads elements of a tensor"), (Storing(), "sets attributes")]
)
def test_modules_that_are_not_one_graph(module, message):
    with pytest.raises(UserError, match=message):
        export(module, (torch.ones(2),))


def test_wrong_calls():
    with pytest.raises(ValueError, match="Expected `mod` to be an instance"):
        export(lambda x: x, (torch.ones(1),))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple"):
        export(nn.ReLU(), torch.ones(1))
    with pytest.raises(AssertionError, match="inconsistent"):
        Dim("batch", min=3, max=2)
    assert (
        repr(torch.export.dims("a", "b")) == "(Dim('a', min=0), Dim('b', min=0))" and repr(Dim.AUTO) == "DimHint(AUTO)"
    )


@pytest.mark.parametrize(("least", "refused"), [(2, False), (3, True)])
def test_a_least_size_of_two_is_not_required(least, refused):
    rows = torch.export.Dim("rows", min=least)
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=({0: rows},)).module()
    if refused:
        with pytest.raises(AssertionError, match=r"Guard failed: input.size\(\)\[0\] >= 3"):
            program(torch.ones(1, 3))
    else:
        assert program(torch.ones(1, 3)).shape == (1, 3)

"""Backends that are functions: the graphs that they receive, and the functions that they return."""

import operator
import warnings

import pytest

import adjoint as torch

nn, F = torch.nn, torch.nn.functional


class Kept:
    """A backend that keeps graphs and inputs, and counts the runs of its functions."""

    def __init__(self):
        self.modules, self.inputs, self.runs = [], [], 0

    def __call__(self, module, inputs, **options):
        self.modules.append(module)
        self.inputs.append(inputs)
        self.options = options

        def run(*args):
            self.runs += 1
            return module(*args)

        return run

    def calls(self, number=0):
        """Return the targets of a graph: functions, and names of methods."""
        return [node.target for node in self.modules[number].graph.nodes if "call" in node.op]


def test_a_graph_of_a_function():
    backend = Kept()
    f = torch.compile(lambda x, scale: torch.sin(x).sum(0) * scale["of"] + 1, backend=backend)
    x, scale = torch.ones(2, 3, requires_grad=True), {"of": torch.full((3,), 2.0)}
    results = [f(x, scale) for _ in range(3)]
    assert (len(backend.modules), backend.runs) == (1, 3)
    assert backend.calls() == [torch.sin, "sum", operator.mul, operator.add]
    assert backend.inputs[0][0] is x and backend.inputs[0][1] is scale["of"]
    assert [node.name for node in backend.modules[0].graph.nodes][:2] == ["l_x_", "l_scale_of_"]
    assert backend.modules[0].graph.output_node().meta == {}
    node = next(iter(backend.modules[0].graph.nodes))
    assert node.meta["example_value"].shape == (2, 3) and node.meta["example_value"].device.type == "meta"
    for each in results:
        assert torch.equal(each, torch.sin(x).sum(0) * 2 + 1) and each.requires_grad
    assert torch.equal(torch.autograd.grad(results[2].sum(), x)[0], 2 * torch.cos(x))


def test_parameters_and_buffers_are_inputs():
    backend = Kept()
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4))
    compiled = torch.compile(module, backend=backend)
    compiled(torch.ones(2, 3))
    graph = backend.modules[0].graph
    names = [node.name for node in graph.nodes if node.op == "placeholder"]
    assert names[:3] == ["l_input_", "l_self_modules_0_parameters_weight_", "l_self_modules_0_parameters_bias_"]
    assert "l_self_modules_2_buffers_running_mean_" in names and len(names) == 8
    assert backend.calls() == [F.linear, F.relu, "add_", F.batch_norm]
    assert not [*backend.modules[0].parameters()]
    assert {id(each) for each in backend.inputs[0]} >= {id(each) for each in module.parameters()}


def test_the_returned_function_replaces_the_first_call_too():
    def multiplying(module, inputs):
        for node in module.graph.nodes:
            if node.target is operator.add:
                node.target = operator.mul
        module.recompile()
        return module

    f = torch.compile(lambda x, y: x + y, backend=multiplying)
    assert [f(torch.tensor(3.0), torch.tensor(4.0)).item() for _ in range(2)] == [12.0, 12.0]


def test_a_condition_on_a_tensor_ends_a_graph():
    backend = Kept()

    def f(a, b):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    compiled = torch.compile(f, backend=backend)
    a, b = torch.tensor([1.0, -2.0]), torch.tensor([3.0, 4.0])
    for sign in (1, -1, 1, -1):
        assert torch.equal(compiled(a, sign * b), f(a, sign * b))
    assert len(backend.modules) == 3  # the first graph is compiled once
    assert backend.calls(0) == [torch.abs, operator.add, operator.truediv, "sum", operator.lt]
    assert [backend.calls(number) for number in (1, 2)] == [[operator.mul], [operator.mul, operator.mul]]


def test_print_ends_a_graph(capsys):
    backend = Kept()

    def f(x):
        y = x + 1
        print("between", y)
        return y * 2

    compiled = torch.compile(f, backend=backend)
    for value in (1.0, 2.0):
        assert compiled(torch.tensor(value)).item() == 2 * value + 2
    assert capsys.readouterr().out == "between tensor(2.)\nbetween tensor(3.)\n"
    assert [backend.calls(number) for number in range(2)] == [[operator.add], [operator.mul]]
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"print\(\) is called"):
        torch.compile(f, backend=backend, fullgraph=True)(torch.ones(1))


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.drop, self.count = nn.Dropout(0.3), 0
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.count += 1
        h = self.drop(self.norm(self.inner(x)))
        h = h.clone()
        h[:, 0] *= 2
        h += torch.randn_like(h)
        h[h > 1] = 1.0
        with torch.no_grad():
            self.mean.lerp_(h.mean(0), 0.1)
        a, b = h.chunk(2, 1)
        return -a.T @ b / self.count, {"h": h.max(1), "x": x}


def test_a_module_with_effects():
    def of(backend):
        torch.manual_seed(0)
        module = Everything().double()
        run = module if backend is None else torch.compile(module, backend=backend)
        results = []
        for _ in range(5):
            x = torch.randn(5, 4, dtype=torch.float64)
            y, others = run(x)
            (y.sum() + others["h"].values.sum()).backward()
            results += [y.detach(), others["h"].indices, others["x"] is x]
        state = [*module.parameters(), *module.buffers(), *[each.grad for each in module.parameters()]]
        return results, [each.detach() for each in state], module.count, torch.get_rng_state()

    backend = Kept()
    found, expected = of(backend), of(None)
    assert backend.runs == 5
    for one, other in zip(found[0] + found[1], expected[0] + expected[1], strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
    assert found[2] == expected[2] and torch.equal(found[3], expected[3])


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return 2 * x

    @staticmethod
    def backward(context, grad):
        return 3 * grad


def test_a_function_with_its_own_derivative_is_one_call():
    backend = Kept()
    compiled = torch.compile(lambda x: Double.apply(x) + 1, backend=backend)
    for _ in range(2):
        x = torch.ones(2, requires_grad=True)
        compiled(x).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    assert backend.calls() == [Double.apply, operator.add]


def test_backward_and_steps_run_between_graphs():
    backend = Kept()
    module = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = module(x).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(step, backend=backend)
        before = module.weight.detach().clone()
        for _ in range(3):
            compiled(torch.ones(1, 2))
    assert backend.calls() == [F.linear]
    torch.testing.assert_close(module.weight, before - 0.3)


def test_errors_of_a_backend():
    def failing(module, inputs):
        raise ValueError("not today")

    with pytest.raises(
        torch._dynamo.exc.BackendCompilerFailed, match=r"backend='failing' raised:\nValueError: not today"
    ):
        torch.compile(lambda x: x + 1, backend=failing)(torch.ones(1))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="did not return callable"):
        torch.compile(lambda x: x + 1, backend=lambda module, inputs: None)(torch.ones(1))
    with torch._dynamo.config.patch(suppress_errors=True), pytest.warns(UserWarning, match="not today"):
        assert torch.compile(lambda x: x + 1, backend=failing)(torch.ones(1)).item() == 2


def test_options_and_modes_are_passed_on():
    for given in ({"options": {"a": 1}}, {"mode": "reduce-overhead"}):
        backend = Kept()
        torch.compile(lambda x: x + 1, backend=backend, **given)(torch.ones(1))
        assert backend.options == given


def test_default_and_registered_backends(monkeypatch):
    monkeypatch.setattr("adjoint.compiler._REGISTERED", {})
    backend = Kept()
    torch._dynamo.register_backend(backend, name="kept")
    torch.compiler.set_default_backend("kept")
    try:
        torch.compile(lambda x: x + 1)(torch.ones(1))
    finally:
        torch.compiler.set_default_backend(None)
    assert backend.calls() == [operator.add] and torch._dynamo.lookup_backend("kept") is backend
    assert "kept" in torch._dynamo.list_backends()


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
def test_backends_that_run_graphs(name):
    f = torch.compile(lambda x: x.exp() + 1, backend=name)
    assert torch.equal(f(torch.ones(2)), torch.ones(2).exp() + 1) and len(f.compiled.variants) == 1


def test_an_explanation():
    def f(x):
        y = x.sin()
        if y.sum() > 0:
            y = y + 1
        print(end="")
        return y.cos()

    found = torch._dynamo.explain(f)(torch.ones(2))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (3, 2, 2)
    assert found.ops_per_graph == [[operator.gt], [operator.add], []]  # methods do not count
    assert [each.reason for each in found.break_reasons] == ["a condition depends on a tensor", "print() is called"]
    assert "Graph Break Count: 2" in str(found)
    refused = torch._dynamo.explain(lambda x: (x + 1).item())(torch.ones(1))
    assert refused.graph_count == refused.graph_break_count == 1 and "item" in refused.break_reasons[0].reason


def test_limits_and_counts_of_captures():
    def count(limit=None, **settings):
        counter = torch._dynamo.testing.CompileCounter()
        f = torch.compile(lambda x, n: x + n, backend=counter, recompile_limit=limit)
        with torch._dynamo.config.patch(**settings), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(5):
                assert f(torch.ones(1), number).item() == number + 1
        return counter.frame_count

    assert [count(cache_size_limit=2), count(), count(3), count(3, cache_size_limit=2)] == [2, 5, 3, 3]
    with pytest.raises(torch._dynamo.exc.RecompileError, match=r"not args\[1\] is 0"):
        count(error_on_recompile=True)
    torch._dynamo.utils.counters.clear()
    torch.compile(lambda x: x + 1)(torch.ones(1))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_stances():
    counter = torch._dynamo.testing.CompileCounter()
    f = torch.compile(lambda x: x + 1, backend=counter)
    with torch.compiler.set_stance("eager_then_compile"):
        f(torch.ones(1))
        assert counter.frame_count == 0
        f(torch.ones(1))
        assert counter.frame_count == 1
    with torch.compiler.set_stance("eager_on_recompile"):
        f(torch.ones(2, 2))
    with torch.compiler.set_stance("fail_on_recompile"):
        f(torch.ones(1))
        with pytest.raises(RuntimeError, match="Detected recompile"):
            f(torch.ones(2, 2))
    assert counter.frame_count == 1


def test_a_constant_result():
    calls = []

    @torch.compiler.assume_constant_result
    def factor():
        calls.append(1)
        return len(calls)

    compiled = torch.compile(lambda x: x * factor())
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [1.0, 1.0, 1.0]
    assert reason_is_none(compiled)


def reason_is_none(compiled):
    return compiled.compiled.reason is None


@pytest.mark.filterwarnings("ignore:torch.compile runs")
def test_a_second_derivative_if_an_argument_depends_on_a_parameter():
    weight = torch.nn.Parameter(torch.tensor([0.5, 2.0], dtype=torch.float64))

    def loss_of(h):
        return (h * weight.cos()).sum() + weight.norm()

    def gradients(loss):
        (first,) = torch.autograd.grad(loss((2 * weight).tanh()), weight, create_graph=True)
        return first, torch.autograd.grad(first.pow(2).sum(), weight)[0]

    expected, compiled = gradients(loss_of), torch.compile(loss_of)
    for _ in range(3):
        for one, other in zip(gradients(compiled), expected, strict=True):
            torch.testing.assert_close(one, other)


def halved(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


@torch._dynamo.error_on_graph_break(True)
def strict(x):
    return halved(x)


def partly_strict(x):
    with torch._dynamo.error_on_graph_break(True):
        y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


def branching(x):
    with torch._dynamo.error_on_graph_break(True):
        return x if x.sum() > 0 else -x


def test_graph_break_ends_a_graph():
    backend = Kept()
    f = torch.compile(halved, backend=backend)
    assert [f(torch.ones(1)).item() for _ in range(3)] == [4.0] * 3
    assert [backend.calls(number) for number in range(2)] == [[operator.add], [operator.mul]]
    found = torch._dynamo.explain(halved)(torch.ones(1))
    assert (found.graph_count, found.graph_break_count, len(found.break_reasons)) == (2, 1, 1)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        torch.compile(halved, backend=backend, fullgraph=True)(torch.ones(1))


@pytest.mark.filterwarnings("ignore:torch.compile runs")
@pytest.mark.parametrize("options", [{}, {"backend": "eager"}])
def test_graph_breaks_can_be_errors(options):
    x = torch.ones(1)
    for function in (strict, branching, lambda x: strict(x) + 1):
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(function, **options)(x)
    assert torch.equal(torch.compile(partly_strict, **options)(x), x.sin().cos())
    with torch._dynamo.error_on_graph_break(True):
        f = torch.compile(halved, **options)
        with pytest.raises(torch._dynamo.exc.Unsupported):
            f(x)
        assert torch.compile(lambda x: x * 2, **options)(x).item() == 2
    assert f(x).item() == 4


def test_graphs_draw_from_generators_among_the_arguments():
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]
    f = torch.compile(lambda n, generator: torch.rand(n, generator=generator), backend="eager")
    for size in (2, 2, 3, 2):
        assert torch.equal(f(size, generators[0]), torch.rand(size, generator=generators[1]))

"""A function that cannot be captured runs in Python. The modules, functions and steps that it calls are compiled."""

import copy
import warnings

import pytest

import adjoint as torch

from .comparison import assert_alike

nn, F = torch.nn, torch.nn.functional


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x


class Counting(nn.Module):
    """A module that cannot be captured, because it prints."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.calls = Block(), Block(), 0

    def forward(self, x):
        self.calls += 1
        print(end="")
        x = self.first(x)
        return self.second(x) if x.sum() > -1e9 else x


def loss_of(output, target):
    return (output - target).pow(2).mean()


def trained(compile, steps=5):
    torch.manual_seed(0)
    model = Counting()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    losses = []

    @compile
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(steps):
            step(x, y)
    return step, model, (torch.tensor(losses), list(model.parameters()), model.calls), given


def unit(compiled, of):
    """Return the compiled form of a function that a compiled function calls."""
    return compiled.units.units[of]


def test_a_training_step_that_keeps_numbers():
    step, model, found, given = trained(torch.compile)
    *_, expected, _ = trained(lambda function: function)
    assert_alike(list(found), list(expected))
    assert len(given) == 1
    assert "torch.compile runs trained.<locals>.step as it is" in str(given[0].message)
    assert sum(each.calls for each in unit(step.compiled, loss_of).variants) == 3
    inner = unit(step.compiled, model)
    assert inner.reason is not None
    assert [sum(each.calls for each in unit(inner, block).variants) for block in (model.first, model.second)] == [2, 2]


def helper(x):
    return x * 2 + 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [print("said"), helper(x)][1],
        lambda x: helper(x) * x.sum().item(),
        lambda x: (lambda y: y * x.sum().item())(helper(x)),
        lambda x: helper(helper(x) if x.sum() > 0 else -x),
    ],
)
def test_forms_of_calls(function, capsys):
    results = []
    for called in (function, torch.compile(function)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sign in (1, -1, 1, 1):
                x = (torch.ones(3) * sign).requires_grad_()
                result = called(x)
                results.append((result, torch.autograd.grad(result.sum(), x)))
        results.append(capsys.readouterr().out)
    assert_alike(results[5:], results[:5])


def test_a_module_in_a_container():
    model = nn.Sequential(Block(), Counting(), Block())
    compiled, plain = torch.compile(model), copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            x = torch.randn(2, 4)
            assert_alike(compiled(x), plain(x))
    assert model[1].calls == plain[1].calls == 4
    assert sum(each.calls for each in unit(compiled.compiled, model[0]).variants) == 2


def test_hooks_and_replaced_methods_are_called():
    model = Counting()
    compiled = torch.compile(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            compiled(torch.ones(2, 4))
    seen = []
    handle = model.register_forward_hook(lambda *_: seen.append(1))
    compiled(torch.ones(2, 4))
    handle.remove()
    assert seen == [1]
    model.forward = lambda x: x * 0
    assert compiled(torch.ones(2, 4)).sum() == 0


def test_a_module_that_is_compiled_in_place():
    model = Counting()
    plain = copy.deepcopy(model)
    model.compile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            assert_alike(model(torch.ones(2, 4)), plain(torch.ones(2, 4)))
    assert model.calls == 4


@torch.compiler.disable
def disabled(x):
    return x + 1


def test_a_disabled_function_is_called_as_it_is():
    compiled = torch.compile(lambda x: disabled(helper(x)))
    with pytest.warns(UserWarning, match="disabled"):
        compiled(torch.ones(2))
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    assert disabled not in compiled.compiled.units.units
    assert sum(each.calls for each in unit(compiled.compiled, helper).variants) == 2


CALLS = []


class Shapes:
    """An object whose methods the compiler cannot trace, because they read and change the object."""

    known = {}

    def flat(self, x, y=None):
        CALLS.append("flat")
        self.known[len(self.known)] = tuple(x.shape)
        return x.reshape(-1) * (x.shape[0] if y is None else len(y))


def flattened(x, y=None):
    return Shapes().flat(x, y)


def first_element(x):
    return x * x.flatten()[0].item()


def test_functions_that_are_called_but_not_followed():
    with pytest.warns(UserWarning, match="Shapes"):
        torch.compile(lambda x: flattened(x) + 1)(torch.ones(2, 3))
    assert torch.compiler.allow_in_graph(flattened) is flattened
    assert torch.compiler.allow_in_graph([first_element]) == [first_element]
    with pytest.raises(AssertionError):
        torch.compiler.allow_in_graph(3)
    compiled = torch.compile(lambda x: flattened(x, [x, x]).sum() * flattened(x + 1), fullgraph=True)
    for shape in [(2, 3)] * 3 + [(3, 3)] * 2 + [(4, 5)]:
        x = torch.randn(shape, requires_grad=True)
        CALLS.clear()
        found = compiled(x)
        calls = len(CALLS)
        assert_alike(found, (x.reshape(-1) * 2).sum() * ((x + 1).reshape(-1) * x.shape[0]))
        assert_alike(
            torch.autograd.grad(found.sum(), x)[0],
            torch.autograd.grad((2 * x.sum()) * (x + 1).sum() * x.shape[0], x)[0],
        )
    assert calls == 2 and [variant.calls for variant in compiled.compiled.variants][-1] == 2
    reading = torch.compile(lambda x: first_element(x) + 1)
    with pytest.warns(UserWarning, match="item"):
        reading(torch.ones(2))
    assert reading(torch.full((2,), 3.0)).tolist() == [10.0, 10.0]


@torch.autocast("cpu", dtype=torch.bfloat16)
def in_half(x):
    return x @ x


@torch.autocast("cuda", enabled=False)
def in_full(x):
    return x @ x


def test_functions_that_autocast_decorates_are_followed():
    for function, fullgraph in ((in_half, True), (in_full, True)):
        compiled = torch.compile(lambda x, function=function: function(x) + 1, fullgraph=fullgraph)
        for _ in range(3):
            x = torch.randn(3, 3)
            assert_alike(compiled(x), function(x) + 1)
        assert compiled.compiled.variants[0].calls == 2


class Private:
    def __init__(self):
        self.__kept = []

    def __doubled(self, x):
        return helper(x) * 2

    def run(self, x):
        self.__kept.append(1)

        def inner(y: "unknown_name", *, z: float = 1.0) -> "unknown_name":  # noqa: F821
            return self.__doubled(y) * z

        return inner(x), len(self.__kept)


class Heir(Private):
    def run(self, x):
        return super().run(helper(x))


def test_private_names_super_and_annotations():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in (Private, Heir):
            plain, other = kind(), kind()
            compiled = torch.compile(other.run)
            for _ in range(4):
                assert_alike(list(compiled(torch.ones(2))), list(plain.run(torch.ones(2))))


# --- reports --------------------------------------------------------------------------------------------------------------


def test_reports(capsys):
    torch._logging.set_logs(recompiles=True, graph_breaks=True)
    try:
        compiled = torch.compile(helper)
        compiled(torch.ones(2))
        compiled(torch.ones(3))
        torch.compile(lambda x: x.tolist(), fullgraph=False)(torch.ones(()))
    except UserWarning:
        pass
    finally:
        torch._logging.set_logs()
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "[__recompiles] helper is captured again: not args[0].shape[0] == 2 (it is 3 now)"
    assert said[1].startswith("[__graph_breaks] test_reports.<locals>.<lambda>: tolist() reads elements of a tensor")

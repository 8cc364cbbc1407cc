# ruff: noqa: PT012, PT031, RUF043, B023
"""`torch.compile` of functions, methods and modules, also in place, and the options, errors and settings of `torch.compile`."""

import collections
import copy
import enum
import functools
import gc
import io
import pickle
import threading
import warnings
import weakref

import numpy
import pytest

import adjoint as torch
from adjoint._runtime.sequence import module_calls

from .comparison import assert_alike, assert_as_eager, reason_of

nn, F = torch.nn, torch.nn.functional


def doubled(x):
    return x * 2


def shouting(x):
    print("called")
    return x * 2


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) * 2

    @torch.compile
    def other(self, x):
        return self.layer(x) + 1


def ran(compiled):
    """Return how often a compiled program has run instead of the function."""
    return sum(each.calls for each in compiled.compiled.variants)


def test_the_decorator_with_and_without_options():
    first = torch.compile(doubled)
    second = torch.compile(fullgraph=True)(doubled)
    for compiled in (first, second):
        assert compiled.__name__ == "doubled" and compiled.__wrapped__ is doubled
        for _ in range(3):
            assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
        assert ran(compiled) == 2


def test_methods():
    module = Scaled()
    x = torch.randn(3, 2)
    for _ in range(3):
        assert torch.allclose(module.other(x), module.layer(x) + 1)
    assert ran(Scaled.other) == 2
    bound = torch.compile(module.forward)
    for _ in range(3):
        assert torch.allclose(bound(x), module(x))
    assert ran(bound) == 2


def test_partial_functions_lambdas_and_builtins():
    for function in (functools.partial(torch.add, torch.ones(2)), lambda x: x + 1, torch.exp, torch.sin):
        compiled = torch.compile(function)
        for _ in range(3):
            assert torch.allclose(compiled(torch.ones(2)), function(torch.ones(2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.compile(len)([1, 2]) == 2


def test_a_compiled_module_is_a_module():
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = torch.compile(module)
    assert isinstance(compiled, torch._dynamo.OptimizedModule) and isinstance(compiled, nn.Module)
    assert type(compiled) is torch._dynamo.eval_frame.OptimizedModule
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(")
    assert len(compiled) == len(module)
    with pytest.raises(TypeError, match=r"Linear does not support len\(\)"):
        len(torch.compile(module[0]))
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [name for name, _ in compiled.named_parameters()] == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [name for name, _ in compiled.named_modules()][:2] == ["", "_orig_mod"]
    compiled.load_state_dict({f"_orig_mod.{name}": value for name, value in module.state_dict().items()})
    compiled.eval()
    assert not module.training and not compiled.training and not module[1].training
    module.train()
    assert compiled.training
    compiled.mine = 3
    assert module.mine == 3 and compiled.mine == 3
    del compiled.mine
    assert not hasattr(module, "mine")
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'nope'"):
        _ = compiled.nope
    assert "in_features" in dir(torch.compile(module[0]))
    compiled.double()
    assert module[0].weight.dtype is torch.float64


@pytest.mark.filterwarnings("ignore")
def test_copies_and_pickles_of_a_compiled_module():
    compiled = torch.compile(nn.Linear(2, 2))
    x = torch.ones(3, 2)
    expected = compiled(x)
    file = io.BytesIO()
    torch.save(compiled, file)
    file.seek(0)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled)), torch.load(file, weights_only=False)):
        assert type(other) is type(compiled) and other._orig_mod is not compiled._orig_mod
        for _ in range(3):
            assert torch.allclose(other(x), expected)
        other.weight.data.zero_()
    assert copy.copy(compiled)._orig_mod is compiled._orig_mod
    assert torch.allclose(compiled(x), expected)


def test_hooks_of_a_compiled_module_are_called_around_it():
    compiled, seen = torch.compile(nn.Linear(2, 2)), []
    handle = compiled.register_forward_hook(lambda module, args, result: seen.append(type(module).__name__))
    compiled(torch.ones(3, 2))
    handle.remove()
    compiled(torch.ones(3, 2))
    assert seen == ["OptimizedModule"]


def test_a_module_compiled_in_place():
    torch.manual_seed(0)
    module, plain = Scaled(), Scaled()
    plain.load_state_dict(module.state_dict())
    assert module._compiled_call_impl is None
    assert module.compile(fullgraph=True) is None
    assert list(module.state_dict()) == list(plain.state_dict()) and repr(module) == repr(plain)
    for _ in range(3):
        x = torch.randn(3, 2)
        found, expected = module(x), plain(x)
        assert torch.allclose(found, expected)
        found.sum().backward(), expected.sum().backward()
    assert_alike([p.grad for p in module.parameters()], [p.grad for p in plain.parameters()])
    assert ran(module._compiled_call_impl) == 2
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert other._compiled_call_impl is None
        with torch.no_grad():
            other.layer.weight.zero_()
        assert not torch.equal(other(x), module(x))


def test_a_module_compiled_in_place_and_its_hooks():
    module = Scaled()
    module.compile()
    x, seen = torch.ones(3, 2), []
    expected = module(x)
    handle = module.register_forward_hook(lambda *args: seen.append(1))
    assert torch.allclose(module(x), expected)
    assert seen == [1]
    handle.remove()
    assert torch.allclose(module(x), expected)
    assert seen == [1]


def test_a_part_compiled_in_place_within_a_compiled_whole():
    whole = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    whole[0].compile()
    compiled = torch.compile(whole, fullgraph=True)
    for _ in range(3):
        assert torch.allclose(compiled(torch.ones(3, 2)), whole(torch.ones(3, 2)))
    assert ran(compiled) == 2


def test_disable():
    assert torch.compile(doubled, disable=True) is doubled
    calls = []

    @torch.compiler.disable
    def aside(x):
        calls.append(torch.compiler.is_compiling())
        return x + 1

    with pytest.warns(UserWarning, match="aside is disabled"):
        compiled = torch.compile(lambda x: aside(x) * 2)
        for _ in range(3):
            assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    assert calls == [False] * 3 or calls == [True, False, False]


def test_fullgraph_names_the_line():
    line = shouting.__code__.co_firstlineno + 1
    with pytest.raises(torch._dynamo.exc.Unsupported, match=rf"print\(\) is called \(.*test_forms\.py:{line}\)"):
        torch.compile(shouting, fullgraph=True)(torch.ones(2))
    assert issubclass(torch._dynamo.exc.Unsupported, torch._dynamo.exc.TorchDynamoException)


def test_one_warning_names_the_line(capsys):
    compiled = torch.compile(shouting)
    with pytest.warns(UserWarning, match=r"torch.compile runs shouting as it is: print\(\) is called") as record:
        for _ in range(3):
            compiled(torch.ones(2))
    assert len(record) == 1
    assert capsys.readouterr().out == "called\n" * 3


def test_stances_and_reset():
    compiled = torch.compile(doubled)
    compiled(torch.ones(2))
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(2))
        assert ran(compiled) == 0
    compiled(torch.ones(2))
    assert ran(compiled) == 1
    torch.compiler.reset()
    assert compiled.compiled.variants == []
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'bad'"):
        torch.compiler.set_stance("bad")


def test_at_most_eight_programs():
    compiled = torch.compile(lambda x, n: x.repeat(n))
    with pytest.warns(UserWarning, match="8 programs were captured, and none fits this call: .*args\\[1\\] is 7"):
        for n in range(20):
            assert compiled(torch.ones(2), n).tolist() == [1.0] * 2 * n
    assert compiled(torch.ones(2), 3).tolist() == [1.0] * 6
    assert [each.calls for each in compiled.compiled.variants] == [0, 0, 0, 0, 1, 0, 0, 0]


def test_backends():
    assert torch.compile(doubled, backend="eager")(torch.ones(1)).tolist() == [2.0]
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="Invalid backend: 'nope'"):
        torch.compile(doubled, backend="nope")
    assert torch._dynamo.optimize("inductor")(doubled)(torch.ones(1)).tolist() == [2.0]


# --- errors ---------------------------------------------------------------------------------------------------------------


def test_an_error_of_the_first_call():
    compiled = torch.compile(lambda x: x @ torch.ones(3))
    with pytest.raises(RuntimeError, match="inconsistent tensor size"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(torch.ones(2))
    for _ in range(3):
        assert compiled(torch.ones(3)).item() == 3.0
    assert torch.ones(1).add(1).item() == 2.0


def test_an_error_of_a_later_call_names_the_line():
    def pick(x, i):
        return x[i] * 2

    compiled = torch.compile(pick)
    compiled(torch.ones(4), torch.tensor([0, 1]))
    compiled(torch.ones(4), torch.tensor([0, 1]))
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        compiled(torch.ones(4), torch.tensor([0, 9]))
    assert compiled(torch.ones(4), torch.tensor([0, 3])).tolist() == [2.0, 2.0]


def test_the_capture_leaves_no_profile_and_no_mode_behind():
    import sys

    def bad(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        torch.compile(bad)(torch.ones(2))
    assert sys.getprofile() is None and not torch.compiler.is_compiling() and torch.is_grad_enabled()
    assert (torch.ones(2, requires_grad=True) * 2).requires_grad


# --- gradients ------------------------------------------------------------------------------------------------------------


def test_graphs_are_freed_and_retained():
    w = torch.ones(3, requires_grad=True)
    compiled = torch.compile(lambda x: (x * w).exp().sum())
    compiled(torch.ones(3))
    loss = compiled(torch.ones(3))
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    assert torch.allclose(w.grad, 2 * torch.ones(3).exp())


@pytest.mark.parametrize("change", ["w.add_(1)", "x.add_(1)", "y.mul_(2)", "w.data.add_(1)"])
def test_changes_of_saved_values(change):
    outcomes = []
    for compile in (lambda f: f, torch.compile):
        w = torch.ones(3, requires_grad=True)
        function = compile(lambda x: (x * w).exp())
        for _ in range(3):
            x = torch.ones(3)
            y = function(x)
        with torch.no_grad():
            exec(change, {"x": x, "w": w, "y": y})
        try:
            y.sum().backward()
            outcomes.append(pytest.approx(w.grad.tolist()))
        except RuntimeError as error:
            outcomes.append("modified by an inplace operation" in str(error))
    assert outcomes[1] == getattr(outcomes[0], "expected", outcomes[0])


def test_a_view_of_a_saved_value_is_watched():
    w = torch.ones(4, requires_grad=True)
    compiled = torch.compile(lambda x: (x * w).exp()[:2])
    for _ in range(2):
        y = compiled(torch.ones(4))
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_arguments_that_depend_on_one_another():
    w = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()

    def cell(x, h):
        return torch.tanh(x @ w + h)

    grads = []
    for function in (cell, torch.compile(cell, fullgraph=True)):
        for _ in range(3):
            w.grad = None
            h = torch.zeros(3, dtype=torch.float64)
            for step in range(4):
                h = function(torch.full((3,), float(step), dtype=torch.float64), h)
            h.sum().backward()
        grads.append(w.grad)
    assert torch.allclose(*grads, rtol=1e-4)


def test_hooks_accumulation_and_layouts_of_gradients():
    for function in (doubled, torch.compile(doubled)):
        seen = []
        for _ in range(3):
            x = torch.randn(2, 3).t().requires_grad_()
            x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.stride()))
            y = function(x)
            y.register_hook(lambda g: g * 2)
            y.sum().backward()
            y = function(x)
            y.sum().backward()
            assert x.grad.unique().tolist() == [6.0]
        assert seen == [(1, 3)] * 6


# --- many -----------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_threads_call_one_function_at_once():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.LayerNorm(8))
    compiled, errors = torch.compile(module), []

    def work(seed):
        try:
            generator = torch.Generator().manual_seed(seed)
            for _ in range(150):
                x = torch.randn(4, 8, generator=generator).requires_grad_()
                found, expected = compiled(x), module(x)
                assert torch.allclose(found, expected, atol=1e-6)
                grads = [torch.autograd.grad(each.square().sum(), x)[0] for each in (found, expected)]
                assert torch.allclose(*grads, atol=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ran(compiled) > 0


@pytest.mark.thorough
def test_memory_is_flat():
    import tracemalloc

    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(module.parameters())

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def calls(count):
        for _ in range(count):
            step(torch.randn(3, 4))
            module(torch.randn(3, 4))
        module_calls.clear()  # the numbers of calls remain if another test has drawn a picture
        gc.collect()

    calls(200)
    tracemalloc.start()
    calls(500)  # these calls replace the code that existed before the trace
    before = tracemalloc.get_traced_memory()[0]
    calls(2000)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert reason_of(step) is None
    assert after - before < 20_000


def test_compiled_functions_are_freed():
    class Large:
        a = 2.0

    def program():
        large, module = Large(), nn.Linear(2, 2)
        compiled = torch.compile(lambda x: module(x) * large.a)
        for _ in range(3):
            compiled(torch.ones(3, 2)).sum().backward()
        assert ran(compiled) == 2 or ran(compiled) == 1
        return weakref.ref(large), weakref.ref(module), weakref.ref(module.weight), weakref.ref(compiled)

    references = program()
    gc.collect()
    assert [each() for each in references] == [None] * 4


def test_arguments_are_not_kept():
    compiled = torch.compile(lambda x: (x * 2).sum())
    references = []
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        compiled(x).backward()
        references.append(weakref.ref(x))
        del x
    gc.collect()
    assert [each() for each in references[1:]] == [None] * 2


def test_values_that_cannot_change_may_be_read():
    number, members = numpy.float32(2), (1, 2.0, range(3), "s", frozenset({1}))
    Kind = enum.Enum("Kind", "A B")
    Pair = collections.namedtuple("Pair", "a b")

    def function(x):
        pair = Pair(x, number)
        return pair.a * pair[1] + len(members) + sum(members[2]) + (1 if Kind.A in Kind else 0) + (Kind["A"] is Kind.A)

    assert_as_eager(function, lambda number: [torch.randn(3)])

"""Branches that depend on elements: each way is a program, which is left before anything has an effect."""

import copy
import math

import pytest

import adjoint as torch
from adjoint import inspect, nn
from adjoint.utils._python_dispatch import TorchDispatchMode

from .comparison import assert_alike

pytestmark = pytest.mark.filterwarnings("ignore")


def of_truth(x):
    y = x * 3
    return y * 2 + 1 if y.sum() > 0 else y - 1


def of_number(x):
    total = x.abs().sum().item()
    if total < 2 or total >= 7.5:
        return x / (total + 1)
    return x.exp()


def of_words(x):
    if not (x > -3).all() and x.mean() < 9:
        return x.clamp(-1)
    assert x.isfinite().all()
    return [x.cos() for _ in range(2) if x.max() > 0.5]


def until_small(x):
    steps = 0
    while x.norm() > 1:
        x, steps = x / 2, steps + 1
    return x, steps


def after_own_change(x):
    y = x.clone()
    y[0] = 5
    y.mul_(2)
    if y.min() < 0:
        y.add_(1)
    return y


CASES = [of_truth, of_number, of_words, until_small, after_own_change]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", CASES, ids=lambda each: each.__name__)
def test_each_way_through_a_function_is_a_program(function, dtype):
    compiled = torch.compile(function)
    values = [0.25, -0.5, 2.0, -4.0, 3.0]
    for value in values * 3:
        x = torch.full((4,), value, dtype=dtype)
        assert_alike(compiled(x), function(x.clone()), f"{value}")
    variants = compiled.compiled.variants
    assert compiled.compiled.reason is None
    assert 2 <= len(variants) <= 4
    assert sum(variant.calls for variant in variants) == len(values * 3) - len(variants)
    assert "expect(" in str(inspect.compiled(compiled))


def test_special_numbers_take_their_way():
    def function(x):
        return (x + 1 if x > 0 else x - 1) if x == x else torch.full_like(x, 7.0)

    compiled = torch.compile(function)
    for value in [1.0, -1.0, math.nan, math.inf, -math.inf, 0.0, -0.0, math.nan, 5.0]:
        for x in (torch.tensor(value), torch.full((1, 1), value)):
            assert torch.equal(compiled(x), function(x))
    assert compiled.compiled.reason is None


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.first(x).tanh()
        return self.second(hidden) if hidden.mean() > 0 else hidden * 2


def test_gradients_of_both_ways():
    torch.manual_seed(0)
    model = Gated()
    reference, compiled = copy.deepcopy(model), torch.compile(model)
    for number in range(12):
        x = torch.randn(3, 4) * (-1) ** number * 3
        for each in (compiled, reference):
            each.zero_grad()
            each(x).square().sum().backward()
        grads = [[p.grad for p in each.parameters()] for each in (model, reference)]
        assert_alike(grads[0], grads[1])
    assert len(compiled.compiled.variants) == 2


def test_a_training_step_that_skips_invalid_losses():
    def training(compile):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            if not torch.isfinite(loss):
                return loss
            loss.backward()
            optimizer.step()
            return loss

        step = compile(step)
        losses = [step(torch.full((2, 4), math.inf if number % 5 == 3 else number / 10)) for number in range(20)]
        return losses, [*model.parameters()], optimizer.state_dict()["state"], step

    *found, step = training(torch.compile)
    *expected, _ = training(lambda each: each)
    assert_alike(found, expected)
    assert len(step.compiled.variants) == 2


@pytest.mark.parametrize("before", ["changes an argument", "updates", "stores a gradient"])
def test_branches_after_an_effect_run_in_python(before):
    torch.manual_seed(0)
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)

    def function(x):
        if before == "changes an argument":
            x.add_(1)
        elif before == "updates":
            weight.grad = torch.ones(3)
            optimizer.step()
        else:
            (weight * x).sum().backward()
        return x * 2 if x.sum() > 0 else x * 3

    def run(compiled):
        torch.manual_seed(0)
        with torch.no_grad():
            weight.fill_(1)
        weight.grad = None
        results = []
        for number in range(8):
            x = torch.full((3,), float((-1) ** number * 4))
            results += [compiled(x), x, weight.detach().clone(), weight.grad, torch.rand(1)]
        return results

    compiled = torch.compile(function)
    assert_alike(run(compiled), run(function))
    assert compiled.compiled.reason is not None


def test_a_way_that_is_left_gives_random_numbers_back():
    generator = torch.Generator()

    def function(x):
        x = x + torch.rand(3) + torch.rand(3, generator=generator)
        x = torch.nn.functional.dropout(x) * torch.bernoulli(torch.full((3,), 0.5), generator=generator)
        return x * 2 if x.sum() > 3 else x * 3

    def run(compiled):
        torch.manual_seed(0)
        generator.manual_seed(1)
        return [compiled(torch.ones(3)) for _ in range(20)], torch.rand(1), torch.rand(1, generator=generator)

    compiled = torch.compile(function)
    assert_alike(run(compiled), run(function))
    assert len(compiled.compiled.variants) == 2
    assert compiled.compiled.reason is None


def test_an_argument_is_changed_after_the_branch():
    def function(x):
        if x[0] > 0:
            return x.add_(1)
        x.mul_(2)
        return x

    compiled = torch.compile(function)
    for number in range(9):
        pair = [torch.full((3,), float((-1) ** number)) for _ in range(2)]
        results = [compiled(pair[0]), function(pair[1])]
        assert_alike(pair[0], pair[1])
        assert results[0] is pair[0]
    assert compiled.compiled.reason is None


def test_after_eight_ways_a_function_runs_in_python():
    compiled = torch.compile(until_small)
    for value in [2.0**number for number in range(1, 12)] * 2:
        x = torch.full((4,), value)
        assert_alike(compiled(x), until_small(x))
    assert len(compiled.compiled.variants) == 8
    assert "none fits this call: all branches that depend on tensors are taken as before" in compiled.compiled.reason


def test_sizes_and_ways_vary():
    compiled = torch.compile(of_truth)
    for size in (2, 3, 5, 2, 3, *range(6, 12)):
        for value in (1.0, -1.0):
            x = torch.full((size,), value)
            assert_alike(compiled(x), of_truth(x))
    assert len(compiled.compiled.variants) == 2


def test_a_whole_graph_refuses_branches_and_names_the_line():
    with pytest.raises(RuntimeError, match=r"reads elements of a tensor .*test_branches.py"):
        torch.compile(of_truth, fullgraph=True)(torch.ones(2))


def test_a_whole_graph_refuses_branches_if_wrappers_stand_between():
    class Other(torch.Tensor):
        __torch_function__ = classmethod(lambda cls, function, types, args=(), kwargs=None: NotImplemented)

    class Mode(TorchDispatchMode):
        __torch_dispatch__ = lambda self, function, types, args=(), kwargs=None: function(*args, **kwargs or {})

    assert torch.overrides.has_torch_function((torch.ones(()).as_subclass(Other),))
    with Mode():
        torch.ones(2).exp()
    with pytest.raises(RuntimeError, match="reads elements of a tensor"):
        torch.compile(of_truth, fullgraph=True)(torch.ones(2))


def test_errors_of_tests_are_the_same():
    def function(x):
        return x if x > 0 else -x

    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        torch.compile(function)(torch.ones(2))

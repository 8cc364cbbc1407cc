"""Threads: modes and hooks belong to one thread, and simultaneous backwards in many threads lose no gradient."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import adjoint as torch
from adjoint import nn


@pytest.fixture
def eager_switching():
    """Let the interpreter switch threads as often as possible, to provoke races."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run_together(count, function):
    """Call `function(number)` in `count` threads that all start at the same moment, and return the results in order."""
    barrier = threading.Barrier(count)

    def start(number):
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


def train(seed):
    """Return the losses of a model. The seed determines the weights and the data."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(4, 3, generator=generator).requires_grad_()
    x, y = torch.randn(16, 4, generator=generator), torch.randn(16, 3, generator=generator)
    optimizer = torch.optim.SGD([weight], lr=0.05, momentum=0.9)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(torch.tanh(x @ weight), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_ten_threads_train_as_one_after_the_other(eager_switching):
    assert run_together(10, train) == [train(seed) for seed in range(10)]


def test_backward_in_many_threads_over_shared_leaves_loses_no_gradient(eager_switching):
    threads, repeats = 8, 100
    weight = torch.zeros(3, requires_grad=True)
    bias = torch.zeros((), requires_grad=True)

    def accumulate(number):
        for _ in range(repeats):
            (weight * float(number) + bias).sum().backward()

    run_together(threads, accumulate)
    assert weight.grad.tolist() == [repeats * sum(range(threads))] * 3
    assert bias.grad.item() == 3.0 * repeats * threads


def test_backward_in_many_threads_through_one_retained_graph(eager_switching):
    threads, repeats = 8, 50
    x = torch.ones(2, requires_grad=True)
    y = (x * x * 3.0).sum()

    def again(_):
        for _ in range(repeats):
            y.backward(retain_graph=True)

    run_together(threads, again)
    assert x.grad.tolist() == [6.0 * threads * repeats] * 2


def test_grad_in_many_threads_does_not_mix(eager_switching):
    x = torch.ones(2, requires_grad=True)

    def derivative(number):
        return [torch.autograd.grad((x * number).sum(), x)[0].tolist() for _ in range(50)]

    for number, found in enumerate(run_together(8, derivative)):
        assert found == [[number, number]] * 50
    assert x.grad is None


def test_hooks_of_shared_leaves_run_once_for_each_backward(eager_switching):
    calls = []
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: calls.append(grad.sum().item()))
    run_together(8, lambda number: (x * number).sum().backward())
    assert sorted(calls) == [2.0 * number for number in range(8)]


def test_graph_made_in_one_thread_runs_backward_in_another():
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert x.grad.tolist() == [2.0, 2.0]


def in_new_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_grad_mode_is_of_one_thread():
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert in_new_thread(torch.is_grad_enabled)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        assert not in_new_thread(torch.is_inference_mode_enabled)

    def turn_off():
        torch.set_grad_enabled(False)
        return torch.is_grad_enabled()

    assert not in_new_thread(turn_off)
    assert torch.is_grad_enabled()


def test_modes_do_not_leak_between_threads_that_run_at_once(eager_switching):
    x = torch.ones(2, requires_grad=True)

    def record(number):
        seen = set()
        for _ in range(100):
            if number % 2:
                with torch.no_grad():
                    seen.add((x * 2).requires_grad)
            else:
                seen.add((x * 2).requires_grad)
        return seen

    assert run_together(8, record) == [{True}, {False}] * 4


def test_saved_tensors_hooks_are_of_one_thread():
    packed = []
    x = torch.ones(2, requires_grad=True)

    def pack(tensor):
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        in_new_thread(lambda: x.pow(2))
        assert packed == []
        x.pow(2)
        assert len(packed) == 1


def test_an_error_in_one_thread_leaves_the_others_alone(eager_switching):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("meant to fail")

    x = torch.zeros(1, requires_grad=True)

    def backward(number):
        if number % 2:
            with pytest.raises(ValueError, match="meant to fail"):
                Fails.apply(x).sum().backward()
        else:
            (x * 1.0).sum().backward()

    run_together(8, backward)
    assert x.grad.item() == 4.0


class Meeting(torch.autograd.Function):
    """The identity. The `jvp` of the function lets another thread run, and waits for this thread."""

    @staticmethod
    def forward(x, other):
        return x * 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.other = inputs[1]

    @staticmethod
    def jvp(ctx, tangent, other):
        thread = threading.Thread(target=ctx.other)
        thread.start()
        thread.join()
        return tangent * 1


def test_a_transform_that_ends_in_another_thread_lets_this_one_note_what_it_creates():
    def filled(x):
        x = Meeting.apply(x, lambda: torch.func.grad(torch.sum)(torch.ones(3)))
        made = torch.zeros(3)
        made[0] = x[0] ** 2
        made.mul_(3)
        return made.sum()

    x = torch.tensor([2.0, 1.0, 1.0])
    assert [float(each) for each in torch.func.jvp(filled, (x,), (torch.ones(3),))] == [12, 12]


def squares(x):
    made = torch.zeros(3)
    for place in range(3):
        made[place] = x[place] ** 2
    return made.mul_(2).sum()


TRANSFORMED = {
    "grad": torch.func.grad(squares),
    "grad of grad": torch.func.grad(lambda x: torch.func.grad(squares)(x).sum()),
    "jvp": lambda x: torch.func.jvp(squares, (x,), (x,))[1],
    "jvp of grad": lambda x: torch.func.jvp(torch.func.grad(squares), (x,), (x,))[1],
    "grad of jvp": torch.func.grad(lambda x: torch.func.jvp(squares, (x,), (x,))[1]),
    "vjp": lambda x: torch.func.vjp(squares, x)[1](torch.tensor(1.0))[0],
    "vmap": lambda x: torch.func.vmap(lambda x: x.clone().mul_(x))(torch.stack([x, x])),
    "vmap of grad": lambda x: torch.func.vmap(torch.func.grad(lambda x: (x**2).sum()))(torch.stack([x, x])),
    "jacrev": torch.func.jacrev(lambda x: x.clone().mul_(x)),
    "functionalize": torch.func.functionalize(lambda x: x.clone().mul_(x)),
}


@pytest.mark.thorough
def test_transforms_in_many_threads_do_not_mix(eager_switching):
    x = torch.tensor([1.0, 2.0, 3.0])
    alone = {name: function(x).tolist() for name, function in TRANSFORMED.items()}

    def turn(number):
        names = list(TRANSFORMED) * 3
        return [(name, TRANSFORMED[name](x).tolist()) for name in names[number:] + names[:number]]

    for results in run_together(8, turn):
        assert all(alone[name] == result for name, result in results)


def in_a_thread(function):
    """Call `function()` in another thread, and return the result."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


class Counted(nn.Module):
    """A module that computes its weight at each access, and counts the accesses."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, weight):
        self.count += 1
        return weight * 2


def test_choices_of_one_thread_do_not_reach_another():
    runs = []

    def function(x):
        y = x.exp()
        y = y.sin()
        runs.append(1)
        return y

    def runs_to_the_end():
        runs.clear()
        x = torch.ones(2, requires_grad=True)
        torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False).sum().backward()
        return len(runs) == 2

    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        assert runs_to_the_end()
        assert not in_a_thread(runs_to_the_end)

    layer, counted = nn.Linear(2, 2), Counted()
    nn.utils.parametrize.register_parametrization(layer, "weight", counted)
    with nn.utils.parametrize.cached():
        first = layer.weight
        assert in_a_thread(lambda: layer.weight) is not first
        in_a_thread(lambda: nn.utils.parametrize.cached().__enter__())
        assert layer.weight is first
    with torch.autocast("cpu"):
        assert not in_a_thread(torch.is_autocast_cpu_enabled)


def test_a_trace_in_one_thread_leaves_the_modules_of_others_alone(eager_switching):
    inside, done, seen = threading.Event(), threading.Event(), []

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            inside.set()
            done.wait(10)
            return self.layer(x).relu()

    def other():
        inside.wait(10)
        layer = nn.Linear(2, 2)
        seen.append((layer(torch.ones(2)).shape, torch.fx._symbolic_trace.is_fx_tracing()))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    traced = torch.fx.symbolic_trace(Net())
    thread.join()
    assert seen == [((2,), False)]
    assert [node.op for node in traced.graph.nodes] == ["placeholder", "call_module", "call_method", "output"]

    def trace(number):
        return [node.op for node in torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU())).graph.nodes]

    call = nn.Module.__call__
    assert run_together(8, trace) == [["placeholder", "call_module", "call_module", "output"]] * 8
    assert nn.Module.__call__ is call


def test_tracing_asks_for_attributes_of_its_own_thread_only(eager_switching):
    layer = nn.Linear(2, 2)

    def turn(number):
        if number % 2:
            return torch.fx.symbolic_trace(nn.Linear(2, 2))(torch.zeros(2)).shape
        return {layer(torch.ones(2)).shape for _ in range(50)}.pop()

    assert run_together(8, turn) == [(2,)] * 8

"""Reference counting alone frees graphs of any depth and length: no object remains, even if the garbage collector is off."""

import gc
import sys
import weakref
from pathlib import Path

import pytest

import adjoint as torch
from adjoint import func, nn
from adjoint._runtime.sequence import MOST_CALLS

STATM = Path("/proc/self/statm")
PAGE = 4096
WARM_UP = 100
FREE_LISTS = 10_000  # blocks of freed tuples and similar objects that the interpreter keeps for reuse


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def resident_bytes():
    return int(STATM.read_text().split()[1]) * PAGE if STATM.exists() else 0


def training(make_optimizer):
    """Return a function that trains a small model by one step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = make_optimizer(model.parameters())
    x, target = torch.randn(16, 4), torch.arange(16) % 3

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def growth(step, warm_up, steps):
    """Return how many of Python's memory blocks and how many resident bytes the steps after the warm-up leave behind."""
    noted, x = nn.ReLU(), torch.ones(1, requires_grad=True)
    for _ in range(MOST_CALLS):
        noted(x)
    for _ in range(warm_up):
        step()
    blocks, resident = sys.getallocatedblocks(), resident_bytes()
    for _ in range(steps):
        step()
    return sys.getallocatedblocks() - blocks, resident_bytes() - resident


@pytest.mark.thorough
def test_thousands_of_training_steps_leave_nothing_behind():
    blocks, resident = growth(training(lambda p: torch.optim.SGD(p, lr=0.01)), warm_up=WARM_UP, steps=4_000)
    assert blocks < 100
    assert resident < 2_000_000


@pytest.mark.thorough
def test_momentum_leaves_nothing_behind():
    step = training(lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4))
    blocks, resident = growth(step, warm_up=WARM_UP, steps=1_000)
    assert blocks < 100
    assert resident < 2_000_000


@pytest.mark.thorough
def test_bias_correction_leaves_no_more_behind_than_a_bounded_table():
    """Each step multiplies by different numbers. The cache of numbers must not grow without limit."""
    blocks, resident = growth(training(lambda p: torch.optim.AdamW(p, lr=0.01)), warm_up=WARM_UP, steps=10_000)
    assert blocks < 40_000
    assert resident < 4_000_000


def deep_chain(length):
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(length):
        y = y * 1.0
    return x, y


@pytest.mark.thorough
def test_a_chain_of_a_million_nodes_records_runs_backward_and_dies():
    x, y = deep_chain(10)  # the first chain creates permanent objects
    y.backward()
    del x, y
    before = sys.getallocatedblocks()
    x, y = deep_chain(1_000_000)
    y.backward()
    assert x.grad.item() == 1.0
    del x, y
    assert sys.getallocatedblocks() - before < FREE_LISTS


@pytest.mark.thorough
def test_a_chain_of_a_million_nodes_dies_without_backward():
    before = sys.getallocatedblocks()
    x, y = deep_chain(1_000_000)
    del x, y
    assert sys.getallocatedblocks() - before < FREE_LISTS


# ---------------------------------------------------------------- no reference cycles


GRAPHS = {}


def graph(function):
    """Register a function that takes a leaf of shape (4, 4), and returns tensors that must be freed when they are dropped."""
    GRAPHS[function.__name__] = function
    return function


@graph
def arithmetic(x):
    y = (x * x + x / 2 - x).sum()
    y.backward()
    return [y]


@graph
def arithmetic_without_backward(x):
    return [(x * x + x / 2 - x).sum()]


@graph
def saved_results(x):
    y = torch.softmax(x.exp().tanh().sigmoid(), dim=1)
    return [y, y.sqrt()]


@graph
def views(x):
    rows = x.t()[1:].reshape(-1).view(3, 4).unbind()
    return [*rows, x.unsqueeze(0).expand(3, 4, 4)]


@graph
def in_place_on_a_view(x):
    base = x * 2
    view = base[0]
    view.mul_(3)
    view.add_(base[1])
    base.sum().backward()
    return [base, view]


@graph
def in_place_chain(x):
    y = x * 1
    for _ in range(10):
        y.mul_(2).add_(1)
    y[0] = 0
    y.sum().backward()
    return [y]


@graph
def indexing(x):
    y = x[torch.tensor([0, 1]), torch.tensor([1, 2])] + x[x > 0].sum()
    return [y]


@graph
def several_outputs(x):
    values, indices = x.max(dim=0)
    return [values, indices, *x.topk(2), *x.split(2)]


@graph
def higher_derivatives(x):
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    return [y, first, second]


@graph
def retained_gradients(x):
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    return [y]


@graph
def tensor_hooks(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 2)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.sum().backward()
    return [y]


@graph
def saved_tensors_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x.exp() * x
    y.sum().backward()
    return [y]


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        result = x * factor
        ctx.save_for_backward(x, result)
        ctx.factor = factor
        return result

    @staticmethod
    def backward(ctx, grad):
        _ = ctx.saved_tensors
        return grad * ctx.factor, None


@graph
def custom_function(x):
    y = Scale.apply(x, 2.0)
    y.sum().backward()
    return [y]


@graph
def custom_function_without_backward(x):
    return [Scale.apply(Scale.apply(x, 2.0), 3.0)]


@graph
def module(x):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    loss = nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 0, 1]))
    loss.backward()
    return [loss, *model.parameters()]


@graph
def failed_backward(x):
    y = x * x
    z = y.exp()
    y.add_(1)
    with pytest.raises(RuntimeError):
        (z * y).sum().backward(torch.ones(2))
    return [y, z]


def _wave(x):
    return (x.sin() * x).sum()


TRANSFORMS = {
    "grad": lambda x: func.grad(_wave)(x),
    "grad of grad": lambda x: func.grad(lambda x: func.grad(_wave)(x).sum())(x),
    "vmap of grad": lambda x: func.vmap(func.grad(_wave))(x),
    "jacrev": lambda x: func.jacrev(torch.sin)(x),
    "jacfwd": lambda x: func.jacfwd(torch.sin)(x),
    "hessian": lambda x: func.hessian(_wave)(x),
    "vjp": lambda x: func.vjp(torch.sin, x)[1](x),
    "jvp": lambda x: func.jvp(torch.sin, (x,), (x,)),
    "linearize": lambda x: func.linearize(torch.sin, x)[1](x),
    "functionalize": lambda x: func.functionalize(lambda x: x.clone().add_(1))(x),
    "autograd.functional": lambda x: torch.autograd.functional.hessian(_wave, x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_leave_no_cycle(name):
    TRANSFORMS[name](torch.ones(4, 4))  # the first call creates permanent objects
    gc.collect()
    x = torch.ones(4, 4)
    died = weakref.ref(x)
    TRANSFORMS[name](x)
    del x
    assert died() is None
    assert gc.collect() == 0


def test_errors_of_hooks_are_not_kept_by_frames():
    def fail(grad):
        raise ZeroDivisionError

    x = torch.ones(3, requires_grad=True)
    x.register_hook(fail)
    died = weakref.ref(x)
    with pytest.raises(ZeroDivisionError):
        (x * x).sum().backward()
    with pytest.raises(ZeroDivisionError):
        torch.autograd.grad((x * x).sum(), x)
    del x
    assert died() is None


@graph
def saved_attributes_looked_at(x):
    y = x.pow(2).exp()
    _ = y.grad_fn._saved_result, y.grad_fn.next_functions, y.grad_fn.metadata
    return [y]


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_dies_at_once_without_the_collector(name):
    make = GRAPHS[name]
    make(torch.randn(4, 4, requires_grad=True))  # the first call creates permanent objects
    gc.collect()

    leaf = torch.randn(4, 4, requires_grad=True)
    tensors = make(leaf)
    watched = [weakref.ref(tensor) for tensor in (*tensors, leaf)]
    del tensors, leaf
    assert [ref() for ref in watched] == [None] * len(watched)
    assert gc.collect() == 0


def test_modules_and_optimizers_die_at_once_too():
    def make():
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        return [weakref.ref(thing) for thing in (model, model[0], model[0].weight)]

    make()
    gc.collect()
    assert [ref() for ref in make()] == [None] * 3


def test_tangents_die_with_their_tensors_while_their_level_goes_on():
    kept = []

    def f(x):
        first = x.sin()
        kept.append(weakref.ref(torch.autograd.forward_ad.unpack_dual(first).tangent))
        second = first.cos()
        del first
        kept.append(kept[0]() is None)
        return second

    with torch.autograd.forward_ad.dual_level():
        result = f(torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2)))
        assert kept[1]
        assert torch.autograd.forward_ad.unpack_dual(result).tangent is not None
    assert torch.autograd.forward_ad.unpack_dual(result).tangent is None

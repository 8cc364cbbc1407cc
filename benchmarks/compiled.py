"""Compiled functions: each case in adjoint, with and without compilation, in PyTorch, and in JAX if it is installed."""

import gc
import re
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from types import ModuleType
from typing import Any

from benchmarks import models
from benchmarks.cases import Timed
from benchmarks.runner import QUICK, Settings, calibrated, timed_round

Case = Callable[[ModuleType, Callable[[Any], Any]], Timed]
CASES: dict[str, Case] = {}
IN_JAX: dict[str, Callable[[], Timed]] = {}


def case(name: str) -> Callable[[Case], Case]:
    """Register a case: a function that takes the library and the library's compiling function."""

    def register(prepare: Case) -> Case:
        CASES[name] = prepare
        return prepare

    return register


def in_jax(name: str) -> Callable[[Callable[[], Timed]], Callable[[], Timed]]:
    """Register the JAX form of a case."""

    def register(prepare: Callable[[], Timed]) -> Callable[[], Timed]:
        IN_JAX[name] = prepare
        return prepare

    return register


MLP, SCALARS, SCALAR_MLP, RNN, HESSIAN, WIDE_MLP = (
    "tiny MLP, training step with SGD",
    "scalar graph, gradients",
    "scalar MLP of 200 operations, gradients",
    "RNN of 30 steps, gradients",
    "Hessian of 20 dimensions",
    "MLP 512-512-512-10, SGD, batch 64",
)


@case(MLP)
def mlp(torch: ModuleType, compiled: Callable[[Any], Any]) -> Timed:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(8, 4), torch.randn(8, 1)

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: step(x, y)


@in_jax(MLP)
def mlp_in_jax() -> Timed:
    import jax
    from jax import numpy

    def loss(weights, x, y):
        first, bias, second, last = weights
        return (((numpy.tanh(x @ first + bias) @ second + last) - y) ** 2).mean()

    @jax.jit
    def step(weights, x, y):
        value, grads = jax.value_and_grad(loss)(weights, x, y)
        return value, [weight - 0.01 * grad for weight, grad in zip(weights, grads, strict=True)]

    keys = jax.random.split(jax.random.key(0), 6)
    shapes = ((4, 16), (16,), (16, 1), (1,), (8, 4), (8, 1))
    *weights, x, y = [jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)]
    held = [weights]

    def run():
        value, held[0] = step(held[0], x, y)
        return value.block_until_ready()

    return run


def expression(a: Any, b: Any, relu: Callable[[Any], Any]) -> Any:
    """Compute the expression in micrograd's README."""
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c + (-a)
    d = d + d * 2 + relu(b + a)
    d = d + 3 * d + relu(b - a)
    e = c - d
    f = e**2
    return f / 2.0 + 10.0 / f


@case(SCALARS)
def scalars(torch: ModuleType, compiled: Callable[[Any], Any]) -> Timed:
    a, b = torch.tensor(-4.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)

    @compiled
    def gradients(a, b):
        return torch.autograd.grad(expression(a, b, torch.relu), (a, b))

    return lambda: gradients(a, b)


@in_jax(SCALARS)
def scalars_in_jax() -> Timed:
    import jax

    gradients = jax.jit(jax.grad(lambda a, b: expression(a, b, jax.nn.relu), (0, 1)))
    a, b = jax.numpy.float32(-4.0), jax.numpy.float32(2.0)
    return lambda: gradients(a, b)[0].block_until_ready()


@case(SCALAR_MLP)
def scalar_mlp(torch: ModuleType, compiled: Callable[[Any], Any]) -> Timed:
    weights = torch.randn(100, requires_grad=True)

    @compiled
    def gradient(weights, x):
        for weight in weights.unbind():
            x = (x * weight).tanh()
        return torch.autograd.grad(x, weights)

    x = torch.tensor(0.5)
    return lambda: gradient(weights, x)


@in_jax(SCALAR_MLP)
def scalar_mlp_in_jax() -> Timed:
    import jax

    def value(weights, x):
        for index in range(100):
            x = jax.numpy.tanh(x * weights[index])
        return x

    gradient = jax.jit(jax.grad(value))
    weights, x = jax.random.normal(jax.random.key(0), (100,)), jax.numpy.float32(0.5)
    return lambda: gradient(weights, x).block_until_ready()


@case(RNN)
def rnn(torch: ModuleType, compiled: Callable[[Any], Any]) -> Timed:
    inner, outer = (torch.randn(*shape) * 0.3 for shape in ((16, 16), (8, 16)))
    inner.requires_grad_()
    outer.requires_grad_()
    x, start = torch.randn(30, 4, 8), torch.zeros(4, 16)

    @compiled
    def gradients(inner, outer, x, hidden):
        for step in range(30):
            hidden = torch.tanh(x[step] @ outer + hidden @ inner)
        return torch.autograd.grad((hidden * hidden).mean(), (inner, outer))

    return lambda: gradients(inner, outer, x, start)


@in_jax(RNN)
def rnn_in_jax() -> Timed:
    import jax
    from jax import numpy

    def loss(inner, outer, x, hidden):
        hidden, _ = jax.lax.scan(lambda h, x: (numpy.tanh(x @ outer + h @ inner), None), hidden, x)
        return (hidden * hidden).mean()

    gradients = jax.jit(jax.grad(loss, (0, 1)))
    keys = jax.random.split(jax.random.key(0), 3)
    inner, outer, x = (
        jax.random.normal(key, shape) for key, shape in zip(keys, ((16, 16), (8, 16), (30, 4, 8)), strict=True)
    )
    start = numpy.zeros((4, 16))
    return lambda: gradients(inner, outer, x, start)[0].block_until_ready()


@case(HESSIAN)
def hessian(torch: ModuleType, compiled: Callable[[Any], Any]) -> Timed:
    mixed, x = torch.randn(20, 20), torch.randn(20)
    found = compiled(torch.func.hessian(lambda x: (mixed @ x).tanh().pow(2).sum()))
    return lambda: found(x)


@in_jax(HESSIAN)
def hessian_in_jax() -> Timed:
    import jax

    mixed, x = (jax.random.normal(jax.random.key(seed), shape) for seed, shape in enumerate(((20, 20), (20,))))
    found = jax.jit(jax.hessian(lambda x: (jax.numpy.tanh(mixed @ x) ** 2).sum()))
    return lambda: found(x).block_until_ready()


@case(WIDE_MLP)
def wide_mlp(torch: ModuleType, compiled: Callable[[Any], Any]) -> Timed:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.randn(64, 512), torch.randint(0, 10, (64,))

    @compiled
    def step(x, target):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return lambda: step(x, target)


@in_jax(WIDE_MLP)
def wide_mlp_in_jax() -> Timed:
    import jax
    from jax import numpy

    def loss(weights, x, target):
        for weight, bias in weights[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = weights[-1]
        scores = jax.nn.log_softmax(x @ weight + bias)
        return -numpy.take_along_axis(scores, target[:, None], 1).mean()

    @jax.jit
    def step(weights, x, target):
        value, grads = jax.value_and_grad(loss)(weights, x, target)
        return value, jax.tree.map(lambda weight, grad: weight - 0.01 * grad, weights, grads)

    keys = jax.random.split(jax.random.key(0), 8)
    sizes = ((512, 512), (512, 512), (512, 10))
    weights = [
        (jax.random.normal(key, size) * size[0] ** -0.5, numpy.zeros(size[1]))
        for key, size in zip(keys, sizes, strict=False)
    ]
    x, target = jax.random.normal(keys[6], (64, 512)), jax.random.randint(keys[7], (64,), 0, 10)
    held = [weights]

    def run():
        value, held[0] = step(held[0], x, target)
        return value.block_until_ready()

    return run


def of_models() -> dict[str, Case]:
    """Register the training steps of the group of models. The compiled function is the whole step."""
    return {each.name: lambda torch, compiled, each=each: compiled(each.prepare(torch)) for each in models.GROUP.cases}


def runs(timed: Timed) -> bool:
    """Say whether a case that PyTorch has compiled runs: its compiler fails on some training steps."""
    try:
        timed()
        timed()
    except RuntimeError as error:
        print(f"torch.compile: {type(error).__name__}: {str(error)[:90]}")
        return False
    return True


def run(
    quick: bool, only: re.Pattern[str], width: int, duration: Callable[[float], str], inductor: bool
) -> list[dict[str, Any]]:
    """Time the cases whose names match `only`. Print and return the medians of alternate rounds.

    `inductor`: whether to measure PyTorch's `torch.compile`, which needs a C++ compiler and up to a minute for each
    case.
    """
    settings = QUICK if quick else Settings()
    adjoint, torch = import_module("adjoint"), import_module("torch")
    heads = ("compiled", "adjoint", "torch", "inductor", "jax")
    print(f"\n{'compiled functions':<{width}}" + "".join(f"{head:>11}" for head in heads))
    results = []
    for name, prepare in (CASES | of_models()).items():
        if not only.search(name):
            continue
        contenders = {
            "compiled": prepare(adjoint, adjoint.compile),
            "adjoint": prepare(adjoint, lambda function: function),
            "torch": prepare(torch, lambda function: function),
        }
        if inductor and runs(compiled := prepare(torch, torch.compile)):
            contenders["inductor"] = compiled
        if name in IN_JAX and find_spec("jax") is not None:
            contenders["jax"] = IN_JAX[name]()
        loops = {head: calibrated(timed, settings.round_seconds) for head, timed in contenders.items()}
        times: dict[str, list[float]] = {head: [] for head in contenders}
        gc.collect()
        for number in range(settings.rounds):
            for head in contenders if number % 2 == 0 else reversed(contenders):
                times[head].append(timed_round(contenders[head], loops[head]))
        medians = {head: median(values) for head, values in times.items()}
        results.append({"group": "compiled", "case": name, **medians})
        print(
            f"{name:<{width}}"
            + "".join(f"{duration(medians[head]) if head in medians else '-':>11}" for head in heads),
            flush=True,
        )
    return results

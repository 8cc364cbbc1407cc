"""Passes over captured programs remove work, and do not change results."""

import gc
import tracemalloc
import weakref

import pytest

import adjoint as torch
from adjoint.compiler import passes
from adjoint.compiler.tracer import Tracer

from .comparison import assert_alike, assert_as_eager, reason_of

nn, F = torch.nn, torch.nn.functional

WAYS = {
    "a product": lambda x, y, z: (z @ x).sum() + (y * y).sum(),
    "a sum of both": lambda x, y, z: (x + y).exp().sum(),
    "one of both, turned": lambda x, y, z: (x + y.T).exp().sum(),
    "a part": lambda x, y, z: (x[1:] * 2).sum() + y[:, 0].sum(),
    "spread": lambda x, y, z: x.sum() + y.mean(),
    "used twice": lambda x, y, z: (x * x @ y).tanh().sum() + (x @ y).sum(),
}


@pytest.mark.parametrize("size", [4, 300])
@pytest.mark.parametrize("returned", [False, True], ids=["", "returned"])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_equal_those_without_compile(way, returned, size):
    """Gradients share no memory, so a change of one gradient, or of a result, changes no other gradient."""

    def train(compile):
        torch.manual_seed(0)
        x, y, z = (nn.Parameter(torch.randn(size, size)) for _ in range(3))
        x.requires_grad_()
        optimizer = torch.optim.SGD([x, y], lr=0.1)

        def step(z):
            optimizer.zero_grad()
            loss = WAYS[way](x, y, z)
            if returned:
                (slope,) = torch.autograd.grad(loss, x, retain_graph=True)
                loss.backward()
                return loss, slope
            loss.backward()
            nn.utils.clip_grad_value_([x], 0.5)
            return loss, None

        run, found = torch.compile(step) if compile else step, []
        for number in range(4):
            loss, slope = run(z.detach())
            if slope is not None and 0 not in slope.stride():
                slope.zero_()
            y.grad.mul_(number)
            found += [loss.detach(), x.grad.clone(), y.grad.clone(), x.grad._version]
            optimizer.step()
        return [*found, x.detach(), y.detach()], run

    found, run = train(True)
    assert reason_of(run) is None
    assert_alike(found, train(False)[0], way)


def test_gradients_are_not_copied():
    model = nn.Sequential(nn.Linear(70, 200), nn.ReLU(), nn.Linear(200, 300))
    x = torch.randn(400, 70)

    @torch.compile
    def step():
        model.zero_grad()
        model(x).square().mean().backward()

    for _ in range(2):
        step()
    (variant,) = step.compiled.variants
    assert "clone" in [each.name for each in variant.program.instructions]
    assert "clone" not in [each.name for each in variant.body.steps.values()]
    assert not any("clone" in str(each) for each in variant.program.natives)


@pytest.fixture
def any_peak(monkeypatch):
    """Let passes recompute values even if this saves little memory."""
    monkeypatch.setattr(passes, "WORTHWHILE", 0)


CHAINS = {
    "views of copies": lambda x, y: (x * 2).clone().T[1:].exp().sum() + (y - 1).clone().reshape(-1)[3:] * 2,
    "in place of operands": lambda x, y: torch.relu(x @ y).add(x).mul(y).sigmoid() + torch.relu(y @ x).tanh(),
    "the other operand": lambda x, y: x + (y @ x) + F.gelu(x @ y),
    "views of operands": lambda x, y: F.silu(F.gelu((x @ y).T.contiguous().T).T)[1:] + F.relu(x.T @ y)[:-1],
    "used again": lambda x, y: [(z := x @ y), F.relu(z), F.relu(F.relu(z) + z)][2],
    "written": lambda x, y: (z := F.relu(x @ y), z.mul_(2), z.T.add_(y), F.relu(z) + x)[3],
    "both operands": lambda x, y: (z := x @ y) + z.T,
    "with itself": lambda x, y: F.relu((z := x @ y) + z),
    "rows": lambda x, y: F.layer_norm(F.softmax(F.gelu(x @ y), -1) + x, x.shape[-1:]),
    "far apart": lambda x, y: far_apart(x, y),
    "far apart, with changes": lambda x, y: far_apart(x, y, changing=True),
}


def far_apart(x, y, changing=False):
    """Compute large values, and use the same values much later."""
    first = x @ y
    kept = [F.gelu(first), F.layer_norm(first * 2, first.shape[-1:])]
    total = sum(kept).T @ x
    for _ in range(3):
        total = F.relu(total @ y) / 300
    if changing:
        first.mul_(2)
    return total + kept[0] + kept[1].T + first


@pytest.mark.parametrize("size", [5, 300])
@pytest.mark.parametrize("way", CHAINS)
def test_values_equal_those_without_compile(way, size, any_peak):
    with torch.no_grad():
        assert_as_eager(CHAINS[way], lambda number: [torch.randn(size, size), torch.randn(size, size)])
    if way != "written" and "changes" not in way:
        given = [torch.randn(size, size, requires_grad=True), torch.randn(size, size, requires_grad=True)]
        assert_as_eager(CHAINS[way], lambda number: given)


@pytest.mark.parametrize("worthwhile", [0, 1 << 24])
def test_only_large_programs_compute_values_again(worthwhile, monkeypatch):
    monkeypatch.setattr(passes, "WORTHWHILE", worthwhile)
    model, x = nn.Sequential(*[nn.Sequential(nn.Linear(300, 300), nn.GELU()) for _ in range(4)]), torch.randn(400, 300)

    @torch.compile
    def step():
        model.zero_grad()
        model(x).square().mean().backward()

    for _ in range(2):
        step()
    (variant,) = step.compiled.variants
    assert any(each.name == "drop" for each in variant.body.steps.values()) is (worthwhile == 0)


@pytest.mark.thorough
def test_less_memory_is_in_use(any_peak):
    """Programs recompute the values of activations and of normalizations."""
    layers = [nn.Sequential(nn.LayerNorm(300), nn.Linear(300, 300), nn.GELU(), nn.Linear(300, 300)) for _ in range(4)]
    model, x, peaks = nn.Sequential(*layers), torch.randn(400, 300), []

    def step():
        model.zero_grad()
        model(x).square().mean().backward()

    for run in (step, torch.compile(step)):
        for _ in range(3):
            run()
        tracemalloc.start()
        run()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 0.8 * peaks[0]


@pytest.mark.parametrize("block", [(nn.LayerNorm, nn.GELU), (nn.LayerNorm, nn.Sigmoid, nn.Tanh), (nn.GELU, nn.SiLU)])
def test_values_that_are_computed_again_from_others_that_are(block, any_peak):
    torch.manual_seed(0)
    model = nn.Sequential(
        *[
            layer
            for _ in range(6)
            for layer in (nn.Linear(100, 100), *[each(*[100] * (each is nn.LayerNorm)) for each in block])
        ]
    )

    def step(x):
        model.zero_grad()
        loss = (model(x) - x).pow(2).mean()
        loss.backward()
        return [loss, *(each.grad.clone() for each in model.parameters())]

    compiled = torch.compile(step)
    for _ in range(3):
        x = torch.randn(600, 100)
        assert_alike(compiled(x), step(x), strides=False)
    assert compiled.compiled.variants


@pytest.mark.parametrize("size", [5, 200])
def test_a_row_becomes_a_column_of_its_own_array(size):
    def function(x):
        y = x + 1
        z = y.t()
        z.add_(1)
        y[4] = z[3]
        w = y[::2]
        w.sigmoid_()
        return y

    compiled = torch.compile(function)
    for _ in range(3):
        x = torch.randn(size, size)
        assert_alike(compiled(x), function(x))
    assert compiled.compiled.variants


def test_a_program_keeps_no_array_of_its_capture(monkeypatch):
    def append(tracer, plan, call, operands):
        append_results(tracer, plan, call, operands)
        arrays.extend(map(weakref.ref, call.results))

    arrays, append_results = [], Tracer.append_results
    monkeypatch.setattr(Tracer, "append_results", append)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    compiled = torch.compile(lambda x: model(x).exp())
    for _ in range(3):
        compiled(torch.randn(5, 4)).sum().backward()
    gc.collect()
    assert len(arrays) > 10 and not any(each() is not None for each in arrays)


FAILING = {
    "atan2": lambda x: x.atan2("a"),
    "logaddexp": lambda x: torch.logaddexp(x, "a"),
    "no operand": lambda x: x.fmin(),
}


@pytest.mark.parametrize("case", FAILING)
def test_errors_of_operators_that_were_never_called_before(case):
    with pytest.raises(TypeError) as found:
        torch.compile(FAILING[case])(torch.ones(3))
    with pytest.raises(TypeError) as expected:
        FAILING[case](torch.ones(3))
    assert str(found.value).partition("\n")[0] == str(expected.value).partition("\n")[0]

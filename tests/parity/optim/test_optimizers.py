"""Optimizers and schedulers agree with PyTorch: printed form, refused arguments, saved states and steps."""

import copy
import pickle
import random
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")

from tests.parity.behaviour import assert_same
from tests.parity.candidate import candidate
from tests.parity.comparison import results_differ
from tests.parity.conversion import to_array

pytestmark = pytest.mark.computed

OPTIMIZERS = """
SGD()
SGD(lr=0.1, momentum=0.9)
SGD(lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.1)
SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)
SGD(lr=0.001, momentum=0.5, maximize=True)
SGD(lr=0.01, weight_decay=0.3, foreach=True)
SGD(lr=0.01, weight_decay=0.3, foreach=False, fused=None)
SGD(lr=torch.tensor(0.1), momentum=0.9)
Adam()
Adam(lr=0.1, betas=(0.8, 0.9), eps=1e-4)
Adam(weight_decay=0.1, amsgrad=True)
Adam(maximize=True)
Adam(lr=torch.tensor(0.01))
Adam(weight_decay=0.1, decoupled_weight_decay=True)
AdamW()
AdamW(weight_decay=0.3, amsgrad=True, maximize=True)
Adagrad()
Adagrad(lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)
Adagrad(maximize=True)
RMSprop()
RMSprop(weight_decay=0.1, momentum=0.9, centered=True)
RMSprop(momentum=0.5, maximize=True)
RMSprop(centered=True)
Adadelta()
Adadelta(lr=0.5, rho=0.8, weight_decay=0.1, maximize=True)
Adamax()
Adamax(lr=0.1, weight_decay=0.1, maximize=True)
NAdam()
NAdam(lr=0.1, weight_decay=0.1, momentum_decay=0.01)
NAdam(weight_decay=0.1, decoupled_weight_decay=True, maximize=True)
RAdam()
RAdam(lr=0.1, weight_decay=0.1)
RAdam(weight_decay=0.1, decoupled_weight_decay=True, maximize=True)
ASGD()
ASGD(lr=0.001, t0=2, weight_decay=0.1, maximize=True)
Rprop()
Rprop(lr=0.1, etas=(0.4, 1.3), step_sizes=(1e-3, 1), maximize=True)
LBFGS()
LBFGS(lr=0.5, max_iter=5, history_size=3)
LBFGS(line_search_fn="strong_wolfe")
LBFGS(line_search_fn="strong_wolfe", max_iter=3, max_eval=6)
""".strip().split("\n")

DTYPES = ["float32", "float64", "complex64"]


def make(library, line, params):
    name, _, options = line.partition("(")
    return eval(f"optim.{name}(params, {options}", {"optim": library.optim, "torch": library, "params": params})


def problem(library, dtype):
    """Return parameters of several shapes, and a function to minimize that depends on products of the parameters."""
    random = numpy.random.RandomState(0)

    def draw(*shape):
        values = random.randn(*shape) + (1j * random.randn(*shape) if dtype.startswith("complex") else 0)
        return library.from_numpy(numpy.asarray(values, dtype))

    params = [library.nn.Parameter(draw(*shape)) for shape in ((3, 2), (2,), ())]
    inputs = draw(5, 3)

    def loss():
        residual = (inputs @ params[0] + params[1]) * params[2] - 1
        value = (residual * residual.conj()).real if dtype.startswith("complex") else residual * residual
        return value.mean()

    return params, loss


def train(library, optimizer, loss, steps):
    """Train, and return the losses."""
    losses = []

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        losses.append(value.item())
        return value

    for _ in range(steps):
        optimizer.step(closure)
    return losses


def assert_equal(actual, expected):
    difference = results_differ(actual, expected)
    assert difference is None, difference


# After a few steps, the path of L-BFGS depends on rounding errors, unless the errors are very small.
TRAJECTORIES = [
    (line, dtype) for line in OPTIMIZERS for dtype in DTYPES if dtype == "float64" or not line.startswith("LBFGS")
]


@pytest.mark.parametrize(("line", "dtype"), TRAJECTORIES)
def test_trajectories(line, dtype):
    sides = []
    for library in (candidate, torch):
        params, loss = problem(library, dtype)
        optimizer = make(library, line, params)
        losses = train(library, optimizer, loss, 2 if line.startswith("LBFGS") else 7)
        state = optimizer.state_dict()
        sides.append((losses, [p.detach() for p in params], state, repr(optimizer)))
    (losses, params, state, text), (expected_losses, expected_params, expected_state, expected_text) = sides
    assert text == expected_text
    tolerance = 2e-4 if dtype != "float64" else 1e-6 if line.startswith("LBFGS") else 1e-9
    numpy.testing.assert_allclose(losses, expected_losses, tolerance)
    for actual, expected in zip(params, expected_params, strict=True):
        numpy.testing.assert_allclose(to_array(actual), to_array(expected), tolerance, tolerance)
    assert list(state) == list(expected_state)
    assert str(state["param_groups"]) == str(expected_state["param_groups"])
    assert {k: set(v) for k, v in state["state"].items()} == {k: set(v) for k, v in expected_state["state"].items()}
    for key, values in expected_state["state"].items():
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                actual = state["state"][key][name]
                assert str(actual.dtype) == str(value.dtype)
                numpy.testing.assert_allclose(to_array(actual), to_array(value), tolerance * 10, tolerance * 10)


@pytest.mark.parametrize("line", [line for line in OPTIMIZERS if not line.startswith("LBFGS")])
def test_states_can_be_saved_and_go_on(line):
    params, loss = problem(candidate, "float64")
    optimizer = make(candidate, line, params)
    train(candidate, optimizer, loss, 3)
    saved, at = copy.deepcopy(optimizer.state_dict()), [p.detach().clone() for p in params]
    train(candidate, optimizer, loss, 3)
    other, other_loss = problem(candidate, "float64")
    for p, value in zip(other, at, strict=True):
        p.data.copy_(value)
    resumed = make(candidate, line, other)
    resumed.load_state_dict(pickle.loads(pickle.dumps(saved)))
    train(candidate, resumed, other_loss, 3)
    # ASGD and NAdam store some numbers in float32. A loaded state contains these numbers in the dtype of the parameters, as in
    # PyTorch.
    tolerance = 1e-6 if line.startswith(("ASGD", "NAdam")) else 0
    for actual, expected in zip(other, params, strict=True):
        numpy.testing.assert_allclose(to_array(actual), to_array(expected), tolerance)


def test_a_state_of_pytorch_goes_on_here():
    params, loss = problem(torch, "float64")
    optimizer = torch.optim.Adam(params, lr=0.1, amsgrad=True)
    train(torch, optimizer, loss, 3)

    def convert(value):
        if isinstance(value, torch.Tensor):
            return candidate.from_numpy(to_array(value).copy())
        if isinstance(value, dict):
            return {k: convert(v) for k, v in value.items()}
        return [convert(v) for v in value] if isinstance(value, list) else value

    ours, our_loss = problem(candidate, "float64")
    for p, value in zip(ours, params, strict=True):
        p.data.copy_(candidate.from_numpy(to_array(value).copy()))
    resumed = candidate.optim.Adam(ours)
    resumed.load_state_dict(convert(optimizer.state_dict()))
    train(candidate, resumed, our_loss, 3)
    train(torch, optimizer, loss, 3)
    for actual, expected in zip(ours, params, strict=True):
        numpy.testing.assert_allclose(to_array(actual), to_array(expected), 1e-12)


SETUP = """
P = lambda *s: nn.Parameter(torch.ones(*(s or (2,))))
p = P()
SGD, Adam = optim.SGD, optim.Adam
log = []
"""

LINES = """
SGD(P())
SGD([])
SGD([3])
SGD([P() * 2])
SGD(3)
SGD('abc')
SGD({P()})
SGD(({'params': {P()}},))
SGD([{'params': [P()]}, {'params': P(), 'lr': 3}])
SGD([p, p])
SGD([{'params': [p]}, {'params': [p]}])
SGD([{'lr': 1}])
SGD(P() for _ in range(2))
SGD([('a', P()), ('b', P())]).state_dict()
SGD([('a', P()), ('b', P())])
SGD([('a', P()), P()])
SGD([P(), ('b', P())])
SGD([{'params': [('a', P())]}, {'params': [P()]}])
SGD([{'params': [P()]}, {'params': [('a', P())]}])
SGD([P(), {'params': [P()]}])
SGD([{'params': [P()]}, P()])
SGD([P()], lr=-1)
SGD([P()], momentum=-1)
SGD([P()], weight_decay=-1)
SGD([P()], nesterov=True)
SGD([P()], nesterov=True, momentum=0.9, dampening=0.1)
SGD([P()], lr=torch.tensor([0.1, 0.2]))
SGD([P()], foreach=True, fused=True)
SGD([P()], differentiable=True, fused=True)
Adam([P()], lr=-1)
Adam([P()], eps=-1)
Adam([P()], betas=(1, 0))
Adam([P()], betas=(0, 1))
Adam([P()], betas=(torch.tensor(0.9), 0.9))
Adam([P()], weight_decay=-1)
Adam([P()], lr=torch.tensor(0.1), foreach=True)
Adam([P()], fused=True, differentiable=True)
optim.Adagrad([P()], lr_decay=-1)
optim.Adagrad([P()], initial_accumulator_value=-1)
optim.Adagrad([P()], eps=-1)
optim.RMSprop([P()], momentum=-1)
optim.RMSprop([P()], alpha=-1)
optim.Adadelta([P()], rho=2)
optim.Adadelta([P()], eps=-1)
optim.Adamax([P()], betas=(2, 1))
optim.NAdam([P()], momentum_decay=-1)
optim.RAdam([P()], betas=(0, 2))
optim.ASGD([P()], weight_decay=-1)
optim.Rprop([P()], etas=(2, 1))
optim.LBFGS([P()], lr=-1)
optim.LBFGS([{'params': [P()]}, {'params': [P()]}])
SGD([p]).add_param_group(3)
SGD([p]).add_param_group({'params': 3})
SGD([p]).add_param_group({'params': [3]})
SGD([p]).add_param_group({'params': {P()}})
SGD([p]).add_param_group({'params': [p]})
SGD([p]).load_state_dict({'state': {}, 'param_groups': []})
SGD([p]).load_state_dict({'state': {}, 'param_groups': [{'params': [0, 1]}]})
SGD([p]).load_state_dict(3)
optim.Optimizer([p], {'a': 1})
optim.Optimizer([p], {}).step()
""".strip().split("\n")

LINES_IN_STEPS = """
o = SGD([p], lr=0.1)
o.add_param_group({'params': P()})
o.add_param_group({'params': [], 'foo': 3})
o.add_param_group({'params': (P(), P()), 'lr': 7})
(o, o.state_dict())

o = SGD([p])
o.load_state_dict({'state': {0: {'foo': torch.ones(2).int(), 'bar': [1, 2], 'baz': {'x': torch.ones(1)}}}, 'param_groups': [{'params': [0]}]})
(dict(o.state[p]), {k: v for k, v in o.param_groups[0].items() if k not in ('params', 'fused')})

o = SGD([p], momentum=0.9)
p.grad = torch.ones(2)
o.step()
d = o.state_dict()
q = SGD([p], momentum=0.9)
q.load_state_dict(d)
(d['state'][0]['momentum_buffer'] is o.state[p]['momentum_buffer'], q.state[p]['momentum_buffer'] is d['state'][0]['momentum_buffer'], q.param_groups[0] is o.param_groups[0])

o = Adam([p])
p.grad = torch.ones(2)
o.step()
q = nn.Parameter(torch.ones(2).double())
o2 = Adam([q])
o2.load_state_dict(o.state_dict())
o2.state[q]

import pickle
import random
from typing import Any
o = Adam([p])
p.grad = torch.ones(2)
o.step()
o2 = pickle.loads(pickle.dumps(o))
(o2, list(o2.state.values()), type(o2.state).__name__, o2.defaults)

o = SGD([p], lr=0.1)
p.grad = torch.ones(2)
hs = [o.register_step_pre_hook(lambda o, a, k: log.append(('pre', len(a), list(k)))), o.register_step_post_hook(lambda o, a, k: log.append(('post', len(a), list(k)))), o.register_state_dict_pre_hook(lambda *a: log.append(len(a))), o.register_state_dict_post_hook(lambda *a: log.append(len(a))), o.register_load_state_dict_pre_hook(lambda *a: log.append(len(a))), o.register_load_state_dict_post_hook(lambda *a: log.append(len(a)))]
o.step()
o.step(lambda: 3.0)
o.step(closure=lambda: 3.0)
o.load_state_dict(o.state_dict())
for h in hs: h.remove()
o.step()
(log, p)

o = SGD([p], lr=0.1)
o.register_step_pre_hook(lambda o, a, k: (a, {'closure': lambda: 7}))
o.step()

o = SGD([p], lr=0.1)
o.register_state_dict_post_hook(lambda o, s: {'x': 1})
o.state_dict()

o = SGD([p], lr=0.1)
p.grad = torch.ones(2)
o.zero_grad(False)
(p.grad, o.zero_grad(), p.grad)

from copy import deepcopy
o = Adam([p])
p.grad = torch.ones(2)
o.step()
[list(s) for s in deepcopy(o).state.values()]

p.grad = torch.ones(2)
v = p._version
SGD([p], lr=0.5).step()
(p._version - v, p)

q = P()
p.grad = torch.ones(2)
SGD([p, q]).step()
(p, q)

o = SGD([p], lr=0.5)
o.step(lambda: (p * p).sum())

class Mine(optim.Optimizer):
    def __init__(self, params): super().__init__(params, {'lr': 1.0})
    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            for q in g['params']: q.sub_(g['lr'] * q.grad)
p.grad = torch.ones(2)
o = Mine([p])
o.register_step_post_hook(lambda *a: log.append('post'))
o.step()
(o, p, log)
""".strip().split("\n\n")  # noqa: E501


@pytest.mark.parametrize("line", LINES + LINES_IN_STEPS)
def test_groups_states_and_refusals(line):
    assert_same(SETUP + line)


def test_a_differentiable_update_is_recorded():
    line = """
w = torch.tensor([1.0, 2.0], requires_grad=True)
q = w * 1
q.grad = w * 3
optim.SGD([q], lr=0.5, differentiable=True).step()
q.sum().backward()
w.grad
"""
    assert_same(line)


def _line_search_trials(module: Any, seed: int) -> list[float]:
    """Return the losses that LBFGS evaluates for a random problem. The losses of some problems contain noise."""
    draw = random.Random(seed)
    kind, lr = draw.choice(["noise", "quadratic"]), draw.choice([0.1, 0.5, 1, 3])
    start = module.tensor([draw.uniform(-2, 2)], dtype=module.float64, requires_grad=True)
    limits = {"max_iter": draw.choice([1, 2, 5]), "max_eval": draw.choice([None, 3, 7, 30])}
    optimizer = module.optim.LBFGS([start], lr=lr, line_search_fn="strong_wolfe", **limits)
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        noise = draw.choice([0, 1, -1, 5]) if kind == "noise" else 0
        loss = (start * start * 3 + start**4).sum() + noise
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return losses


@pytest.mark.parametrize("seed", range(40))
def test_the_line_search_of_lbfgs_tries_the_same_steps(seed: int) -> None:
    numpy.testing.assert_allclose(_line_search_trials(candidate, seed), _line_search_trials(torch, seed), 1e-9, 1e-15)

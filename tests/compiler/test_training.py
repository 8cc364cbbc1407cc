"""Compiled training steps: every optimizer, schedules, scaled losses, clipped and accumulated gradients."""

import copy
import warnings

import pytest

import adjoint as torch
from adjoint.codegen.acceleration import LOOPS
from adjoint.compiler.steps import Step

from .comparison import assert_alike, reason_of

nn, F = torch.nn, torch.nn.functional

OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "SGD with momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    **{
        name: {"lr": 0.01}
        for name in "Adam AdamW Adagrad RMSprop Adadelta Adamax NAdam RAdam ASGD Rprop Adafactor".split()
    },
    "Adam with amsgrad": {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1},
    "RMSprop centered": {"lr": 0.01, "centered": True, "momentum": 0.5},
    "Adam with a tensor lr": {"lr": torch.tensor(0.01)},
}


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)
    ).double()


def made(name, parameters):
    return getattr(torch.optim, name.split()[0])(parameters, **copy.deepcopy(OPTIMIZERS[name]))


def trained(make_step, compile, count=12):
    """Return the losses, parameters, buffers, gradients and the state after some steps."""
    module = model()
    step, after, state = make_step(module)
    called = torch.compile(step) if compile else step
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            torch.manual_seed(number)
            x, y = torch.randn(6, 4, dtype=torch.float64), torch.randint(0, 3, (6,))
            losses.append(float(called(x, y)))
            after(number)
    found = [
        torch.tensor(losses, dtype=torch.float64),
        [p.detach() for p in module.parameters()],
        list(module.buffers()),
        [p.grad for p in module.parameters()],
    ]
    versions = [p._version for p in module.parameters()]
    return [*found, versions, state(), torch.get_rng_state()], called


def same(make_step, *, captured=True, count=12):
    expected, _ = trained(make_step, False, count)
    found, called = trained(make_step, True, count)
    assert_alike(found, expected, str(reason_of(called)))
    if captured:
        assert reason_of(called) is None
        assert sum(each.calls for each in called.compiled.variants) >= count - 4


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.long_cases
def test_a_step_of_each_optimizer(name):
    def make(module):
        optimizer = made(name, module.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, lambda number: None, lambda: list(optimizer.state_dict()["state"].values())

    same(make)


@pytest.mark.parametrize("schedule", ["StepLR", "CosineAnnealingLR", "OneCycleLR", "ReduceLROnPlateau", "by hand"])
@pytest.mark.parametrize("name", ["SGD with momentum", "Adam"])
@pytest.mark.long_cases
def test_schedules_between_steps(schedule, name):
    def make(module):
        optimizer = made(name, module.parameters())
        options = {"StepLR": (2, 0.5), "CosineAnnealingLR": (10,), "OneCycleLR": (0.1, 30), "ReduceLROnPlateau": ()}
        scheduler = (
            None
            if schedule == "by hand"
            else getattr(torch.optim.lr_scheduler, schedule)(optimizer, *options[schedule])
        )

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            return loss

        def after(number):
            if scheduler is None:
                optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
                optimizer.param_groups[0]["weight_decay"] = 0.01 * number
            else:
                scheduler.step(*((1.0,) if schedule == "ReduceLROnPlateau" else ()))

        return step, after, lambda: [optimizer.param_groups[0]["lr"]]

    same(make)


def test_zeros_that_stay():
    def make(module):
        optimizer = made("SGD", module.parameters())

        def step(x, y):
            optimizer.zero_grad(set_to_none=False)
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, lambda number: None, list

    same(make)


def test_accumulated_gradients():
    def make(module):
        optimizer = made("Adam", module.parameters())

        def step(x, y):
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            return loss

        def after(number):
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()

        return step, after, list

    same(make, count=20)


@pytest.mark.parametrize("clip", ["norm", "value"])
def test_clipped_gradients(clip):
    def make(module):
        optimizer = made("SGD with momentum", module.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y) * 30
            loss.backward()
            if clip == "norm":
                torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            else:
                torch.nn.utils.clip_grad_value_(module.parameters(), 0.1)
            optimizer.step()
            return loss

        return step, lambda number: None, list

    same(make)


SCHEDULES = {
    "StepLR": lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5),
    "LambdaLR": lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch),
    "OneCycleLR": lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 30),
    "SequentialLR": lambda optimizer: torch.optim.lr_scheduler.SequentialLR(
        optimizer, [SCHEDULES["StepLR"](optimizer), SCHEDULES["LambdaLR"](optimizer)], [4]
    ),
    "ReduceLROnPlateau": torch.optim.lr_scheduler.ReduceLROnPlateau,
}


@pytest.mark.parametrize("read", ["nothing", "before", "after"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_within_steps(schedule, read):
    captured = read == "nothing" and schedule != "ReduceLROnPlateau"

    def make(module):
        optimizer = made("SGD with momentum", module.parameters())
        scheduler = SCHEDULES[schedule](optimizer)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            rate = optimizer.param_groups[0]["lr"] if read == "before" else 1
            scheduler.step(*((loss.detach(),) if schedule == "ReduceLROnPlateau" else ()))
            rate = scheduler.get_last_lr()[0] if read == "after" else rate
            return loss * rate

        def plain_step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss

        return (
            plain_step if captured else step,
            lambda number: None,
            lambda: [scheduler.state_dict()["last_epoch"], scheduler.get_last_lr()],
        )

    same(make, captured=captured)


@pytest.mark.parametrize("after", ["nothing", "a gradient", "a parameter", "the scale", "a second backward"])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("overflows", [True, False])
def test_a_scaled_loss(after, enabled, overflows):
    def make(module):
        optimizer = made("Adam", module.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3, enabled=enabled)
        factor = torch.tensor(1.0, dtype=torch.float64)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y) * factor
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if after == "a gradient":
                return module[0].weight.grad.sum()
            if after == "a parameter":
                return module[0].weight.detach().sum()
            if after == "the scale":
                return loss * scaler.get_scale()
            if after == "a second backward":
                scaler.scale(F.mse_loss(module(x), module(x).detach() * 0.5)).backward()
            return loss

        def plain_step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y) * factor
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        def between(number):
            factor.fill_(torch.inf if overflows and enabled and number in (3, 4, 8) else 1.0)
            if number == 6 and enabled:
                scaler.update(32.0)

        return plain_step if after == "nothing" else step, between, lambda: [scaler.get_scale()]

    same(make, captured=after == "nothing")


def test_a_scaler_whose_state_is_loaded():
    def make(module):
        optimizer, scaler = made("Adam", module.parameters()), torch.amp.GradScaler("cpu", init_scale=8.0)
        other = torch.amp.GradScaler("cpu", init_scale=32.0)

        def step(x, y):
            optimizer.zero_grad()
            scaled = scaler.scale(F.cross_entropy(module(x), y))
            scaled.backward()
            scaler.step(optimizer)
            scaler.update()
            return scaled

        return (
            step,
            lambda number: number == 5 and scaler.load_state_dict(other.state_dict()),
            lambda: [scaler.get_scale()],
        )

    same(make)


def test_a_scaled_loss_outside():
    def make(module):
        optimizer, scaler = (
            made("Adam", module.parameters()),
            torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3),
        )
        forward = {}

        def step(x, y):
            return F.cross_entropy(module(x), y)

        def after(number):
            forward["step"] = number

        def whole(x, y):
            optimizer.zero_grad()
            loss = step(x, y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            return loss

        return whole, after, lambda: [scaler.get_scale()]

    same(make, captured=False)


def test_the_model_alone():
    def make(module):
        optimizer = made("AdamW", module.parameters())
        called = {}

        def forward(x, y):
            return F.cross_entropy(module(x), y)

        compiled = torch.compile(forward)

        def step(x, y):
            optimizer.zero_grad()
            loss = (called["form"])(x, y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        step.compiled_forward = compiled
        called["form"] = compiled if make.compiled else forward
        return step, lambda number: None, list

    results = []
    for make.compiled in (False, True):
        results.append(trained(make, False)[0])
    assert_alike(results[1], results[0])


@pytest.mark.thorough
def test_parameters_that_change_between_steps():
    def make(module):
        optimizer = made("SGD", module.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            return loss

        def decayed(*args):
            module[0].weight.data.mul_(0.9)

        def after(number):
            if number == 3:
                module[0].requires_grad_(False)
            if number == 5:
                module.eval()
            if number == 7:
                optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
            if number == 8:
                module.load_state_dict({name: value * 0.5 for name, value in module.state_dict().items()})
            if number == 9:
                module[4] = nn.Linear(8, 3).double()
            if number == 10:
                optimizer.register_step_post_hook(decayed)

        return step, after, list

    same(make, captured=False)


def test_two_optimizers_in_turn():
    def make(module):
        one, other = made("SGD", module[0].parameters()), made("Adam", module[4].parameters())

        def step(x, y):
            one.zero_grad()
            other.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            one.step()
            other.step()
            return loss

        return step, lambda number: None, list

    same(make)


def test_a_penalty_on_gradients():
    def make(module):
        optimizer = made("SGD", module.parameters())
        module.eval()

        def step(x, y):
            x = x.clone().requires_grad_()
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            (grad,) = torch.autograd.grad(loss, x, create_graph=True)
            (loss + grad.square().sum()).backward()
            optimizer.step()
            return loss

        return step, lambda number: None, list

    same(make, captured=False)


def test_gradients_that_do_not_lie_as_their_leaves_do():
    def trained_by_slopes(compile):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        leaf = torch.ones(3, 4, requires_grad=True)
        points = torch.rand(5, 2, requires_grad=True)
        params = [*model.parameters(), leaf]
        optimizer = torch.optim.Adam(params)

        def step():
            optimizer.zero_grad()
            values = model(points)
            (slopes,) = torch.autograd.grad(values.sum(), points, create_graph=True)
            loss = (slopes.square().sum(1) + values[:, 0]).mean() + (leaf.T @ torch.ones(3, 2)).tanh().sum()
            loss.backward()
            optimizer.step()
            return loss

        run = torch.compile(step) if compile else step
        losses = [run().detach() for _ in range(8)]
        assert all(each.grad.stride() == each.stride() for each in params)
        return [losses, [each.detach() for each in params], [each.grad for each in params]], run

    found, run = trained_by_slopes(True)
    assert reason_of(run) is None
    assert_alike(found, trained_by_slopes(False)[0], "training")


def test_where_gradients_keep_their_layout_functions_run_as_they_are():
    model = nn.Linear(3, 2, bias=False)

    @torch.compile
    def step():
        model.zero_grad()
        (model.weight.T.clone() * 2).T.sum().backward()

    step()
    (variant,) = step.compiled.variants
    for policy, calls in ((True, 1), (False, 1), (True, 2)):
        with torch.autograd.enforce_grad_layout_policy(policy):
            step()
        assert variant.calls == calls


def steps_of(compiled):
    """Return the instructions that step the optimizers in the program of a compiled function."""
    (variant,) = compiled.compiled.variants
    return [each for each in variant.run.__globals__.values() if isinstance(each, Step)]


def a_step(kind=torch.optim.SGD, **options):
    """Return a captured training step and its optimizer."""
    module = model()
    optimizer = kind(module.parameters(), **options)

    @torch.compile
    def step():
        optimizer.zero_grad()
        module(torch.ones(6, 4, dtype=torch.float64)).square().sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    return step, optimizer


@pytest.mark.skipif(not LOOPS.enabled, reason="there are no compiled loops")
@pytest.mark.parametrize("name", ["SGD", "SGD with momentum", "Adam", "Adagrad", "RMSprop centered"])
def test_a_new_learning_rate_is_a_number_of_the_same_call(name):
    step, optimizer = a_step(getattr(torch.optim, name.split()[0]), **OPTIMIZERS[name])
    (taken,) = steps_of(step)
    (steady,) = taken.steady
    before = optimizer.param_groups[0]["params"][0].detach().clone()
    optimizer.param_groups[0]["lr"] = 0.0
    step()
    weight = optimizer.param_groups[0]["params"][0]
    assert taken.steady == [steady]
    assert bool(optimizer.param_groups[0]["weight_decay"]) or torch.equal(before, weight)


def test_hooks_of_all_optimizers_are_called():
    step, optimizer = a_step(lr=0.1)
    called = []
    handle = torch.optim.optimizer.register_optimizer_step_post_hook(lambda *given: called.append(given[0]))
    try:
        step()
    finally:
        handle.remove()
    step()
    assert called == [optimizer]


def test_a_step_that_a_class_has_written_is_called():
    class Counting(torch.optim.SGD):
        steps = 0

        def step(self, closure=None):
            self.steps += 1
            return super().step(closure)

    step, optimizer = a_step(Counting, lr=0.1)
    step()
    assert optimizer.steps == 4


class Symmetric(nn.Module):
    """A parametrization that a user defines."""

    def __init__(self):
        super().__init__()
        self.scale = 0.5

    def forward(self, x):
        return self.scale * (x + x.T)


PARAMETRIZED = {
    "weight_norm": nn.utils.parametrizations.weight_norm,
    "weight_norm of all": lambda layer: nn.utils.parametrizations.weight_norm(layer, dim=None),
    "spectral_norm": nn.utils.parametrizations.spectral_norm,
    "orthogonal": nn.utils.parametrizations.orthogonal,
    "orthogonal by cayley": lambda layer: nn.utils.parametrizations.orthogonal(layer, orthogonal_map="cayley"),
    "a user's": lambda layer: nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric()),
    "two": lambda layer: nn.utils.parametrizations.weight_norm(
        nn.utils.parametrize.register_parametrization(layer, "bias", nn.Tanh())
    ),
}


def trained_with(parametrize, compile):
    """Return the losses, parameters and buffers of some steps with changes between them, and the compiled step."""
    torch.manual_seed(0)
    layers = [parametrize(nn.Linear(4, 4).double()) for _ in range(2)]
    module = nn.Sequential(layers[0], nn.Tanh(), layers[1])
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.5)

    def step(x):
        optimizer.zero_grad()
        loss = (module(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    called, losses = torch.compile(step) if compile else step, []
    for number in range(10):
        module.train(number not in (4, 5))
        if number == 7:
            for parameter in module.parameters():
                parameter.data.mul_(1.5)
        losses.append(called(torch.randn(6, 4, dtype=torch.float64)).detach())
        if number == 2:
            with nn.utils.parametrize.cached():
                losses.append(called(torch.ones(6, 4, dtype=torch.float64)).detach())
        if number == 8 and isinstance(layers[0].parametrizations["weight"][0], Symmetric):
            layers[0].parametrizations["weight"][0].scale = 0.25
    return [losses, [*map(torch.Tensor.detach, module.parameters())], [*module.buffers()]], called


@pytest.mark.parametrize("name", PARAMETRIZED)
def test_parametrized_layers(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = trained_with(PARAMETRIZED[name], False)
        found, called = trained_with(PARAMETRIZED[name], True)
    assert_alike(found, expected, str(reason_of(called)))
    assert reason_of(called) is None and sum(each.calls for each in called.compiled.variants) >= 5

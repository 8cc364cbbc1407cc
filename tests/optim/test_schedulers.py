"""Learning rate schedulers."""

import math
import re
from functools import partial

import pytest

import adjoint as torch

schedules = torch.optim.lr_scheduler


def make(**options):
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0, **options)


def rates(scheduler, steps):
    seen = []
    for _ in range(steps):
        seen.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return seen


SCHEDULES = [
    (lambda o: schedules.LambdaLR(o, lambda e: 1 / (e + 1)), [1, 1 / 2, 1 / 3, 1 / 4]),
    (lambda o: schedules.MultiplicativeLR(o, lambda e: 0.5), [1, 0.5, 0.25, 0.125]),
    (lambda o: schedules.StepLR(o, 2), [1, 1, 0.1, 0.1, 0.01]),
    (lambda o: schedules.MultiStepLR(o, [1, 3], 0.5), [1, 0.5, 0.5, 0.25]),
    (lambda o: schedules.ConstantLR(o, 0.5, 2), [0.5, 0.5, 1, 1]),
    (lambda o: schedules.LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1]),
    (lambda o: schedules.ExponentialLR(o, 0.5), [1, 0.5, 0.25]),
    (lambda o: schedules.PolynomialLR(o, 4), [1, 0.75, 0.5, 0.25, 0, 0]),
    (lambda o: schedules.CosineAnnealingLR(o, 4), [(1 + math.cos(math.pi * e / 4)) / 2 for e in range(9)]),
    (lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2), [1, 0.5, 1, (2 + math.sqrt(2)) / 4, 0.5]),
    (
        lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.1, 9), schedules.ExponentialLR(o, 0.5)], [2]),
        [0.1, 0.1, 1, 0.5],
    ),
    (lambda o: schedules.CyclicLR(o, 0.1, 0.5, 2, cycle_momentum=False), [0.1, 0.3, 0.5, 0.3, 0.1]),
]


@pytest.mark.parametrize(("schedule", "expected"), SCHEDULES)
def test_schedules(schedule, expected):
    assert rates(schedule(make()), len(expected)) == pytest.approx(expected)


def test_one_cycle_moves_rate_and_momentum_against_each_other():
    optimizer = make(momentum=0.9)
    scheduler = schedules.OneCycleLR(optimizer, 2.0, total_steps=10)
    seen = []
    for _ in range(10):
        seen.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
        optimizer.step()
        scheduler.step()
    highest = max(seen)
    assert highest[0] == pytest.approx(2.0)
    assert highest[1] == pytest.approx(0.85) == min(momentum for _, momentum in seen)
    assert seen[0] == pytest.approx((0.08, 0.95))
    assert seen[-1][0] == pytest.approx(0.08 / 1e4)
    optimizer.step()
    with pytest.raises(ValueError, match="Tried to step 11 times"):
        scheduler.step()


def test_plateau():
    optimizer = make()
    scheduler = schedules.ReduceLROnPlateau(optimizer, patience=1)
    seen = []
    for metric in (3, 2, 2, 2, 2, 1):
        scheduler.step(metric)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([1, 1, 1, 0.1, 0.1, 0.1])
    assert scheduler.best == 1


def test_chained():
    optimizer = make()
    chained = schedules.ChainedScheduler([schedules.ExponentialLR(optimizer, 0.5), schedules.StepLR(optimizer, 2)])
    seen = []
    for _ in range(3):
        optimizer.step()
        chained.step()
        seen.append(chained.get_last_lr()[0])
    assert seen == pytest.approx([0.5, 0.025, 0.0125])


def test_a_state_goes_on():
    first = schedules.CosineAnnealingLR(make(), 5)
    rates(first, 3)
    second = schedules.CosineAnnealingLR(make(), 7)
    second.load_state_dict(first.state_dict())
    assert second.T_max == 5
    assert second.last_epoch == 3
    assert second.get_last_lr() == first.get_last_lr()


def test_the_wrong_order_warns():
    scheduler = schedules.StepLR(make(), 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()


def test_refusals():
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        schedules.StepLR(3, 2)
    with pytest.raises(ValueError, match="Expected 1 lr_lambdas, but got 2"):
        schedules.LambdaLR(make(), [lambda e: 1, lambda e: 1])
    with pytest.raises(KeyError, match="'initial_lr' is not specified"):
        schedules.ExponentialLR(make(), 0.9, last_epoch=2)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize(("schedule", "expected"), SCHEDULES)
def test_a_rate_may_be_a_tensor_of_one_element(schedule, expected, shape):
    optimizer = make()
    rate = optimizer.param_groups[0]["lr"] = torch.ones(shape)
    scheduler, seen = schedule(optimizer), []
    for _ in expected:
        seen.append(rate.item())
        optimizer.step()
        scheduler.step()
    assert seen == pytest.approx(expected, abs=1e-6)
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.shape == shape == scheduler.get_last_lr()[0].shape


@pytest.mark.parametrize(
    "schedule",
    [
        lambda optimizer: schedules.StepLR(optimizer, 2),
        lambda optimizer: schedules.CyclicLR(optimizer, 0.1, 0.2, cycle_momentum=False),
        lambda optimizer: torch.optim.swa_utils.SWALR(optimizer, 0.1),
    ],
)
def test_rates_asked_for_outside_a_step_warn(schedule):
    scheduler = schedule(make())
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        scheduler.get_lr()


def test_a_tensor_of_a_rate_changes_in_place():
    rate = torch.tensor(1.0)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)
    rates(schedules.ExponentialLR(optimizer, 0.5), 2)
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25


def test_a_schedule_may_derive_from_the_name_of_old():
    class Halving(schedules._LRScheduler):
        def get_lr(self):
            return [rate * 0.5**self.last_epoch for rate in self.base_lrs]

    assert rates(Halving(make()), 3) == [1.0, 0.5, 0.25]
    assert issubclass(schedules._LRScheduler, schedules.LRScheduler)
    assert not isinstance(schedules.StepLR(make(), 2), schedules._LRScheduler)


OPTIONS = {
    "CyclicLR": lambda o, x: schedules.CyclicLR(o, x[0], x[1], base_momentum=x[2], max_momentum=x[3]),
    "OneCycleLR": lambda o, x: schedules.OneCycleLR(o, x[1], 10, base_momentum=x[2], max_momentum=x[3]),
    "SWALR": lambda o, x: torch.optim.swa_utils.SWALR(o, x[0], 3),
}


@pytest.mark.parametrize("as_lists", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_written_into_a_tensor_later_does_not_change_a_schedule(name, as_lists):
    numbers = [0.1, 0.5, 0.8, 0.9]
    seen = []
    for changed in (False, True):
        optimizer = make(momentum=0.5)
        tensors = [torch.tensor(number, dtype=torch.float64) for number in numbers]
        scheduler = OPTIONS[name](optimizer, [[each] for each in tensors] if as_lists else tensors)
        for each in tensors:
            each.mul_(1.0 - 0.5 * changed)
        group = optimizer.param_groups[0]
        rows = []
        for _ in range(4):
            optimizer.step()
            scheduler.step()
            rows.append((float(group["lr"]), float(group["momentum"])))
        seen.append(rows)
    assert seen[0] == seen[1]
    numbers_given = OPTIONS[name](make(momentum=0.5), numbers)
    for expected, _ in seen[0]:
        numbers_given.optimizer.step()
        numbers_given.step()
        assert numbers_given.optimizer.param_groups[0]["lr"] == pytest.approx(expected)


@pytest.mark.parametrize("lowest", [0.2, [0.2]])
def test_a_group_added_later_has_the_lowest_rate_of_the_others_if_that_is_one_number(lowest):
    optimizer = make()
    scheduler = schedules.ReduceLROnPlateau(optimizer, patience=0, min_lr=lowest)
    optimizer.add_param_group({"params": [torch.zeros(1, requires_grad=True)], "lr": 0.5})
    scheduler.step(1)
    if isinstance(lowest, list):
        words = r"number of param groups in the `optimizer` \(2\) differs from when .* was initialized \(1\), usually"
        with pytest.raises(RuntimeError, match=words):
            scheduler.step(1.3)
    else:
        scheduler.step(1.3)
        assert [group["lr"] for group in optimizer.param_groups] == [0.2, 0.2]


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_a_state_of_old_versions_has_the_function_that_anneals(strategy):
    new, old = (schedules.OneCycleLR(make(momentum=0.9), 2.0, 6, anneal_strategy=strategy) for _ in range(2))
    del old._anneal_func_type
    state = old.state_dict()
    state["anneal_func"] = getattr(schedules.OneCycleLR, f"_annealing_{strategy}")
    old.load_state_dict(state)
    assert rates(new, 5) == rates(old, 5)


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_the_warning_of_a_given_epoch_has_a_name():
    scheduler = schedules.StepLR(make(), 2)
    with pytest.warns(UserWarning, match=re.escape(schedules.EPOCH_DEPRECATION_WARNING)):
        scheduler.step(1)


@pytest.mark.parametrize("kind", [schedules.LinearLR, partial(schedules.CosineAnnealingLR, T_max=4)])
def test_a_scheduler_made_for_a_loaded_optimizer_continues_from_its_learning_rate(kind):
    first = torch.optim.SGD([torch.ones(1)], lr=0.5)
    scheduler = kind(first)
    first.step()
    scheduler.step()
    second = torch.optim.SGD([torch.ones(1)], lr=0.25)
    second.load_state_dict(first.state_dict())
    resumed = kind(second, last_epoch=0)
    assert resumed.get_last_lr() == scheduler.get_last_lr() == [second.param_groups[0]["lr"]]
    for optimizer, each in ((first, scheduler), (second, resumed)):
        optimizer.step()
        each.step()
    assert resumed.get_last_lr() == scheduler.get_last_lr()


@pytest.mark.parametrize("given", [0.95, [0.95]])
def test_a_factor_that_is_not_a_function_is_refused(given):
    with pytest.raises(TypeError, match="lr_lambda should be a function, but got float"):
        schedules.MultiplicativeLR(torch.optim.SGD([torch.ones(1)], lr=0.5), given)

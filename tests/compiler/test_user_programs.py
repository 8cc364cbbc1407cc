"""Programs in the style of users: hooks of modules, learning rates set in steps, scalers, averages, `data`, counters."""

import math
import warnings

import pytest

import adjoint as torch

from .comparison import assert_alike

nn = torch.nn


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def batch():
    return torch.randn(5, 4), torch.randn(5, 2)


def hooks_that_keep_and_replace(compile):
    model, kept, counts = mlp(), {}, []
    model[0].register_forward_hook(lambda module, args, output: kept.update(first=output.detach()))
    model[1].register_forward_hook(lambda module, args, output: output * 2)
    model[2].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model.register_forward_pre_hook(lambda module, args, kwargs: (args, kwargs), with_kwargs=True)
    model.register_forward_hook(lambda module, args, output: counts.append(len(args)))
    compiled = compile(model)
    for _ in range(4):
        result = compiled(batch()[0])
        result.sum().backward()
        yield result, kept["first"], len(counts), model[0].weight.grad
    handle = model[0].register_forward_hook(lambda module, args, output: output - 1)
    yield compiled(torch.ones(2, 4)), compiled(torch.ones(2, 4))
    handle.remove()
    yield compiled(torch.ones(2, 4))


def rates_are_set_inside(compile):
    model = mlp()
    optimizer = torch.optim.AdamW(
        [{"params": model[0].parameters()}, {"params": model[2].parameters(), "weight_decay": 0.1}]
    )

    @compile
    def step(x, y, rate):
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = rate * (number + 1)
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["eps"] *= 0.5
        return loss

    for number in range(7):
        loss = step(*batch(), 0.01 / (number + 1))
        yield loss, [group["lr"] for group in optimizer.param_groups], optimizer.param_groups[0]["eps"]
    yield [*model.parameters()]


def gradients_are_unscaled_and_clipped(compile):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        scaler.scale(loss).backward()
        scaled = model[0].weight.grad * 1
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        return loss, scaled, norm

    for number in range(6):
        x, y = batch()
        yield step(x * (math.inf if number == 3 else 1), y), scaler.get_scale(), model[0].weight


def averages_and_a_teacher(compile):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    decay = torch.optim.swa_utils.get_ema_multi_avg_fn(0.5)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=decay, use_buffers=True)

    @compile
    def step(x):
        with torch.no_grad():
            target = average(x)
        optimizer.zero_grad()
        loss = (model(x) - target).square().mean() + model(x).square().mean()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        return loss, target

    for _ in range(5):
        yield step(batch()[0]), [*average.parameters()], average.n_averaged


def data_is_changed(compile):
    model, target = mlp(), mlp()

    @compile
    def step(x):
        loss = model(x).square().mean()
        model.zero_grad()
        loss.backward()
        for ours, theirs in zip(model.parameters(), target.parameters(), strict=True):
            ours.data -= 0.1 * ours.grad.data
            theirs.data.mul_(0.9).add_(0.1 * ours.data)
        return loss, model[0].weight.data.sum()

    for _ in range(5):
        yield step(batch()[0]), [*target.parameters()], [each._version for each in model.parameters()]


def losses_are_made_inside(compile):
    model = mlp()

    @compile
    def step(x, y):
        return nn.CrossEntropyLoss(label_smoothing=0.1)(model(x), y) + nn.Softplus(2)(model(x)).mean()

    for _ in range(4):
        loss = step(batch()[0], torch.tensor([0, 1, 1, 0, 1]))
        loss.backward()
        yield loss, model[0].weight.grad


def distributions(compile):
    """A variational bound, and the gradient of a policy."""
    model, policy = nn.Linear(4, 4), nn.Linear(4, 3)
    prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))

    @compile
    def bound(x):
        mean, scale = model(x).chunk(2, 1)
        posterior = torch.distributions.Independent(torch.distributions.Normal(mean, scale.exp()), 1)
        sample = posterior.rsample()
        divergence = torch.distributions.kl_divergence(posterior.base_dist, prior)
        return (
            sample.square().sum() + divergence.sum() - posterior.log_prob(sample.detach()).mean() + prior.sample().sum()
        )

    @compile
    def acting(x):
        choice = torch.distributions.Categorical(logits=policy(x))
        action = choice.sample()
        return action, choice.log_prob(action), choice.entropy()

    for number in range(6):
        x, _ = batch()
        loss = bound(x)
        loss.backward()
        action, found, entropy = acting(x)
        (found * action - entropy).sum().backward()
        yield loss, action, found, model.weight.grad, policy.weight.grad, torch.rand(1)
        if number == 4:
            prior.loc = torch.full((2,), 3.0)


PROGRAMS = [
    distributions,
    hooks_that_keep_and_replace,
    rates_are_set_inside,
    gradients_are_unscaled_and_clipped,
    averages_and_a_teacher,
    data_is_changed,
    losses_are_made_inside,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_captured_and_give_the_same_values(program):
    made = []

    def compile(function):
        made.append(torch.compile(function))
        return made[-1]

    outcomes = []
    for each in (compile, lambda function: function):
        torch.manual_seed(0)
        outcomes.append([torch.utils._pytree.tree_map(copied, values) for values in program(each)])
    assert_alike(*outcomes)
    assert made[0].compiled.reason is None
    assert sum(each.calls for each in made[0].compiled.variants) >= 2


def copied(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("names", [["calls"], ["calls", "state", "ready"]])
def test_counters_are_set_before_an_operator_that_may_fail(names):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.calls, self.begun = nn.Embedding(5, 3), 0, []

        def forward(self, x):
            self.calls += 1
            if len(names) > 1:
                self.state, self.ready = "running", True
                self.begun.append(1)
            result = self.table(x).sum()
            self.calls += 1
            return result

    model = Counting()
    compiled = torch.compile(model)
    for number in range(9):
        model.state = model.ready = None
        before = model.calls
        if number % 4 == 3:
            with pytest.raises(IndexError):
                compiled(torch.tensor([0, 5]))
        else:
            compiled(torch.tensor([0, number % 5]))
        assert model.calls == before + (1 if number % 4 == 3 else 2)
        assert len(names) == 1 or (model.state, model.ready, len(model.begun)) == ("running", True, number + 1)
    assert compiled.compiled.reason is None


def test_a_function_whose_results_are_differentiated_twice_runs_unchanged():
    def squares(x):
        return x.tanh().square() * (not torch.jit.is_scripting())

    compiled = torch.compile(squares)
    kinds, said = [], []
    for _ in range(4):
        found = []
        for each in (compiled, squares):
            x = torch.tensor([0.5, -1.0], requires_grad=True)
            result = each(x)
            with warnings.catch_warnings(record=True, action="always") as caught:
                (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
            said += [str(warning.message).split(": ", 1)[1].split("\n")[0] for warning in caught]
            found.append((result, first, torch.autograd.grad(first.sum(), x)))
        assert_alike(*found)
        kinds.append(type(found[0][0].grad_fn).__name__)
    assert kinds == ["MulBackward0", "CompiledFunctionBackward", "MulBackward0", "MulBackward0"]
    assert said == ["its gradients are recorded or batched"]
    with torch.no_grad():
        assert_alike([compiled(x), compiled(x), compiled(x + 1)], [squares(x), squares(x), squares(x + 1)])

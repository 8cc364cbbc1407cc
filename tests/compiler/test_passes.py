"""Passes over captured programs remove work and change no result."""

import pytest

import adjoint as torch

from .comparison import assert_alike, reason_of

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
def test_gradients_are_what_they_are_without_compile(way, returned, size):
    """They have memory of their own: what is done to one, or to a result, changes no other."""

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
    assert "clone" not in [each.name for each in variant.steps.values()]
    assert not any("clone" in str(each) for each in variant.program.natives)

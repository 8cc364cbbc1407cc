"""Stochastic differential equations by torchsde."""
# kind: mathematics
# requires: torchsde

import torch
import torchsde
from shown import show, train


class Equation(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift, self.spread = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def f(self, t, y):
        return self.drift(y).tanh()

    def g(self, t, y):
        return 0.1 * self.spread(y).sigmoid()


torch.manual_seed(0)
equation, start, times = Equation(), torch.ones(4, 3), torch.linspace(0, 1, 5)


def motion():
    return torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), entropy=7, levy_area_approximation="space-time")


for method in ("euler", "milstein", "srk"):
    show(method, torchsde.sdeint(equation, start, times, bm=motion(), dt=0.1, method=method))
train(
    equation.parameters(),
    lambda: torchsde.sdeint(equation, start, times, bm=motion(), dt=0.25)[-1].square().mean(),
    steps=6,
    lr=0.1,
)

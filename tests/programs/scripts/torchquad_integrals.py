"""Integrals by torchquad, and their derivatives."""
# kind: mathematics
# requires: torchquad

import torch
from shown import show
from torchquad import Boole, GaussLegendre, MonteCarlo, Simpson, Trapezoid, set_log_level

set_log_level("ERROR")
power = torch.tensor(2.0, requires_grad=True)
domain = torch.tensor([[0.0, 1.0], [-1.0, 1.0]])
for rule in (Trapezoid(), Simpson(), Boole(), GaussLegendre()):
    value = rule.integrate(
        lambda x: x[:, 0].clamp(min=1e-6) ** power * x[:, 1].cos(),
        dim=2,
        N=625,
        integration_domain=domain,
        backend="torch",
    )
    show(type(rule).__name__, value, *torch.autograd.grad(value, power))
value = MonteCarlo().integrate(
    lambda x: x.sin().sum(1), dim=2, N=1000, integration_domain=[[0, 1], [0, 1]], seed=0, backend="torch"
)
show("random", abs(value.item() - 0.9194) < 0.05)

"""Parallel solution of a batch of differential equations by torchode."""
# kind: mathematics
# requires: torchode

import torch
import torchode
from shown import show

torch.manual_seed(0)
rate = torch.tensor(0.7, requires_grad=True)
start = torch.rand(3, 2)
times = torch.linspace(0, 2, 5).repeat(3, 1)
term = torchode.ODETerm(lambda t, y: torch.stack([y[:, 1], -rate * y[:, 0]], 1))
for method in (torchode.Dopri5, torchode.Tsit5, torchode.Heun):
    controller = torchode.IntegralController(atol=1e-6, rtol=1e-3, term=term)
    solver = torchode.AutoDiffAdjoint(method(term=term), controller)
    solution = solver.solve(torchode.InitialValueProblem(y0=start, t_eval=times))
    show(method.__name__, solution.ys, solution.status.tolist())
    show("gradient", *torch.autograd.grad(solution.ys.square().sum(), rate))

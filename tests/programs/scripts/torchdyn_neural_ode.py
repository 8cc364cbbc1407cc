"""A neural differential equation of torchdyn."""
# kind: mathematics
# requires: torchdyn

import torch
from shown import show, train
from torchdyn.core import NeuralODE
from torchdyn.numerics import odeint

torch.manual_seed(0)
field = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
x = torch.randn(6, 2)
for sensitivity in ("autograd", "adjoint"):
    model = NeuralODE(field, sensitivity=sensitivity, solver="rk4", solver_adjoint="rk4", return_t_eval=False)
    times = torch.linspace(0, 1, 5)
    train(field.parameters(), lambda m=model, t=times: (m(x, t)[-1] - x.flip(1)).square().mean(), steps=6, lr=0.05)
show("solved", *odeint(lambda t, y: -y, x, torch.linspace(0, 1, 3), solver="dopri5"))

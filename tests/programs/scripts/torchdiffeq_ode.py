"""Solutions of differential equations by torchdiffeq, with gradients by backpropagation and by the adjoint method."""
# kind: mathematics
# requires: torchdiffeq

import torch
from shown import show, train
from torchdiffeq import odeint, odeint_adjoint, odeint_event


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


torch.manual_seed(0)
field, start, times = Field(), torch.tensor([[2.0, 0.0]]), torch.linspace(0, 1, 6)
true = odeint(lambda t, y: y**3 @ torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]), start, times)
show("true", true)
for method in ("dopri5", "rk4", "euler", "bosh3", "explicit_adams"):
    show(method, odeint(field, start, times, method=method)[-1])
for solve in (odeint, odeint_adjoint):
    train(field.parameters(), lambda s=solve: (s(field, start, times) - true).abs().mean(), steps=8)
when, where = odeint_event(
    lambda t, y: torch.stack([y[1], -torch.ones(())]),
    torch.tensor([1.0, 0.0]),
    torch.tensor(0.0),
    event_fn=lambda t, y: y[0],
)
show("event", when, where[-1])

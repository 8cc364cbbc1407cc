"""Derivatives of an inner training loop by higher, for meta-learning."""
# kind: training
# requires: higher

import higher
import torch
from shown import show, train

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
inner = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.linspace(-2, 2, 16)[:, None]


def meta_loss():
    total = 0.0
    for phase in (0.0, 0.5, 1.0):
        with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (functional, differentiable):
            for _ in range(3):
                differentiable.step((functional(x) - (x + phase).sin()).square().mean())
            total = total + (functional(x) - (x + phase).sin()).square().mean()
    return total


train(model.parameters(), meta_loss, optimizer=torch.optim.Adam(model.parameters(), 0.01))
show("weights", *model.parameters())

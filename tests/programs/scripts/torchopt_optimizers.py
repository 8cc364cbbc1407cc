"""Functional and differentiable optimizers of torchopt."""
# kind: training
# requires: torchopt

import torch
import torchopt
from shown import show

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
x, y = torch.randn(16, 4), torch.randn(16, 1)
for make in (torchopt.adam, torchopt.sgd, torchopt.rmsprop, torchopt.adamw):
    optimizer = make(lr=0.05)
    parameters = tuple(p.detach().clone().requires_grad_() for p in model.parameters())
    state = optimizer.init(parameters)
    for _ in range(10):
        loss = (x @ parameters[0].T + parameters[1] - y).square().mean()
        updates, state = optimizer.update(
            torch.autograd.grad(loss, parameters), state, params=parameters, inplace=False
        )
        parameters = torchopt.apply_updates(parameters, updates, inplace=False)
    show(make.__name__, loss, *parameters)
meta = torch.tensor(1.0, requires_grad=True)
inner = torchopt.MetaSGD(model, lr=0.1)
for _ in range(3):
    inner.step((model(x) * meta - y).square().mean())
((model(x) - y).square().mean()).backward()
show("meta", meta.grad)

"""Optimizers of pytorch-optimizer on one small regression."""
# kind: training
# requires: pytorch-optimizer
# stops: SOAP differs from its fourth step on; it rotates by eigenvectors of singular matrices, which are not unique
# cases: AdaBelief AdamP Adan Lamb Lion MADGRAD Ranger21 SAM Shampoo SophiaH DAdaptAdam Prodigy ScheduleFreeAdamW SOAP

import sys

import pytorch_optimizer
import torch
from shown import show

torch.manual_seed(0)
name = sys.argv[1]
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
x = torch.randn(32, 4)
y = x[:, :1] * x[:, 1:2]
kind = getattr(pytorch_optimizer, name)
if name == "SAM":
    optimizer = kind(model.parameters(), torch.optim.SGD, lr=0.05)
elif name == "Ranger21":
    optimizer = kind(model.parameters(), num_iterations=20, lr=0.05)
else:
    optimizer = kind(model.parameters(), lr=1.0 if name in ("DAdaptAdam", "Prodigy") else 0.02)
if hasattr(optimizer, "train"):
    optimizer.train()


def loss():
    optimizer.zero_grad()
    value = torch.nn.functional.mse_loss(model(x), y)
    value.backward(create_graph=name == "SophiaH")
    return value


losses = []
for _ in range(20):
    value = loss()
    optimizer.step(loss if name == "SAM" else None)
    losses.append(value.item())
show("losses", *losses[::4], losses[-1])
show("weights", *model.parameters())

"""Lion, AdamP, Prodigy and schedule-free optimizers, each from a separate package."""
# kind: training
# requires: lion-pytorch adamp prodigyopt schedulefree

import torch
from adamp import SGDP, AdamP
from lion_pytorch import Lion
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from shown import show, train

x = torch.linspace(-1, 1, 32)[:, None]
for make in (Lion, AdamP, SGDP, Prodigy, AdamWScheduleFree, SGDScheduleFree):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = make(model.parameters(), lr=1.0 if make is Prodigy else 0.01)
    if hasattr(optimizer, "train"):
        optimizer.train()
    show(make.__name__)
    train(model.parameters(), lambda m=model: torch.nn.functional.mse_loss(m(x), (3 * x).sin()), optimizer=optimizer)

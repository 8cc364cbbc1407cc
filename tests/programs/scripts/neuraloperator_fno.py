"""A Fourier neural operator of neuraloperator."""
# kind: models
# requires: neuraloperator

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO
from shown import show, train

torch.manual_seed(0)
model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
x = torch.randn(2, 1, 12, 12)
y = x.cumsum(2) / 4
show("out", model(x))
train(
    model.parameters(), lambda: LpLoss(d=2)(model(x), y), steps=8, optimizer=torch.optim.Adam(model.parameters(), 0.01)
)
show("h1", H1Loss(d=2)(model(x), y))

"""A moving average of a model's weights by ema-pytorch."""
# kind: training
# requires: ema-pytorch

import torch
from ema_pytorch import EMA
from shown import show

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
average = EMA(model, beta=0.9, update_after_step=2, update_every=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(16, 4)
for _ in range(20):
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
    optimizer.step()
    average.update()
show("model", model(x))
show("average", average(x), average.get_current_decay())
show("buffers", *average.ema_model.state_dict().values())

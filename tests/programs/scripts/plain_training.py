"""A network that is trained without other libraries. The tests use this program to test the command."""
# kind: training
# requires: numpy

import torch
from shown import show, train

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
x = torch.randn(16, 4)
train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()), lr=0.1)
show("scores", model(x))

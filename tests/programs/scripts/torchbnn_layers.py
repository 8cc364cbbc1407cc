"""Bayesian layers of torchbnn, with the divergence in the loss."""
# kind: layers
# requires: torchbnn

import torch
import torchbnn
from shown import show, train

torch.manual_seed(0)
model = torch.nn.Sequential(torchbnn.BayesLinear(0, 0.1, 4, 16), torch.nn.ReLU(), torchbnn.BayesLinear(0, 0.1, 16, 3))
x, y = torch.randn(12, 4), torch.arange(12) % 3
divergence = torchbnn.BKLLoss(reduction="mean")
train(model.parameters(), lambda: torch.nn.functional.cross_entropy(model(x), y) + 0.1 * divergence(model))
show("convolution", torchbnn.BayesConv2d(0, 0.1, 1, 2, 3)(torch.randn(1, 1, 5, 5)))

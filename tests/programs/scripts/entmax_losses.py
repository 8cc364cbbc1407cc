"""Sparse mappings of entmax, and losses that use these mappings."""
# kind: layers
# requires: entmax

import torch
from entmax import Entmax15Loss, SparsemaxLoss, entmax15, entmax_bisect, sparsemax
from shown import show, train

torch.manual_seed(0)
x = torch.randn(3, 6, requires_grad=True)
for f in (sparsemax, entmax15, lambda x, dim: entmax_bisect(x, alpha=1.3, dim=dim)):
    y = f(x, dim=1)
    (gradient,) = torch.autograd.grad(y[:, 0].sum(), x)
    show("mapped", y, gradient)
model = torch.nn.Linear(6, 4)
for loss in (SparsemaxLoss(), Entmax15Loss()):
    train(model.parameters(), lambda l=loss: l(model(x.detach()), torch.tensor([0, 1, 2])), lr=0.1)
alpha = torch.tensor(1.5, requires_grad=True)
entmax_bisect(x, alpha, dim=1).square().sum().backward()
show("alpha", alpha.grad)

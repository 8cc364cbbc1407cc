"""Gradients of single samples, variances and curvature, by backpack-for-pytorch."""
# kind: inspection
# requires: backpack-for-pytorch

import torch
from backpack import backpack, extend, extensions
from shown import show

torch.manual_seed(0)
model = extend(torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Sigmoid(), torch.nn.Linear(6, 3)))
loss = extend(torch.nn.CrossEntropyLoss())
x, y = torch.randn(8, 4), torch.arange(8) % 3
with backpack(
    extensions.BatchGrad(),
    extensions.Variance(),
    extensions.SumGradSquared(),
    extensions.BatchL2Grad(),
    extensions.DiagGGNExact(),
    extensions.DiagHessian(),
    extensions.KFLR(),
):
    loss(model(x), y).backward()
for name, parameter in model.named_parameters():
    show(name, parameter.grad, parameter.grad_batch, parameter.variance, parameter.sum_grad_squared, parameter.batch_l2)
    show("curvature", parameter.diag_ggn_exact, parameter.diag_h, *parameter.kflr)

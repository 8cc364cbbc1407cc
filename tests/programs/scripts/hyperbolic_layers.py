"""Hyperbolic layers and optimizers of hypll."""
# kind: layers
# requires: hypll

import torch
from hypll import nn as hnn
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.optim import RiemannianSGD
from hypll.tensors import TangentTensor
from shown import show

torch.manual_seed(0)
ball = PoincareBall(c=Curvature(requires_grad=True))
model = torch.nn.Sequential(
    hnn.HLinear(4, 8, manifold=ball), hnn.HReLU(manifold=ball), hnn.HLinear(8, 3, manifold=ball)
)
optimizer = RiemannianSGD(model.parameters(), lr=0.1)
x = torch.randn(6, 4) * 0.3
losses = []
for _ in range(10):
    optimizer.zero_grad()
    points = ball.expmap(TangentTensor(data=x, man_dim=-1, manifold=ball))
    loss = torch.nn.functional.cross_entropy(model(points).tensor, torch.arange(6) % 3)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show("losses", *losses)
show("points", points.tensor)

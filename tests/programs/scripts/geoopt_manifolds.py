"""Optimization on manifolds by geoopt."""
# kind: mathematics
# requires: geoopt

import geoopt
import torch
from shown import show

torch.manual_seed(0)
target = torch.randn(4, 4, dtype=torch.float64)
target = target @ target.T
for manifold in (geoopt.Stiefel(), geoopt.Sphere(), geoopt.PoincareBall(), geoopt.SymmetricPositiveDefinite()):
    start = torch.eye(4, dtype=torch.float64)
    if isinstance(manifold, geoopt.PoincareBall):
        start = start * 0.3
    point = geoopt.ManifoldParameter(start.clone(), manifold=manifold)
    for kind in (geoopt.optim.RiemannianAdam, geoopt.optim.RiemannianSGD):
        optimizer = kind([point], lr=0.02)
        for _ in range(10):
            optimizer.zero_grad()
            loss = (point @ target).diagonal().sum() + point[0, 1] ** 2
            loss.backward()
            optimizer.step()
        show(f"{manifold.name} {kind.__name__}", loss, point)
ball = geoopt.PoincareBall()
x, y = torch.tensor([0.1, 0.2]), torch.tensor([-0.3, 0.4])
show("ball", ball.dist(x, y), ball.mobius_add(x, y), ball.expmap(x, y), ball.logmap(x, y), ball.transp(x, y, y))

"""Optimal transport by POT and geomloss, with gradients."""
# kind: mathematics
# requires: POT geomloss

import geomloss
import ot
import torch
from shown import show

torch.manual_seed(0)
x, y = torch.randn(8, 2, dtype=torch.float64, requires_grad=True), torch.randn(10, 2, dtype=torch.float64) + 1
a, b = (torch.full((n,), 1 / n, dtype=torch.float64) for n in (8, 10))
cost = ot.dist(x, y)
for name, value in {
    "exact": ot.emd2(a, b, cost),
    "sinkhorn": ot.sinkhorn2(a, b, cost, 1.0),
    "sliced": ot.sliced_wasserstein_distance(x, y, n_projections=8, seed=0),
    "gromov": ot.gromov.gromov_wasserstein2(ot.dist(x, x), ot.dist(y, y), a, b),
    "one": ot.wasserstein_1d(x[:, 0], y[:, 0]),
    "samples": geomloss.SamplesLoss("sinkhorn", blur=0.3, backend="tensorized")(x, y),
    "energy": geomloss.SamplesLoss("energy", backend="tensorized")(x, y),
    "gaussian": geomloss.SamplesLoss("gaussian", blur=0.5, backend="tensorized")(x, y),
}.items():
    show(name, value, *torch.autograd.grad(value, x, retain_graph=True))

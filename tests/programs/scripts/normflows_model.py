"""Flows of normflows and of nflows, trained on points of the two-moons data set."""
# kind: mathematics
# requires: normflows nflows

import normflows
import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms import CompositeTransform, MaskedAffineAutoregressiveTransform, ReversePermutation
from shown import show, train

torch.manual_seed(0)
angle = torch.linspace(0, 3.14159, 32)
points = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(32, 2)
flows = []
for _ in range(3):
    flows += [
        normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 16, 2], init_zeros=True)),
        normflows.flows.Permute(2, mode="swap"),
    ]
model = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2), flows)
train(model.parameters(), lambda: model.forward_kld(points), optimizer=torch.optim.Adam(model.parameters(), 0.01))
show("sampled", *model.sample(4))
spline = normflows.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8)
show("spline", *spline(points[:4]))
layers = [
    t for _ in range(2) for t in (ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, hidden_features=8))
]
flow = Flow(CompositeTransform(layers), StandardNormal([2]))
train(flow.parameters(), lambda: -flow.log_prob(points).mean(), optimizer=torch.optim.Adam(flow.parameters(), 0.01))
show("sampled", flow.sample(4))

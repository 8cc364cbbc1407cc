"""Weights kept on manifolds by geotorch."""
# kind: layers
# requires: geotorch

import geotorch
import torch
from shown import show, train

for constrain in (
    geotorch.orthogonal,
    geotorch.skew,
    geotorch.symmetric,
    geotorch.positive_definite,
    geotorch.sphere,
    geotorch.sln,
):
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4)
    constrain(layer, "weight" if constrain is not geotorch.sphere else "bias")
    x = torch.randn(8, 4)
    if constrain is geotorch.orthogonal:
        layer.weight = torch.eye(4)
    show(constrain.__name__)
    train(layer.parameters(), lambda m=layer, x=x: (m(x) - x.flip(1)).square().mean(), lr=0.05)
    show("bias", layer.bias)
layer = torch.nn.Linear(5, 3)
geotorch.low_rank(layer, "weight", rank=2)
show("rank", torch.linalg.matrix_rank(layer.weight).item())

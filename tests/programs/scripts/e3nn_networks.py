"""Equivariant products and harmonics of e3nn."""
# kind: mathematics
# requires: e3nn

import torch
from e3nn import o3
from e3nn.nn import BatchNorm, FullyConnectedNet, Gate
from shown import show, train

torch.manual_seed(0)
positions = torch.randn(6, 3)
harmonics = o3.spherical_harmonics("0e + 1o + 2e", positions, normalize=True, normalization="component")
show("harmonics", harmonics)
product = o3.FullyConnectedTensorProduct("4x0e + 2x1o", "0e + 1o + 2e", "3x0e + 2x1o")
x = torch.randn(6, 10)
show("product", product(x, harmonics))
rotation = o3.rand_matrix()
turned = product(
    x @ o3.Irreps("4x0e + 2x1o").D_from_matrix(rotation).T,
    harmonics @ o3.Irreps("0e + 1o + 2e").D_from_matrix(rotation).T,
)
show(
    "equivariant",
    torch.allclose(turned, product(x, harmonics) @ o3.Irreps("3x0e + 2x1o").D_from_matrix(rotation).T, atol=1e-4),
)
train(product.parameters(), lambda: (product(x, harmonics) - 1).square().mean(), lr=0.05)
gate = Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
show("gate", gate(torch.randn(4, 6)), BatchNorm("2x0e + 1x1o")(torch.randn(4, 5)))
show("net", FullyConnectedNet([3, 8, 2], torch.relu)(positions), o3.wigner_3j(1, 1, 2))

"""Decompositions of tensors by tensorly on its PyTorch backend, with gradients through them."""
# kind: mathematics
# requires: tensorly

import tensorly
import torch
from shown import show
from tensorly.decomposition import non_negative_parafac, parafac, tensor_train, tucker

tensorly.set_backend("pytorch")
torch.manual_seed(0)
x = torch.einsum("ir,jr,kr->ijk", *(torch.rand(n, 2, dtype=torch.float64) for n in (4, 5, 6)))
show("unfolded", tensorly.unfold(x, 1), tensorly.tenalg.mode_dot(x, torch.ones(3, 5, dtype=torch.float64), 1))
for name, decomposition in {
    "parafac": lambda: parafac(x, 2, n_iter_max=50, init="svd"),
    "tucker": lambda: tucker(x, [2, 2, 2]),
    "train": lambda: tensor_train(x, [1, 2, 2, 1]),
    "non-negative": lambda: non_negative_parafac(x, 2, n_iter_max=50, init="svd"),
}.items():
    found = decomposition()
    show(name, bool((found.to_tensor() - x).norm() < 0.05 * x.norm()))
factors = [torch.rand(n, 2, dtype=torch.float64, requires_grad=True) for n in (4, 5, 6)]
optimizer = torch.optim.Adam(factors, 0.05)
for _ in range(20):
    optimizer.zero_grad()
    loss = (tensorly.cp_to_tensor((None, factors)) - x).square().sum()
    loss.backward()
    optimizer.step()
show("loss", loss, *factors)

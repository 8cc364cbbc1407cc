"""A Laplace approximation of a trained network's posterior, by laplace-torch."""
# kind: mathematics
# requires: laplace-torch

import torch
from laplace import Laplace
from shown import show, train
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.linspace(-2, 2, 32)[:, None]
y = x.sin() + 0.1 * torch.randn(32, 1)
model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
train(
    model.parameters(),
    lambda: (model(x) - y).square().mean(),
    steps=50,
    optimizer=torch.optim.Adam(model.parameters(), 0.02),
)
for structure in ("diag", "full", "kron"):
    posterior = Laplace(model, "regression", subset_of_weights="all", hessian_structure=structure)
    posterior.fit(DataLoader(TensorDataset(x, y), batch_size=16))
    mean, variance = posterior(torch.tensor([[0.0], [4.0]]))
    show(structure, mean, variance, posterior.log_marginal_likelihood())

"""Bayesian optimization by botorch: a model, an acquisition function, and the next point to try."""
# kind: mathematics
# requires: botorch

import torch
from botorch.acquisition import LogExpectedImprovement, qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from shown import show

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 8)[:, None] * torch.ones(1, 2)
x = torch.stack([x[:, 0], (x[:, 1] * 7 % 1)], 1)
y = -((x - 0.4) ** 2).sum(1, keepdim=True)
model = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
posterior = model.posterior(torch.tensor([[0.4, 0.4], [0.9, 0.1]]))
show("posterior", posterior.mean)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
point, value = optimize_acqf(LogExpectedImprovement(model, best_f=y.max()), bounds, q=1, num_restarts=2, raw_samples=16)
show("near", bool((point - 0.4).abs().max() < 0.2))
show("several", tuple(qExpectedImprovement(model, y.max())(torch.rand(3, 2, 2)).shape))

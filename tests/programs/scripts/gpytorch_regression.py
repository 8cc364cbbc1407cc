"""A Gaussian process that gpytorch fits exactly and with inducing points."""
# kind: mathematics
# requires: gpytorch

import gpytorch
import torch
from shown import show, train

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 24)
y = (6 * x).sin() + 0.1 * torch.randn(24)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=1.5)
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        strategy = gpytorch.variational.VariationalStrategy(
            self, points, gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        )
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    forward = Exact.forward


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(likelihood)
marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
train(model.parameters(), lambda: -marginal(model(x), y), optimizer=torch.optim.Adam(model.parameters(), 0.1))
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    predicted = likelihood(model(torch.tensor([0.25, 0.5, 2.0])))
show("predicted", predicted.mean, predicted.variance)

model, likelihood = Sparse(x[::4].clone()), gpytorch.likelihoods.GaussianLikelihood()
bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=24)
both = [*model.parameters(), *likelihood.parameters()]
train(both, lambda: -bound(model(x), y), optimizer=torch.optim.Adam(both, 0.05))

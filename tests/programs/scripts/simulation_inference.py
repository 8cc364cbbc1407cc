"""Inference from simulations by sbi, which learns a density of parameters from pairs of parameters and results."""
# kind: mathematics
# requires: sbi

import torch
from sbi.inference import NPE
from sbi.utils import BoxUniform
from shown import show

torch.manual_seed(0)
prior = BoxUniform(-2 * torch.ones(2), 2 * torch.ones(2))
parameters = prior.sample((100,))
data = parameters + 0.1 * torch.randn(100, 2)
inference = NPE(prior, density_estimator="maf", show_progress_bars=False)
estimator = inference.append_simulations(parameters, data).train(max_num_epochs=4, training_batch_size=25)
show("losses", *inference.summary["training_loss"])
posterior = inference.build_posterior(estimator)
samples = posterior.sample((20,), x=torch.zeros(2), show_progress_bars=False)
show(
    "samples",
    tuple(samples.shape),
    posterior.log_prob(torch.tensor([[0.1, 0.1]]), x=torch.zeros(2), norm_posterior=False),
)

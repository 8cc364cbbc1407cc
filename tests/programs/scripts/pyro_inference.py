"""Variational inference and Hamiltonian Monte Carlo by pyro."""
# kind: mathematics
# requires: pyro-ppl

import pyro
import torch
from pyro import distributions as dist
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from shown import show

x = torch.linspace(-1, 1, 16)
y = 2 * x + 0.5


def model(x, y=None):
    slope, offset = pyro.sample("slope", dist.Normal(0.0, 2.0)), pyro.sample("offset", dist.Normal(0.0, 2.0))
    noise = pyro.sample("noise", dist.HalfNormal(1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(slope * x + offset, noise + 0.1), obs=y)


pyro.set_rng_seed(0)
guide = AutoNormal(model)
inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
losses = [inference.step(x, y) for _ in range(40)]
show("losses", *losses[::10])
for name, value in guide.median().items():
    show(name, value)
show("predicted", Predictive(model, guide=guide, num_samples=5)(x[:3])["y"].shape)
pyro.set_rng_seed(0)
chain = MCMC(NUTS(model, max_tree_depth=3), num_samples=5, warmup_steps=5, disable_progbar=True)
chain.run(x, y)
show("samples", *(tuple(value.shape) for value in chain.get_samples().values()))

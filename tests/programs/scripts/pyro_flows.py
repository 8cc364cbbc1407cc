"""Enumeration over discrete variables, and normalizing flows, by pyro."""
# kind: mathematics
# requires: pyro-ppl

import pyro
import torch
from pyro import distributions as dist
from pyro.distributions import transforms
from pyro.infer import SVI, TraceEnum_ELBO, config_enumerate
from shown import show, train

pyro.set_rng_seed(0)
data = torch.cat([torch.randn(10) - 2, torch.randn(10) + 2])


@config_enumerate
def mixture():
    weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
    places = pyro.param("places", torch.tensor([-1.0, 1.0]))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("x", dist.Normal(places[which], 1.0), obs=data)


inference = SVI(mixture, lambda: None, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
show("losses", *[inference.step() for _ in range(20)][::5])
show("found", pyro.param("places"), pyro.param("weights"))
flow = transforms.spline_coupling(2, count_bins=4, hidden_dims=[8])
target = dist.TransformedDistribution(dist.Normal(torch.zeros(2), torch.ones(2)).to_event(1), [flow])
points = torch.stack([data, data.square() / 4], 1)
train(flow.parameters(), lambda: (target.clear_cache(), -target.log_prob(points).mean())[1], lr=0.01)

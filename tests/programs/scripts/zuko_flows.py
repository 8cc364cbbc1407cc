"""Normalizing flows of zuko, trained and sampled."""
# kind: mathematics
# requires: zuko

import torch
import zuko
from shown import show, train

points = torch.stack([torch.linspace(-2, 2, 32), torch.linspace(-2, 2, 32).sin()], 1)
for flow in (
    zuko.flows.MAF,
    zuko.flows.NSF,
    zuko.flows.RealNVP if hasattr(zuko.flows, "RealNVP") else zuko.flows.NICE,
    zuko.flows.GF,
):
    torch.manual_seed(0)
    model = (
        flow(features=2, context=1, transforms=2, hidden_features=(16,))
        if flow is not zuko.flows.GF
        else flow(features=2, context=1, transforms=2)
    )
    context = points[:, :1].cos()
    show(flow.__name__)
    train(model.parameters(), lambda m=model, c=context: -m(c).log_prob(points).mean(), steps=10, lr=0.01)
    with torch.no_grad():
        sample = model(context).rsample()
    show("sampled", tuple(sample.shape))

"""A state space model of mambapy, computed by a parallel scan."""
# kind: models
# requires: mambapy

import torch
from mambapy.mamba import Mamba, MambaConfig
from shown import show, train

torch.manual_seed(0)
for length in (8, 13):
    model = Mamba(MambaConfig(d_model=8, n_layers=2, d_state=4))
    x = torch.randn(2, length, 8)
    show("out", model(x))
    train(model.parameters(), lambda m=model, x=x: (m(x) - x.cumsum(1)).square().mean(), steps=8)

"""A state space model of mambapy, by its parallel scan."""
# kind: models
# requires: mambapy

import torch
from mambapy.lm import LM
from mambapy.mamba import Mamba, MambaConfig
from shown import show, train

torch.manual_seed(0)
for length in (8, 13):
    model = Mamba(MambaConfig(d_model=8, n_layers=2, d_state=4))
    x = torch.randn(2, length, 8)
    show("out", model(x))
    train(model.parameters(), lambda m=model, x=x: (m(x) - x.cumsum(1)).square().mean(), steps=8)
tokens = torch.randint(0, 20, (2, 9))
model = LM(MambaConfig(d_model=8, n_layers=1), vocab_size=20)
show("logits", model(tokens))

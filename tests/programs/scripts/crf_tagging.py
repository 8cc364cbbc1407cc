"""A conditional random field by pytorch-crf: likelihoods and best sequences."""
# kind: layers
# requires: pytorch-crf

import torch
from shown import show, train
from torchcrf import CRF

torch.manual_seed(0)
tags, mask = torch.randint(0, 4, (3, 6)), torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 5 + [0]]).bool()
inputs, layer, field = torch.randn(3, 6, 8), torch.nn.Linear(8, 4), CRF(4, batch_first=True)
train([*layer.parameters(), *field.parameters()], lambda: -field(layer(inputs), tags, mask=mask), lr=0.05)
print("decoded", field.decode(layer(inputs), mask=mask))
show("transitions", field.transitions)

"""Low-rank layers of loralib."""
# kind: layers
# requires: loralib

import loralib
import torch
from shown import show, train

torch.manual_seed(0)
model = torch.nn.Sequential(
    loralib.Embedding(20, 8, r=2),
    loralib.MergedLinear(8, 12, r=2, enable_lora=[True, False, True]),
    loralib.Linear(12, 4, r=2),
)
loralib.mark_only_lora_as_trainable(model)
tokens = torch.arange(12).reshape(3, 4)
train([p for p in model.parameters() if p.requires_grad], lambda: (model(tokens) - 1).square().mean(), lr=0.1)
show("kept", *loralib.lora_state_dict(model).values())
show("merged", model.eval()(tokens))

"""Parameters and operations counted by fvcore."""
# kind: inspection
# requires: fvcore
# stops: it counts in a graph of TorchScript, which does not exist here (its parameter counts run)

import torch
from fvcore.nn import FlopCountAnalysis, parameter_count
from fvcore.nn.weight_init import c2_msra_fill

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 10))
c2_msra_fill(model[0])
print(sorted(parameter_count(model).items()))
print(FlopCountAnalysis(model, torch.ones(1, 3, 8, 8)).total())

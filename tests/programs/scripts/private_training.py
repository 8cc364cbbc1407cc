"""Training with differential privacy, by opacus."""
# kind: training
# requires: opacus

import warnings

import torch
from opacus import GradSampleModule, PrivacyEngine
from shown import show
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.arange(32) % 3
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
sampled = GradSampleModule(model)
torch.nn.functional.cross_entropy(sampled(x), y).backward()
show("samples", *(p.grad_sample for p in sampled.parameters()))
sampled.to_standard_module().zero_grad()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine()
private, optimizer, data = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=DataLoader(TensorDataset(x, y), batch_size=8),
    noise_multiplier=0.8,
    max_grad_norm=1.0,
    poisson_sampling=False,
)
for _ in range(2):
    for inputs, labels in data:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(private(inputs), labels).backward()
        optimizer.step()
show("private", engine.get_epsilon(1e-3), *(p.shape for p in private.parameters()))

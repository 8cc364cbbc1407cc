"""A handwritten training loop with lightning-fabric."""
# kind: training
# requires: lightning-fabric

import torch
from lightning_fabric import Fabric, seed_everything
from shown import show
from torch.utils.data import DataLoader, TensorDataset

seed_everything(0, verbose=False)
fabric = Fabric(accelerator="cpu", devices=1)
fabric.launch()
x = torch.randn(64, 8)
data = fabric.setup_dataloaders(DataLoader(TensorDataset(x, x.prod(1, keepdim=True)), batch_size=16))
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.05))
for epoch in range(3):
    for inputs, targets in data:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
    show(f"epoch {epoch}", loss.item())
show("reduced", fabric.all_reduce(torch.tensor(2.0)))

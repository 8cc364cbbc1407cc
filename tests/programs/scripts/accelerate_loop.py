"""A training loop by accelerate, with accumulated and clipped gradients."""
# kind: training
# requires: accelerate

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from shown import show
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
x = torch.randn(64, 8)
data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
model, optimizer, data, schedule = accelerator.prepare(model, optimizer, data, schedule)
for epoch in range(3):
    total = 0.0
    for inputs, targets in data:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item()
    show(f"epoch {epoch}", total)
show("gathered", accelerator.gather(torch.arange(3)))
show("state", *accelerator.get_state_dict(model).values())

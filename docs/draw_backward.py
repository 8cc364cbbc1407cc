"""Draw docs/backward.svg, one backward of `DistributedDataParallel`: `adjoint launch -n 2 docs/draw_backward.py`."""

from collections import OrderedDict
from pathlib import Path

import adjoint as torch
import adjoint.distributed as dist
from adjoint import nn

dist.init_process_group()
torch.set_num_threads(1)
torch.manual_seed(0)
widths = (1024, 1024, 1024, 1024, 1024, 10)
layers = OrderedDict()
for number in range(1, 6):
    layers[f"layer{number}"] = nn.Linear(widths[number - 1], widths[number])
    layers[f"activation{number}"] = nn.ReLU()
model = nn.parallel.DistributedDataParallel(nn.Sequential(layers))
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(256, 1024), torch.randint(0, 10, (256,))
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    dist.barrier()
    with torch.inspect.communication(model, optimizer) as seen:
        loss.backward()
    optimizer.step()
seen.gather()
if dist.get_rank() == 0:
    seen.save(
        Path(__file__).with_name("backward.svg"), title="One backward of DistributedDataParallel in two processes"
    )
    print(seen)
dist.destroy_process_group()

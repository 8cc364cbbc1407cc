"""A temporal convolutional network of pytorch-tcn, on whole sequences and on a stream."""
# kind: layers
# requires: pytorch-tcn

import torch
from pytorch_tcn import TCN
from shown import show, train

torch.manual_seed(0)
x = torch.randn(2, 3, 24)
for options in (
    {"causal": True},
    {"causal": False, "use_norm": "layer_norm"},
    {"use_skip_connections": True, "use_norm": "batch_norm"},
):
    torch.manual_seed(0)
    model = TCN(3, [4, 4], kernel_size=3, dropout=0.0, **options)
    train(model.parameters(), lambda m=model: (m(x) - 1).square().mean())
    show("output", model.eval()(x))
stream = TCN(3, [4], kernel_size=3, causal=True).eval()
stream.reset_buffers()
parts = [stream(part, inference=True) for part in x[:1].split(8, dim=2)]
show("stream", torch.cat(parts, 2), (torch.cat(parts, 2) - stream(x[:1])).abs().max().item() < 1e-5)

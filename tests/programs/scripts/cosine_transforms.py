"""Cosine transforms by torch-dct, and graphs drawn by torchviz."""
# kind: mathematics
# requires: torch-dct torchviz

import torch
import torch_dct
from shown import show
from torchviz import make_dot

torch.manual_seed(0)
x = torch.randn(3, 8, requires_grad=True)
show(
    "dct",
    torch_dct.dct(x),
    torch_dct.idct(torch_dct.dct(x)),
    torch_dct.dct(x, norm="ortho"),
    torch_dct.dct_2d(x),
    torch_dct.dct1(x),
)
show("gradient", *torch.autograd.grad(torch_dct.dct_3d(x[None]).square().sum(), x))
picture = make_dot((x * 2).sin().sum(), params={"x": x}).source
print(sorted(word for word in ("SinBackward0", "MulBackward0", "SumBackward0", "AccumulateGrad") if word in picture))

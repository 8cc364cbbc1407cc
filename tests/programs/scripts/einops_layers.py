"""einops on tensors: rearrange, reduce, repeat, einsum, pack, and its layers."""
# kind: layers
# requires: einops

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from shown import show, train

torch.manual_seed(0)
images = torch.randn(2, 3, 8, 8, requires_grad=True)
show("patches", rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4))
show("means", reduce(images, "b c (h 2) (w 2) -> b c h w", "mean"), reduce(images, "b c h w -> b", "max"))
show("repeated", repeat(images[0, 0], "h w -> (h 2) w c", c=3))
show("products", einsum(images, images, "b c h w, b d h w -> b c d"))
packed, shapes = pack([torch.ones(2, 3), torch.zeros(2, 5, 3)], "b * d")
show("packed", packed, *unpack(packed, shapes, "b * d"))
model = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
    EinMix("b t i -> b t o", weight_shape="i o", bias_shape="o", i=48, o=8),
    torch.nn.GELU(),
    Reduce("b t o -> b o", "mean"),
)
train(
    model.parameters(), lambda: torch.nn.functional.cross_entropy(model(images.detach()), torch.tensor([0, 1])), lr=0.05
)
reduce(images, "b c h w -> b c", "max").sum().backward()
show("gradient", images.grad.count_nonzero())

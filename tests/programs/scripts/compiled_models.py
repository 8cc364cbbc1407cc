"""Training with torch.compile: a model of einops' layers and functions, a transformer, whole graphs only."""
# kind: training
# requires: einops

import torch
from einops import rearrange, repeat
from einops.layers.torch import Rearrange, Reduce
from shown import show

nn, F = torch.nn, torch.nn.functional


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(self.norm(x)), "b n (t h d) -> t b h n d", t=3, h=self.heads)
        seen = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(rearrange(seen, "b h n d -> b n (h d)"))


class Classifier(nn.Module):
    def __init__(self, width=16, classes=4):
        super().__init__()
        self.patches = nn.Sequential(Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4), nn.Linear(48, width))
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.blocks = nn.ModuleList([Attention(width, 2) for _ in range(2)])
        self.head = nn.Sequential(
            nn.utils.parametrizations.weight_norm(nn.Linear(width, width)), nn.GELU(), nn.Linear(width, classes)
        )
        self.mean = Reduce("b n d -> b d", "mean")

    def forward(self, images):
        x = self.patches(images)
        x = torch.cat([repeat(self.first, "1 1 d -> b 1 d", b=len(x)), x], 1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.mean(x))


torch.manual_seed(0)
model = Classifier()
images, classes = torch.randn(24, 3, 16, 16), torch.randint(0, 4, (24,))
loss_of = torch.compile(lambda images, classes: F.cross_entropy(model(images), classes), fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
losses = []
for step in range(20):
    part = slice(step % 3 * 8, step % 3 * 8 + 8)
    optimizer.zero_grad()
    loss = loss_of(images[part], classes[part])
    loss.backward()
    optimizer.step()
    losses.append(float(loss.detach()))
show("losses", *losses[::4], losses[-1])
model.eval()
predict = torch.compile(model, fullgraph=True, dynamic=True)
with torch.no_grad():
    for size in (24, 5, 17):
        show("scores", predict(images[:size]))
model.compile(fullgraph=True)
show("compiled in place", model(images[:2]), sum(parameter.norm() for parameter in model.parameters()))

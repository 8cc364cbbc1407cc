"""Models and graphs that several tests draw."""

import adjoint as torch
from adjoint import nn

functional = nn.functional


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, time, width = x.shape
        shape = batch, time, self.heads, width // self.heads
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.project(x).split(width, dim=2))
        scores = (q @ k.transpose(-2, -1)) * shape[-1] ** -0.5
        scores = scores.masked_fill(torch.tril(torch.ones(time, time)) == 0, float("-inf"))
        return self.out((functional.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(batch, time, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self, layers, width=64, heads=4, tokens=97, time=16):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(time, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, indices):
        x = self.tokens(indices) + self.places(torch.arange(indices.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt_loss(layers):
    """The loss of a small transformer, and the transformer."""
    torch.manual_seed(0)
    model = GPT(layers)
    indices, targets = torch.randint(0, 97, (2, 16)), torch.randint(0, 97, (2, 16))
    return functional.cross_entropy(model(indices).view(-1, 97), targets.view(-1)), model


def perceptron_loss():
    """The loss of a network of two layers, and the network."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    return functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(0, 2, (5,))), model

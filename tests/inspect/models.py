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
    """Return a small transformer's loss, and the transformer."""
    torch.manual_seed(0)
    model = GPT(layers)
    indices, targets = torch.randint(0, 97, (2, 16)), torch.randint(0, 97, (2, 16))
    return functional.cross_entropy(model(indices).view(-1, 97), targets.view(-1)), model


def perceptron_loss():
    """Return the loss of a network of two layers, and the network."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    return functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(0, 2, (5,))), model


class Recurrent(nn.Module):
    """A cell that runs once for each token."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(20, 16), nn.RNNCell(16, 24), nn.Linear(24, 20)

    def forward(self, tokens):
        state = torch.zeros(tokens.shape[1], 24)
        for token in tokens:
            state = self.cell(self.embed(token), state)
        return self.head(state)


class Residual(nn.Module):
    def __init__(self, channels, wider, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, wider, 3, stride, 1, bias=False), nn.BatchNorm2d(wider)
        self.conv2, self.bn2 = nn.Conv2d(wider, wider, 3, 1, 1, bias=False), nn.BatchNorm2d(wider)
        self.shortcut = nn.Identity()
        if channels != wider:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, wider, 1, stride, bias=False), nn.BatchNorm2d(wider))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet8(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1, self.layer2, self.layer3 = Residual(16, 16), Residual(16, 32, 2), Residual(32, 64, 2)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn(self.stem(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Double(nn.Sequential):
    def __init__(self, channels, wider):
        super().__init__(
            nn.Conv2d(channels, wider, 3, padding=1), nn.ReLU(), nn.Conv2d(wider, wider, 3, padding=1), nn.ReLU()
        )


class UNet(nn.Module):
    """A U-Net of two levels, in which results of the descending part are joined to the ascending part."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = Double(1, 8), Double(8, 16), Double(16, 32)
        self.up2, self.mix2 = nn.ConvTranspose2d(32, 16, 2, 2), Double(32, 16)
        self.up1, self.mix1 = nn.ConvTranspose2d(16, 8, 2, 2), Double(16, 8)
        self.head, self.pool = nn.Conv2d(8, 2, 1), nn.MaxPool2d(2)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        x = self.mix2(torch.cat([self.up2(self.bottom(self.pool(second))), second], 1))
        return self.head(self.mix1(torch.cat([self.up1(x), first], 1)))

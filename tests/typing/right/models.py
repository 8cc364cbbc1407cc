"""Typical modules of users' programs."""

from __future__ import annotations

import math

import adjoint as torch
import adjoint.nn.functional as F
from adjoint import Tensor, nn


class ConvNet(nn.Module):
    def __init__(self, channels: int = 1, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 8, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv1(x))
        x = self.pool(F.gelu(self.norm(self.conv2(x))))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return F.log_softmax(self.head(x), dim=1)


class Residual(nn.Module):
    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.block(x)
        return x + y


class Attention(nn.Module):
    mask: Tensor

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).bool(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts: Tensor = self.project(x)
        q, k, v = parts.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        weights = scores.masked_fill(~self.mask[:length, :length], float("-inf")).softmax(dim=-1)
        return (weights @ v).transpose(1, 2).reshape(batch, length, width)


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, width: int = 16, depth: int = 2, length: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(1, length, width))
        self.blocks = nn.ModuleList(
            [Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, 2, length))) for _ in range(depth)]
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embed(tokens) + self.positions[:, : tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x)
        return logits

    @torch.no_grad()
    def generate(self, tokens: Tensor, count: int) -> Tensor:
        for _ in range(count):
            probabilities = F.softmax(self(tokens[:, -8:])[:, -1], dim=-1)
            tokens = torch.cat((tokens, torch.multinomial(probabilities, num_samples=1)), dim=1)
        return tokens


class Recurrent(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        output, (hidden, _) = self.lstm(x, state)
        return output, self.cell(x[:, 0], hidden[-1])


class VAE(nn.Module):
    def __init__(self, inputs: int, latent: int) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(inputs, 2 * latent), nn.Linear(latent, inputs)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(dim=1)
        return torch.sigmoid(self.decoder(z)), divergence.mean()


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(0.0))

    @property
    def scale(self) -> Tensor:
        return self.log_scale.exp()

    def forward(self, x: Tensor, *, inverse: bool = False) -> Tensor:
        return x / self.scale if inverse else x * self.scale


def initialised(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight, gain=nn.init.calculate_gain("relu"))
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")


def losses(x: Tensor, y: Tensor) -> Tensor:
    labels = torch.tensor([0, 2])
    return (
        F.mse_loss(x, y)
        + F.l1_loss(x, y, reduction="sum")
        + F.smooth_l1_loss(x, y, beta=0.5)
        + F.cross_entropy(x, labels, ignore_index=-1)
        + F.nll_loss(F.log_softmax(x, dim=-1), labels)
        + F.binary_cross_entropy_with_logits(x, y.sigmoid())
        + F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="batchmean")
        + F.cosine_similarity(x, y, dim=1).mean()
    )


def layers(x: Tensor) -> Tensor:
    h = F.conv2d(x, torch.randn(4, 3, 3, 3), bias=None, stride=1, padding=1)
    h = F.max_pool2d(h, kernel_size=2) + F.avg_pool2d(h, 2, stride=2)
    h = F.interpolate(h, scale_factor=2.0, mode="bilinear", align_corners=False)
    h = F.dropout(F.layer_norm(h, h.shape[1:]), p=0.1, training=False)
    h = F.pad(h, (1, 1, 1, 1), mode="reflect")
    return F.leaky_relu(F.batch_norm(h, None, None, training=True), 0.1) + F.silu(h) + F.softplus(h) + torch.tanh(h)


def run() -> None:
    torch.manual_seed(0)
    network = ConvNet()
    network.apply(initialised)
    print(network(torch.randn(2, 1, 12, 12)))
    print(Transformer(11).generate(torch.zeros(1, 1, dtype=torch.int64), 3))
    print(Recurrent(4)(torch.randn(2, 3, 4)))
    print(VAE(6, 2)(torch.rand(3, 6)))
    print(Scaled()(torch.ones(2), inverse=True))
    print(losses(torch.randn(2, 3), torch.randn(2, 3)))
    print(layers(torch.randn(2, 3, 8, 8)))

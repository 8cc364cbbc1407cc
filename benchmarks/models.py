"""Whole training steps of models of ordinary size."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed

GROUP = Group("models")
case = GROUP.case


def _training_step(torch: ModuleType, model: Any, loss_of: Callable[[], Any]) -> Timed:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _mlp(batch: int) -> None:
    @case(f"MLP 784-256-128-10, Adam, batch {batch}")
    def mlp(torch: ModuleType) -> Timed:
        nn = torch.nn
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
        x, target = torch.randn(batch, 784), torch.randint(0, 10, (batch,))
        return _training_step(torch, model, lambda: nn.functional.cross_entropy(model(x), target))


_mlp(32)
_mlp(512)


@case("CNN on 28x28, Adam, batch 32")
def cnn(torch: ModuleType) -> Timed:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    x, target = torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))
    return _training_step(torch, model, lambda: nn.functional.cross_entropy(model(x), target))


@case("transformer block 8x32x64, Adam")
def transformer_block(torch: ModuleType) -> Timed:
    nn = torch.nn
    batch, length, width, heads = 8, 32, 64, 4

    class Block(nn.Module):
        """Pre-norm self-attention and a two-layer MLP, each with a residual connection."""

        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            qkv = self.qkv(self.norm1(x)).view(batch, length, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            weights = torch.softmax(q @ k.transpose(-2, -1) * (width // heads) ** -0.5, dim=-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    model = Block()
    x, target = torch.randn(batch, length, width), torch.randn(batch, length, width)
    return _training_step(torch, model, lambda: nn.functional.mse_loss(model(x), target))

"""Training with compiled kernels leaks nothing: with the garbage collector off, memory does not grow over 2,000 steps."""

import gc

import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint import nn
from adjoint.codegen.acceleration import LOOPS
from tests.autograd.test_lifetime import growth

WARM_UP, STEPS = 2_000, 500
SIZES_CHANGE = 4  # lengths of sequences alternate, so that kernels compute more than one shape


class Block(nn.Module):
    """A block of a small GPT."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def transformer(step):
    if not step:
        return nn.Sequential(nn.Embedding(11, 16), Block(16), Block(16), nn.Linear(16, 11))
    tokens = torch.randint(0, 11, (2, 8 + step % SIZES_CHANGE))
    return tokens, tokens.reshape(-1)


def convolutions(step):
    if not step:
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.1), nn.Linear(4 * 4 * 4, 11),
        )  # fmt: skip
    batch = 2 + step % SIZES_CHANGE
    return torch.randn(batch, 1, 8, 8), torch.randint(0, 11, (batch,))


class Recurrent(nn.Module):
    """A language model with one LSTM."""

    def __init__(self):
        super().__init__()
        self.symbol, self.lstm, self.head = nn.Embedding(11, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 11)

    def forward(self, tokens):
        return self.head(self.lstm(self.symbol(tokens))[0])


def recurrent(step):
    return transformer(step) if step else Recurrent()


@pytest.mark.thorough
@pytest.mark.parametrize("case", [transformer, convolutions, recurrent], ids=lambda case: case.__name__)
def test_steps_leave_nothing_behind(case, monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    monkeypatch.setattr(LOOPS, "_enabled", True)
    torch.manual_seed(0)
    model = case(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    taken = 0

    def step():
        nonlocal taken
        taken += 1
        x, target = case(taken)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).reshape(-1, 11), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    gc.collect()
    gc.disable()
    try:  # the first steps fill tables of limited size
        blocks, resident = growth(step, warm_up=WARM_UP, steps=STEPS)
    finally:
        gc.enable()
    assert blocks < 200
    assert resident < 3_000_000

"""Whole training steps of models of ordinary size."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cases import Group, Timed

GROUP = Group("models")
case = GROUP.case


def _training_step(torch: ModuleType, model: Any, loss_of: Callable[[], Any], optimizer: Any = None) -> Timed:
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-3)

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
        """Self-attention and a two-layer MLP, each with normalization first and with a residual connection."""

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


@case("LeNet, SGD with momentum, batch 64")
def lenet(torch: ModuleType) -> Timed:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    x, target = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    loss_of = lambda: nn.functional.cross_entropy(model(x), target)
    return _training_step(torch, model, loss_of, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))


def _resnet(torch: ModuleType, widths: tuple[int, ...]) -> Any:
    """A residual network for 32x32 images, with one block of two convolutions for each width."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int):
            super().__init__()
            stride = 1 if before == after else 2
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
            self.short = nn.Identity() if stride == 1 else nn.Conv2d(before, after, 1, stride, bias=False)

        def forward(self, x):
            y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
            return torch.relu(y + self.short(x))

    layers = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    layers += [Block(before, after) for before, after in zip((widths[0], *widths), widths, strict=False)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))


@case("ResNet-8 on 32x32, SGD with momentum, batch 32")
def resnet(torch: ModuleType) -> Timed:
    model = _resnet(torch, (16, 32, 64))
    x, target = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    loss_of = lambda: torch.nn.functional.cross_entropy(model(x), target)
    return _training_step(torch, model, loss_of, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))


def _gpt(torch: ModuleType, *, layers: int, width: int, heads: int, length: int, symbols: int) -> Any:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch = x.shape[0]
            qkv = self.qkv(self.norm1(x)).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.unbind(0)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

        def forward(self, tokens):
            x = self.symbol(tokens) + self.place(torch.arange(length))
            return self.head(self.norm(self.blocks(x)))

    return GPT()


@case("GPT of 4 layers of 128, 8x128 symbols, AdamW")
def gpt(torch: ModuleType) -> Timed:
    model = _gpt(torch, layers=4, width=128, heads=4, length=128, symbols=65)
    tokens, target = torch.randint(0, 65, (8, 128)), torch.randint(0, 65, (8 * 128,))
    loss_of = lambda: torch.nn.functional.cross_entropy(model(tokens).view(-1, 65), target)
    return _training_step(torch, model, loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3))


@case("LSTM language model of 2 layers of 128, 32x64 symbols, Adam")
def lstm_language_model(torch: ModuleType) -> Timed:
    nn = torch.nn
    symbol, lstm, head = nn.Embedding(65, 128), nn.LSTM(128, 128, 2, batch_first=True), nn.Linear(128, 65)
    model = nn.ModuleList([symbol, lstm, head])
    tokens, target = torch.randint(0, 65, (32, 64)), torch.randint(0, 65, (32 * 64,))
    return _training_step(
        torch, model, lambda: nn.functional.cross_entropy(head(lstm(symbol(tokens))[0]).view(-1, 65), target)
    )


@case("VAE 784-400-20, Adam, batch 128")
def vae(torch: ModuleType) -> Timed:
    nn = torch.nn
    encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 40))
    decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784))
    x = torch.rand(128, 784)
    noise = torch.randn(128, 20)

    def loss_of():
        mean, log_variance = encoder(x).chunk(2, 1)
        found = decoder(mean + noise * (0.5 * log_variance).exp())
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
        return nn.functional.binary_cross_entropy_with_logits(found, x, reduction="sum") + divergence

    return _training_step(torch, nn.ModuleList([encoder, decoder]), loss_of)


@case("diffusion MLP 66-256-256-256-2, Adam, batch 512")
def diffusion(torch: ModuleType) -> Timed:
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(66, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 2)
    )
    x, noise, time = torch.randn(512, 2), torch.randn(512, 2), torch.rand(512, 1)
    frequencies = torch.arange(32).float().add(1)

    def loss_of():
        angles = time * frequencies
        noisy = x * (1 - time) + noise * time
        return nn.functional.mse_loss(model(torch.cat([noisy, angles.sin(), angles.cos()], 1)), noise)

    return _training_step(torch, model, loss_of)


@case("PINN 2-64-64-64-1 with second derivatives, Adam, 1024 points")
def pinn(torch: ModuleType) -> Timed:
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    points = torch.rand(1024, 2, requires_grad=True)

    def loss_of():
        u = model(points)
        (first,) = torch.autograd.grad(u.sum(), points, create_graph=True)
        (second,) = torch.autograd.grad(first[:, 0].sum(), points, create_graph=True)
        return (first[:, 1] - 0.1 * second[:, 0] + u[:, 0] * first[:, 0]).square().mean()

    return _training_step(torch, model, loss_of)


@case("GAN 64-256-784, two Adams, batch 64")
def gan(torch: ModuleType) -> Timed:
    nn = torch.nn
    generator = nn.Sequential(nn.Linear(64, 256), nn.LeakyReLU(0.2), nn.Linear(256, 784), nn.Tanh())
    critic = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
    optimizers = [torch.optim.Adam(part.parameters(), lr=2e-4, betas=(0.5, 0.999)) for part in (generator, critic)]
    real, noise = torch.rand(64, 784), torch.randn(64, 64)
    ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
    loss = nn.functional.binary_cross_entropy_with_logits

    def step():
        optimizers[1].zero_grad()
        fake = generator(noise)
        (loss(critic(real), ones) + loss(critic(fake.detach()), zeros)).backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        total = loss(critic(fake), ones)
        total.backward()
        optimizers[0].step()
        return total

    return step


@case("U-Net of 2 levels on 32x32, Adam, batch 8")
def unet(torch: ModuleType) -> Timed:
    nn = torch.nn

    def pair(before: int, after: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.Conv2d(after, after, 3, padding=1), nn.ReLU()
        )

    down1, down2, middle = pair(1, 16), pair(16, 32), pair(32, 64)
    rise2, up2 = nn.ConvTranspose2d(64, 32, 2, 2), pair(64, 32)
    rise1, up1 = nn.ConvTranspose2d(32, 16, 2, 2), pair(32, 16)
    head = nn.Conv2d(16, 1, 1)
    x, target = torch.randn(8, 1, 32, 32), torch.rand(8, 1, 32, 32)
    pool = nn.functional.max_pool2d

    def loss_of():
        first = down1(x)
        second = down2(pool(first, 2))
        y = up2(torch.cat([rise2(middle(pool(second, 2))), second], 1))
        y = up1(torch.cat([rise1(y), first], 1))
        return nn.functional.binary_cross_entropy_with_logits(head(y), target)

    return _training_step(torch, nn.ModuleList([down1, down2, middle, rise2, up2, rise1, up1, head]), loss_of)


@case("vision transformer of 2 layers of 64 on 28x28, AdamW, batch 32")
def vision_transformer(torch: ModuleType) -> Timed:
    nn = torch.nn
    patches, body = nn.Conv2d(1, 64, 7, 7), _gpt(torch, layers=2, width=64, heads=4, length=16, symbols=10).blocks
    head = nn.Linear(64, 10)
    model = nn.ModuleList([patches, body, head])
    x, target = torch.randn(32, 1, 28, 28), torch.randint(0, 10, (32,))

    def loss_of():
        tokens = patches(x).flatten(2).transpose(1, 2)
        return nn.functional.cross_entropy(head(body(tokens).mean(1)), target)

    return _training_step(torch, model, loss_of, torch.optim.AdamW(model.parameters(), lr=1e-3))


@case("graph network of 2 layers of 64, 2000 nodes, 10000 edges, Adam")
def graph_network(torch: ModuleType) -> Timed:
    nn = torch.nn
    first, second = nn.Linear(32, 64), nn.Linear(64, 7)
    x, target = torch.randn(2000, 32), torch.randint(0, 7, (2000,))
    source, goal = torch.randint(0, 2000, (10_000,)), torch.randint(0, 2000, (10_000,))

    def spread(h):
        return h + torch.zeros_like(h).index_add(0, goal, h.index_select(0, source))

    def loss_of():
        return nn.functional.cross_entropy(second(spread(torch.relu(first(spread(x))))), target)

    return _training_step(torch, nn.ModuleList([first, second]), loss_of)

"""Training loops, optimizers, schedulers, checkpoints and data."""

import io
from collections.abc import Iterator
from typing import Any

import adjoint as torch
import adjoint.nn.functional as F
from adjoint import Tensor, nn, optim
from adjoint.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Points(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, count: int) -> None:
        self.inputs = torch.randn(count, 4)
        self.targets = (self.inputs.sum(1) > 0).long()

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.inputs[index], self.targets[index]


class Network(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, classes))
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layers(x)
        return scores


def train(model: nn.Module, loader: DataLoader[Any], epochs: int = 1) -> float:
    optimizer = optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.99), weight_decay=1e-4)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    model.train()
    total = 0.0
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(inputs), targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
    return total / max(1, len(loader))


@torch.no_grad()
def evaluate(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    model.eval()
    scores: Tensor = model(inputs)
    return (scores.argmax(1) == targets).float().mean().item()


def by_hand(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    weight = torch.zeros(x.shape[1], requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    for _ in range(3):
        loss = F.mse_loss(x @ weight + bias, y)
        loss.backward()
        with torch.no_grad():
            for parameter in (weight, bias):
                gradient = parameter.grad
                if gradient is not None:
                    parameter.sub_(gradient, alpha=0.1)
                    gradient.zero_()
    return weight.detach(), bias.detach()


def several_groups(model: Network) -> list[float]:
    optimizer = torch.optim.SGD(
        [{"params": model.layers[0].parameters(), "lr": 0.1}, {"params": model.layers[3].parameters()}],
        lr=0.01,
        momentum=0.9,
        nesterov=True,
    )
    warm = optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
    cosine = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    schedule = optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[2])
    for _ in range(3):
        optimizer.step()
        schedule.step()
    return [group["lr"] for group in optimizer.param_groups]


def checkpoint(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "epoch": 3}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    model.load_state_dict(loaded["model"], strict=True)
    return model


def closures(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    optimizer = optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        return loss

    return float(optimizer.step(closure).detach())


def accumulated(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> int:
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    for step, (inputs, targets) in enumerate(batches):
        (F.cross_entropy(model(inputs), targets) / 2).backward()
        if step % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def named(model: nn.Module) -> Iterator[tuple[str, float]]:
    for name, parameter in model.named_parameters():
        yield name, parameter.data.abs().mean().item()


def frozen(model: Network) -> Network:
    for parameter in model.layers.parameters():
        parameter.requires_grad = False
    model.layers.requires_grad_(True)
    return model.to(torch.float64).to("cpu")


def mixed(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()


def run() -> None:
    torch.manual_seed(0)
    points = Points(24)
    train_set, test_set = random_split(points, [16, 8])
    model = Network(4, 2)
    loader = DataLoader(train_set, batch_size=8, shuffle=True)
    print(train(model, loader))
    print(evaluate(model, points.inputs, points.targets))
    print(len(test_set))
    print(train(model, DataLoader(TensorDataset(points.inputs, points.targets), batch_size=12)))
    print(by_hand(points.inputs, points.targets.float()))
    print(several_groups(model))
    print(checkpoint(model))
    print(closures(model, points.inputs, points.targets))
    print(list(named(model)))
    print(accumulated(model, [(points.inputs, points.targets)] * 2))
    print(mixed(model, points.inputs, points.targets))
    print(frozen(model))

"""Creation, conversion, indexing and printing of tensors."""

from collections.abc import Iterator

import numpy as np

import adjoint as torch
from adjoint import Tensor


def creation() -> Tensor:
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    b = torch.zeros(2, 2) + torch.ones((2, 2), dtype=torch.float64)
    c = torch.full((2, 2), 7.5) + torch.eye(2) + torch.empty(2, 2).fill_(1)
    d = (
        torch.arange(4).reshape(2, 2)
        + torch.arange(0, 1, step=0.25).view(2, 2)
        + torch.linspace(0, 1, steps=4).view(2, 2)
    )
    return a + b + c + d + torch.zeros_like(a) + torch.rand_like(a) + torch.full_like(a, 2.0)


def conversions(x: Tensor) -> list[float]:
    y = x.to(torch.float64).to("cpu", non_blocking=True).to(dtype=torch.float32).to(x)
    z = y.double().float().half().to(torch.device("cpu"), torch.float32, copy=True)
    values: list[float] = z.flatten().tolist()
    number: float = z.sum().item()
    return [*values, number, float(z.mean()), int(z.numel())]


def from_numpy() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    array = np.linspace(0.0, 1.0, 6)
    tensor = torch.from_numpy(array).view(2, 3)
    other = torch.as_tensor(array, dtype=torch.float32)
    result: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = (tensor.T @ tensor + other.sum()).numpy()
    return result


def indexing(x: Tensor) -> Tensor:
    first, rows, columns = x[0], x[1:], x[:, :2]
    mask = x > x.mean()
    chosen, some = x[mask], x[torch.tensor([0, 1])]
    x = x.clone()
    x[0] = 0.0
    x[:, 1] = torch.ones(len(x))
    x[x < 0] = 1
    return first.sum() + rows.sum() + columns.sum() + chosen.sum() + some.sum() + x[..., None].sum() + x[-1, -1]


def shapes(x: Tensor) -> tuple[int, ...]:
    rows, columns = x.shape
    y = x.view(-1).unsqueeze(0).expand(3, -1).permute(1, 0).contiguous().reshape(columns, rows, 3)
    z = y.transpose(0, 1).flatten(1).squeeze().movedim(0, 1)
    w = torch.cat([z, z], dim=1).repeat(2, 1).tile((1, 2))
    parts = torch.stack(list(w.split(2))[:1]).chunk(2, dim=-1)
    return (*parts[0].shape, x.size(0), x.ndim, x.dim(), x.stride(0))


def iteration(x: Tensor) -> Iterator[float]:
    for row in x:
        yield row.norm().item()
    for index, value in enumerate(x.unbind(1)):
        yield float(value[0]) + index


def comparisons(x: Tensor, y: Tensor) -> bool:
    same = torch.equal(x, y) or torch.allclose(x, y, atol=1e-6)
    equal: Tensor = x == y
    less = (x < y) & (x != 0) | ~equal
    return same or bool(less.any()) or bool(equal.all()) or x is y


def arithmetic(x: Tensor) -> Tensor:
    y = 2 * x + 1 - x / 3 + x**2 - 2**x + x % 3 + x // 2 - (-x) + abs(x) + 1 / (x + 10)
    y += 1
    y *= x
    return (
        y @ y.T
        + torch.matmul(y, y.mT)
        + torch.lerp(x, y, 0.5).sum()
        + torch.pow(x, 2).sum()
        + torch.clamp(y, min=0).sum()
    )


def in_place(x: Tensor) -> Tensor:
    return x.detach().clone().add_(1).mul_(2).clamp_(0, 1).zero_().fill_(3).copy_(x).sub_(x, alpha=0.5).div_(2).neg_()


def random_numbers() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(1)
    a = torch.randn(2, 3, generator=generator) + torch.rand((2, 3)) + torch.randint(0, 10, (2, 3))
    b = torch.normal(0.0, 1.0, size=(2, 3)) + torch.bernoulli(torch.full((2, 3), 0.5)) + torch.randperm(3)
    return a + b + torch.empty(2, 3).uniform_(-1, 1) + torch.empty(2, 3).normal_(0, 1)


def run() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    print(creation())
    print(conversions(x))
    print(from_numpy())
    print(indexing(x))
    print(shapes(x))
    print(list(iteration(x)))
    print(comparisons(x, x))
    print(arithmetic(torch.rand(3, 3) + 0.5))
    print(in_place(x))
    print(random_numbers())

"""Reductions, sorting and search: functions whose results have names."""

import adjoint as torch
from adjoint import Tensor


def accuracy(scores: Tensor, targets: Tensor) -> float:
    predictions = scores.argmax(dim=1)
    return predictions.eq(targets).float().mean().item()


def top(scores: Tensor, k: int = 2) -> tuple[Tensor, Tensor]:
    found = torch.topk(scores, k, dim=-1)
    values, indices = scores.topk(k)
    return found.values + values, found.indices + indices


def ordered(x: Tensor) -> Tensor:
    ascending = x.sort(dim=0).values
    descending, places = torch.sort(x, dim=0, descending=True)
    return ascending + descending + torch.argsort(x, dim=0) + places + x.sort(stable=True).indices


def extremes(x: Tensor) -> float:
    largest, at = x.max(dim=1)
    smallest = torch.min(x, dim=1, keepdim=True).values
    both = torch.aminmax(x)
    return (
        largest.sum() + at.sum() + smallest.sum() + x.max() + torch.maximum(x, x).min() + both.min + x.amax((0, 1))
    ).item()


def statistics(x: Tensor) -> dict[str, float]:
    variance, mean = torch.var_mean(x, dim=0)
    return {
        "mean": x.mean().item(),
        "std": x.std(dim=0, unbiased=False).mean().item(),
        "var": torch.var(x, dim=(0, 1), correction=0).item() + variance.sum().item() + mean.sum().item(),
        "median": x.median().item() + x.median(dim=0).values.sum().item(),
        "quantile": torch.quantile(x, torch.tensor([0.25, 0.75])).sum().item()
        + torch.quantile(x, 0.5, dim=0).sum().item(),
        "norm": x.norm().item() + x.norm(p=1, dim=1).sum().item() + torch.linalg.norm(x).item(),
    }


def sums(x: Tensor) -> Tensor:
    return (
        x.sum()
        + x.sum(0).sum()
        + x.sum(dim=(0, 1))
        + x.sum(1, keepdim=True).sum()
        + x.prod()
        + torch.logsumexp(x, 1).sum()
    )


def running(x: Tensor) -> Tensor:
    return (
        x.cumsum(0)
        + torch.cumprod(x, dim=1)
        + x.cummax(dim=0).values
        + torch.logcumsumexp(x, 0)
        + x.diff(dim=0, prepend=x[:1])
    )


def counted(labels: Tensor) -> Tensor:
    classes, counts = torch.unique(labels, return_counts=True)
    plain = torch.unique(labels)
    values, inverse, again = labels.unique(sorted=True, return_inverse=True, return_counts=True)
    return classes + counts + plain + values + again + labels.bincount()[classes] + inverse.max()


def found(x: Tensor) -> int:
    rows, columns = torch.where(x > 0)
    places = torch.nonzero(x)
    by_dimension = x.nonzero(as_tuple=True)
    return len(rows) + len(columns) + len(places) + len(by_dimension) + int(torch.searchsorted(torch.arange(5), 3))


def selected(x: Tensor, index: Tensor) -> Tensor:
    gathered = x.gather(1, index) + torch.take_along_dim(x, index, dim=1)
    scattered = torch.zeros_like(x).scatter_add_(1, index, gathered).scatter(1, index, 1.0)
    return scattered + x.index_select(0, torch.tensor([0, 1])) + x.masked_fill(x < 0, 0.0) + torch.where(x > 0, x, 0.0)


def run() -> None:
    torch.manual_seed(0)
    x = torch.rand(2, 4) + 0.1
    print(accuracy(x, torch.tensor([0, 1])))
    print(top(x))
    print(ordered(x))
    print(extremes(x))
    print(statistics(x))
    print(sums(x))
    print(running(x))
    print(counted(torch.tensor([0, 1, 1, 2])))
    print(found(x))
    print(selected(x, torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])))

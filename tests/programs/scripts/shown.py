"""Functions that the programs share: they show tensors in few digits, and train for some steps."""

import torch


def show(label, *values):
    """Print the shape, the norm and the first elements of each tensor, and the text of other values."""
    print(label, *map(shown, values))


def shown(value):
    if isinstance(value, float):
        return f"{value:.4f}"
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    numbers = (torch.view_as_real(value) if value.is_complex() else value).double().flatten()
    first = " ".join(f"{number:.3f}" for number in numbers[:4].tolist())
    return f"{list(value.shape)} norm {numbers.norm().item():.4g}: {first};"


def train(parameters, loss, steps=20, optimizer=None, lr=0.01):
    """Train with the scalar loss that `loss()` computes.

    Print every fourth loss, and the lengths of the first and last gradients.
    """
    parameters = list(parameters)
    optimizer = optimizer or torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    losses, norms = [], []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        norms.append(torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm().item())
        optimizer.step()
        losses.append(value.item())
    print("losses", *(f"{value:.4f}" for value in losses[:: max(1, steps // 5)]), f"{losses[-1]:.4f}")
    print("gradients", f"{norms[0]:.4g} {norms[-1]:.4g}")

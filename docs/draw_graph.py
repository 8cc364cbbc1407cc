"""Draw the pictures of the README and of these pages: `python docs/draw_graph.py`."""

import argparse
from pathlib import Path

import adjoint as torch
from adjoint import inspect, nn


def readme_example() -> inspect.Graph:
    """Return the README's example, after `y.backward(retain_graph=True)`."""
    x = torch.tensor(2.0)
    w = torch.tensor(3.0, requires_grad=True)
    b = torch.tensor(1.0, requires_grad=True)
    y = w * x + b
    y.backward(retain_graph=True)
    return inspect.graph(y, params={"w": w, "x": x, "b": b, "y": y}, values=True)


def two_layers() -> inspect.Graph:
    """Return a network of two layers and its loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    inputs, target = torch.randn(32, 8), torch.randint(0, 3, (32,))
    loss = nn.functional.cross_entropy(model(inputs), target)
    return inspect.graph(loss, params=model)


PICTURES = {"graph.svg": readme_example, "network.svg": two_layers}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the pictures of the README and of these pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().folder
    for name, picture in PICTURES.items():
        picture().save(folder / name)

"""Shared parts of the examples: colours, axes without boxes, and the command line."""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "arguments", "open_axes", "plt", "save"]

BLUE, ORANGE, GREEN, GREY = "#2f6db3", "#e07b39", "#3a9a6c", "#8a8f98"


def arguments(description: str, **numbers: int) -> argparse.Namespace:
    """Return the options of an example: integers by name, the seed, and the folder of the results."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="where the results go")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def open_axes(*many: Axes) -> None:
    """Return axes with a faint grid and without the upper and right frame lines."""
    for axes in many:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)


def save(figure: Figure, path: Path) -> None:
    """Write the figure, and print its path."""
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"wrote {path}")

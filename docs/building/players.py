"""Frames in pages that show the separate pages of pictures and traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

ENVIRONMENT = "ADJOINT_DOCS_PLAYERS"
"""The environment variable with the folder for the pages of the players. Without it, nothing is written."""


class Frame:
    """A frame that shows the page of a picture."""

    def __init__(self, name: str, height: int, depth: int) -> None:
        self.name, self.height, self.depth = name, height, depth

    def _repr_html_(self) -> str:
        source = f"{'../' * self.depth}players/{self.name}.html"
        return (
            f'<iframe class="player" src="{source}" title="{self.name}" loading="lazy" style="height: {self.height}px"></iframe>'
            f'<p class="player-link"><a href="{source}">Open this picture in a window of its own</a></p>'
        )

    def __repr__(self) -> str:
        return f"the player {self.name}"


def show(picture: Any, name: str, height: int = 520, depth: int = 1) -> Frame:
    """Save the page of a graph or of a trace, and show it."""
    folder = os.environ.get(ENVIRONMENT)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        picture.save(Path(folder) / f"{name}.html")
    return Frame(name, height, depth)

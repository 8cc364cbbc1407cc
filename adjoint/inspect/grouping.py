"""Which parts of a graph belong together: modules, and repeated blocks."""

from __future__ import annotations

from typing import Any

from .model import Snapshot
from .names import Names


def group(picture: Snapshot, places: list[Any], names: Names) -> None:
    """Fill the groups of `picture`."""

"""Differences that are meant, each with its reason."""

import re
from typing import NamedTuple

from .cells import Cell


class Excuse(NamedTuple):
    """`cell` is searched for in the cell as written, `difference` in the words that say what differs."""

    reason: str
    cell: str
    difference: str


EXCUSES: list[Excuse] = []


def excuse(cell: Cell, difference: str) -> Excuse | None:
    """Why the difference is none to mend, if it is known."""
    return next(
        (each for each in EXCUSES if re.search(each.cell, str(cell)) and re.search(each.difference, difference)), None
    )

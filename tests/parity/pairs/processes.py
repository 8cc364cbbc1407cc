"""Run cells in several new processes."""

import faulthandler
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch

from .cells import Cell, judge

TOGETHER = 20
"""The number of cells that a process runs before it answers."""

Judged = tuple[Cell, str, str | None]


def run(cells: list[Cell], processes: int, end: float) -> Iterator[Judged]:
    """Yield each cell with its standard and its difference, until the time limit."""
    groups = [cells[start : start + TOGETHER] for start in range(0, len(cells), TOGETHER)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), prepare) as pool:
        for judged in pool.map(partial(judge_group, end=end), groups):
            yield from judged


def prepare() -> None:
    """Prepare a new process."""
    faulthandler.enable()
    torch.set_num_threads(1)


def judge_group(cells: list[Cell], end: float) -> list[Judged]:
    return [(cell, *judge(cell)) for cell in cells if time.time() < end]

"""Reports of repeated captures and of refused captures. `TORCH_LOGS` and `torch._logging.set_logs` enable them."""

from __future__ import annotations

import os
import sys
from typing import Any

REPORTS = ("recompiles", "graph_breaks")


def named(text: str) -> set[str]:
    """The reports that a text like "+recompiles,graph_breaks" names."""
    return {each.strip().lstrip("+") for each in text.split(",")} & {*REPORTS}


WANTED = named(os.environ.get("TORCH_LOGS", ""))
"""The reports that are written."""


def report(kind: str, text: str) -> None:
    """Write a report to the standard error stream, if it is wanted."""
    if kind in WANTED:
        print(f"[__{kind}] {text}", file=sys.stderr)


def set_logs(**wanted: Any) -> None:
    """Choose the reports: `recompiles=True`, `graph_breaks=True`.

    Other names, which PyTorch has, report nothing here.
    """
    WANTED.clear()
    WANTED.update(kind for kind in REPORTS if wanted.get(kind))

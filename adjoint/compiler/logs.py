"""Reports of repeated captures and of refused captures. `TORCH_LOGS` and `torch._logging.set_logs` enable them."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from typing import Any

REPORTS = ("recompiles", "graph_breaks")


COUNTERS: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""How many programs were captured ("stats"), and why functions run in Python ("graph_break")."""


def named(text: str) -> set[str]:
    """Return the reports that a text like "+recompiles,graph_breaks" names."""
    return {each.strip().lstrip("+") for each in text.split(",")} & {*REPORTS}


WANTED = named(os.environ.get("TORCH_LOGS", ""))
"""The enabled reports."""


def report(kind: str, text: str) -> None:
    """Write a report to the standard error stream, if it is enabled."""
    if kind in WANTED:
        print(f"[__{kind}] {text}", file=sys.stderr)


def set_logs(**wanted: Any) -> None:
    """Enable reports: `recompiles=True`, `graph_breaks=True`. Other names, which exist in PyTorch, have no effect here."""
    WANTED.clear()
    WANTED.update(kind for kind in REPORTS if wanted.get(kind))

"""Collectives that are under way while the program computes: who lets MPI make progress."""

from __future__ import annotations

from .work import Work


def watch(work: Work) -> None:
    """Let `work` make progress until it is complete."""

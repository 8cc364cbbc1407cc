"""Recurrent layers over packed sequences: one run for all steps that the same sequences have."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import adjoint as torch

Run = Callable[[torch.Tensor, Any], tuple[torch.Tensor, Any]]
"""What runs a layer over `(L, N, features)` from a state, which is a tensor `(N, features)` or a pair of these."""


def run_packed(
    run: Run, data: torch.Tensor, batch_sizes: list[int], state: Any, backwards: bool
) -> tuple[torch.Tensor, Any]:
    """Run over packed `data` of shape `(steps of all sequences, features)`; return packed outputs and final states.

    The sequences are sorted by length, so the first `batch_sizes[t]` of them have a step t. Forward, the states of those
    that end are set aside; backwards, each sequence joins at its own last step, from its own first state.
    """
    stretches = [(size, len(list(steps))) for size, steps in groupby(batch_sizes)]
    parts = data.split([size * length for size, length in stretches])
    outputs: list[torch.Tensor] = []
    ended: list[Any] = []
    running = _rows(state, 0, stretches[-1][0] if backwards else stretches[0][0])
    order = range(len(stretches))
    for number in reversed(order) if backwards else order:
        size, length = stretches[number]
        before = _size(running)
        if size < before:
            ended.append(_rows(running, size, before))
            running = _rows(running, 0, size)
        elif size > before:
            running = _joined([running, _rows(state, before, size)])
        output, running = run(parts[number].unflatten(0, (length, size)), running)
        outputs.append(output.flatten(0, 1))
    final = _joined([running, *reversed(ended)]) if ended else running
    return torch.cat(outputs[::-1] if backwards else outputs), final


def _size(state: Any) -> int:
    return int((state[0] if isinstance(state, tuple) else state).size(0))


def _rows(state: Any, start: int, stop: int) -> Any:
    if isinstance(state, tuple):
        return tuple(part[start:stop] for part in state)
    return state[start:stop]


def _joined(states: list[Any]) -> Any:
    if isinstance(states[0], tuple):
        return tuple(torch.cat(parts) for parts in zip(*states, strict=True))
    return torch.cat(states)

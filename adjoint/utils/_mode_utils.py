"""`torch.utils._mode_utils`: functions that disable modes and compare modes. Libraries use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import adjoint as torch

__all__ = ["all_same_mode", "no_dispatch"]


@contextmanager
def no_dispatch() -> Iterator[None]:
    """A context in which this thread calls no `__torch_dispatch__` of modes and classes."""
    with torch._C._DisableTorchDispatch():
        yield


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Return whether all modes are equal."""
    return all(mode == modes[0] for mode in modes)

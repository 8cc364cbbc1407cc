"""PyTorch's private module about dispatch modes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import adjoint as torch

__all__ = ["no_dispatch"]


@contextmanager
def no_dispatch() -> Iterator[None]:
    """In the block, neither dispatch modes nor tensor classes with `__torch_dispatch__` take over operators."""
    with torch._C._DisableTorchDispatch():
        yield

"""`torch.cuda.nvtx`: markers for NVIDIA's profiler. They need a GPU, but functions may be decorated with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from adjoint._runtime.tracebacks import ending_at_caller

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


@ending_at_caller
def _not_installed(*args: Any, **options: Any) -> NoReturn:
    """Raise RuntimeError, because there is no GPU."""
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


mark = range_push = range_pop = range_start = range_end = _not_installed


@contextmanager
def range(msg: str, *args: Any, **options: Any) -> Iterator[None]:
    """A context that marks the code inside. It raises RuntimeError when it is entered, because there is no GPU."""
    range_push(msg)
    yield  # type: ignore[unreachable]

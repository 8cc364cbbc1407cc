"""Positions in int64, as in PyTorch. NumPy's positions are as wide as an address, which has four bytes in WebAssembly."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy

from .floating import INT64

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def gives_positions(*results: int) -> Callable[[_Kernel], _Kernel]:
    """Declare that the results with these indices, or else the only result, consist of positions or counts."""

    def declare(kernel: _Kernel) -> _Kernel:
        if numpy.dtype(numpy.intp) == INT64:
            return kernel

        @wraps(kernel)
        def widening(*args: Any, **names: Any) -> Any:
            found = kernel(*args, **names)
            if not results:
                return tuple(map(_wide, found)) if isinstance(found, tuple) else _wide(found)
            return tuple(_wide(each) if number in results else each for number, each in enumerate(found))

        return widening  # type: ignore[return-value]

    return declare


def _wide(array: Any) -> Any:
    return array.astype(INT64, copy=False)


def as_places(array: Any) -> Any:
    """Return positions in the type that `put`, `repeat`, `reduceat` and `bincount` accept."""
    return array.astype(numpy.intp, copy=False)

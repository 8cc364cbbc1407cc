"""What computes an operator on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

FLOATS = "float"
"""The dtypes of a small form that knows float32 and float64 alone."""


class Kernel:
    """An operator's array computation, in the forms it is called in.

    `general` takes arrays of any dtype and layout, or refuses them in PyTorch's words. `small` is what the straight-line code of
    an operator calls, where `takes` (`FLOATS`, or None for every dtype) and `limit` (so many elements at most) allow it. A
    `small` form without the keyword-only parameters of the operator is called while these have their defaults. `inplace` has
    the parameters of `general` and writes over the first array. `quiet`: NumPy cannot warn of anything from within it, so that
    nobody need turn its warnings off. `expression` is the traced function, if the operator is pointwise.
    """

    __slots__ = ("expression", "general", "inplace", "limit", "name", "quiet", "small", "takes")

    def __init__(
        self,
        general: Callable[..., Any],
        *,
        name: str | None = None,
        small: Callable[..., Any] | None = None,
        limit: int | None = None,
        takes: str | None = None,
        inplace: Callable[..., Any] | None = None,
        quiet: bool | None = None,
        expression: Any = None,
    ) -> None:
        self.name = name or getattr(general, "__name__", "")
        self.general = general
        self.small = small
        self.limit = limit
        self.takes = takes
        self.inplace = inplace
        self.quiet = isinstance(small or general, numpy.ufunc) if quiet is None else quiet
        self.expression = expression

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The general form."""
        return self.general(*args, **options)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

"""The array computation of an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

FLOATS = "float"
"""The value of `dtypes` for a small form that supports only float32 and float64."""

SMALL = "small"
"""The value of `quiet` if only the small form causes no warnings."""


class Kernel:
    """An operator's array computation, in several forms.

    `general` accepts arrays of any dtype and layout, or rejects them with PyTorch's error messages. The straight-line code of an
    operator calls `small`, for the dtypes in `dtypes` (`FLOATS`, or None for all) and up to `limit` elements (None: any number).
    A `small` form without the operator's keyword-only parameters is called if these have their defaults. `inplace` has the
    parameters of `general` and overwrites the first array. `quiet`: whether the forms (with `SMALL`, only the small
    form) never cause NumPy's warnings. Callers then need not disable warnings. `expression`: the traced function of a
    pointwise operator. `rows`: the row program of an operator that works row by row.
    A `general` form may take `out`, and returns it if the result fits and is written there. `out` shares no memory with the
    arguments, but may be an argument of an expression.

    A kernel that is created from another kernel inherits all forms that are not given.
    """

    __slots__ = ("_limit", "dtypes", "expression", "general", "inplace", "name", "quiet", "rows", "small")

    def __init__(
        self,
        general: Callable[..., Any],
        *,
        small: Callable[..., Any] | None = None,
        dtypes: str | None = None,
        limit: int | None = None,
        inplace: Callable[..., Any] | None = None,
        quiet: bool | str = False,
        expression: Any = None,
        rows: Any = None,
    ) -> None:
        if isinstance(general, Kernel):
            if small is None:
                small, dtypes, limit = general.small, general.dtypes, general._limit
            inplace = inplace or general.inplace
            quiet = quiet or general.quiet
            expression = expression or general.expression
            rows = rows or general.rows
            general = general.general
        self.name: str = getattr(general, "__name__", "")
        self.general: Callable[..., Any] = general
        self.small: Callable[..., Any] | None = small
        self.dtypes: str | None = dtypes
        self._limit: int | None = limit
        self.inplace: Any = inplace
        self.quiet: bool | str = quiet
        self.expression: Any = expression
        self.rows: Any = rows

    @property
    def limit(self) -> int | None:
        """The maximum number of elements for the small form. The expression of a pointwise operator determines it."""
        return self._limit if self.expression is None else self.expression.limit

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the general form."""
        return self.general(*args, **options)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def small_takes(self, options: frozenset[str]) -> bool:
        """Return whether the small form has these keyword-only parameters of the operator."""
        code = getattr(self.small, "__code__", None)
        if not options or code is None:
            return not options
        return not options.isdisjoint(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    def is_quiet(self, form: Callable[..., Any]) -> bool:
        """Return whether a call of this form with NumPy warnings enabled never gives a warning."""
        if self.quiet == SMALL:
            return form is self.small
        return bool(self.quiet) or isinstance(form, numpy.ufunc)


def as_kernel(computation: Any) -> Kernel:
    """Return a kernel unchanged, and an array function as a kernel with one form."""
    return computation if isinstance(computation, Kernel) else Kernel(computation)

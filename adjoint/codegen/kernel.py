"""What computes an operator on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

FLOATS = "float"
"""The dtypes of a small form that knows float32 and float64 alone."""

SMALL = "small"
"""Quiet, but for its other forms."""


class Kernel:
    """An operator's array computation, in the forms it is called in.

    `general` takes arrays of any dtype and layout, or refuses them in PyTorch's words. `small` is what the straight-line code of
    an operator calls, for the dtypes that it `dtypes` (`FLOATS`, or None for all) and up to `limit` elements (None: any number).
    A `small` form without the operator's keyword-only parameters is called while these have their defaults. `inplace` has the
    parameters of `general` and writes over the first array. `quiet` (True, or `SMALL` for the small form alone): NumPy warns
    of nothing from within it, so that nobody need turn its warnings off. `expression` is the traced function if the operator
    is pointwise, `rows` the row program if it works row by row.

    A kernel made of another one has its forms, but for those that are given.
    """

    __slots__ = ("_limit", "dtypes", "expression", "general", "inplace", "name", "quiet", "rows", "small")
    general: Callable[..., Any]
    small: Callable[..., Any] | None
    dtypes: str | None
    _limit: int | None
    inplace: Callable[..., Any] | None
    quiet: bool | str
    expression: Any
    rows: Any

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
        self.inplace: Callable[..., Any] | None = inplace
        self.quiet: bool | str = quiet
        self.expression: Any = expression
        self.rows: Any = rows

    @property
    def limit(self) -> int | None:
        """Up to how many elements the small form is for; of a pointwise operator, its expression says it."""
        return self._limit if self.expression is None else self.expression.limit

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The general form."""
        return self.general(*args, **options)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def checked(self, check: Callable[..., None]) -> Kernel:
        """The same kernel, with a `check` of its arguments before all but the small form."""

        def before(form: Callable[..., Any] | None) -> Any:
            if form is None:
                return None

            def checking(*args: Any, **options: Any) -> Any:
                check(*args, **options)
                return form(*args, **options)

            checking.__name__, checking.__doc__ = self.name, form.__doc__
            return checking

        return Kernel(
            before(self.general),
            small=self.small,
            dtypes=self.dtypes,
            limit=self._limit,
            inplace=before(self.inplace),
            quiet=self.quiet,
            expression=self.expression,
            rows=self.rows,
        )

    def small_takes(self, options: frozenset[str]) -> bool:
        """Whether the small form has these keyword-only parameters of the operator."""
        code = getattr(self.small, "__code__", None)
        if not options or code is None:
            return not options
        return not options.isdisjoint(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    def is_quiet(self, form: Callable[..., Any]) -> bool:
        """Whether a call of this form by code that NumPy does not warn is certain to warn of nothing."""
        if self.quiet == SMALL:
            return form is self.small
        return bool(self.quiet) or isinstance(form, numpy.ufunc)


def as_kernel(computation: Any) -> Kernel:
    """A kernel as it is; an array function as a kernel that has no other form."""
    return computation if isinstance(computation, Kernel) else Kernel(computation)

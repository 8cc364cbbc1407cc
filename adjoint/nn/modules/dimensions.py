"""Modules with forms for one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .module import Module


class OfDimensions(Module):
    """The base of the forms of a module. Each form states its number of dimensions: `class MaxPool2d(_MaxPoolNd, dims=2)`.

    `_function` is the name of the form's function. A call looks up this function, because a program may have replaced it.
    """

    _stem: ClassVar[str] = ""  # the name of the functions without the number
    _dims: ClassVar[int]
    _function: ClassVar[str]

    def __init_subclass__(cls, dims: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if dims is not None:
            cls._dims, cls._function = dims, f"{cls._stem}{dims}d"

    def _repeated(self, value: Any) -> tuple[Any, ...]:
        """Return one value per dimension. A sequence is returned as a tuple, and another value is repeated."""
        return tuple(value) if isinstance(value, Sequence) else (value,) * self._dims

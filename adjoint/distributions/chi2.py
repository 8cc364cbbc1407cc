"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from adjoint import Tensor

from . import constraints
from .distribution import expand_by_parameters
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The law of a sum of the squares of `df` standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2

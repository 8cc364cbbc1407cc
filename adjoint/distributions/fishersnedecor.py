"""Fisher's and Snedecor's distribution."""

from __future__ import annotations

from typing import Any

import adjoint as torch
from adjoint import Tensor

from . import constraints
from .distribution import Distribution, expand_by_parameters
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The law of the quotient of two mean squares, of `df1` and of `df2` standard normal numbers."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    expand = expand_by_parameters

    @property
    def mean(self) -> Tensor:
        df2 = torch.where(self.df2 <= 2, torch.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 <= 2, torch.nan, mode)

    @property
    def variance(self) -> Tensor:
        df2 = torch.where(self.df2 <= 4, torch.nan, self.df2)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        tiny = torch.finfo(self.df1.dtype).tiny
        numerator = self._gamma1.rsample(sample_shape)
        denominator = self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return (numerator / denominator).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * torch.log(value) - (a + b) * torch.log1p(ratio * value) - log_beta

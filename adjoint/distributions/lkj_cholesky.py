"""The Lewandowski-Kurowicka-Joe distribution of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import adjoint as torch
from adjoint import Size, Tensor
from adjoint.nn import functional as F

from . import constraints
from .beta import Beta
from .distribution import Distribution, expand_by_parameters
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` by `dim` correlation matrices M of density proportional to `det(M)**(concentration - 1)`.

    With concentration 1 all correlation matrices are equally likely.

    >>> import adjoint as torch
    >>> LKJCholesky(3, 1.0).sample().shape
    torch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared lengths of the rows below the diagonal, section 3.2 ("onion method") of Lewandowski et al., 2009.
        like: dict[str, Any] = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = F.pad(torch.arange(dim - 1, **like), [1, 0])
        self._beta = Beta(0.5 * offset + 0.5, self.concentration.unsqueeze(-1) + 0.5 * (dim - 2 - offset))
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args=validate_args)

    expand = expand_by_parameters

    def sample(self, sample_shape: Any = ()) -> Tensor:
        squares = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = torch.randn(self._extended_shape(sample_shape), dtype=squares.dtype, device=squares.device).tril(-1)
        directions = normal / normal.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)
        rows = torch.sqrt(squares) * directions
        diagonal = torch.clamp(1 - torch.sum(rows**2, dim=-1), min=torch.finfo(rows.dtype).tiny).sqrt()
        return rows + torch.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        """Theorem 1 and equation 16 of Lewandowski et al., with the Jacobian of the product of factor and transpose."""
        if self._validate_args:
            self._validate_sample(value)
        n = self.dim
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, n + 1, device=value.device)
        exponents = 2 * (self.concentration - 1).unsqueeze(-1) + n - order
        unnormalized = torch.sum(exponents * diagonal.log(), dim=-1)
        m = n - 1
        alpha = self.concentration + 0.5 * m
        denominator = torch.lgamma(alpha) * m
        numerator = torch.mvlgamma(alpha - 0.5, m)
        return unnormalized - (0.5 * m * math.log(math.pi) + numerator - denominator)

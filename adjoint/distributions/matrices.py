"""Distributions of matrices."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import adjoint as torch
from adjoint import Size, Tensor
from adjoint.nn import functional as F

from .._runtime.tracebacks import warn
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta, Chi2
from .gaussian import OfCovariance
from .utils import broadcast_all, formula

__all__ = ["LKJCholesky", "Wishart"]


class Wishart(OfCovariance, ExponentialFamily):
    """The distribution of the sum of `x @ x.T` over `df` normal vectors x with mean 0 and the given covariance."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._only(AssertionError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = torch.broadcast_shapes(df.shape, matrix.shape[:-2])
        event_shape = matrix.shape[-2:]
        p = event_shape[-1]
        self.df = df.expand(batch_shape)
        if self.df.le(p - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self._event_shape = event_shape  # the constraint of `df` reads it
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(p).any():
            warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        self._factorize(name, matrix)
        less = torch.arange(p, dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - less)

    mean = formula(lambda self: self.df.view(*self._batch_shape, 1, 1) * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = torch.where(factor <= 0, torch.nan, factor)
        return factor.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(*self._batch_shape, 1, 1) * (v.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Tensor:
        """Return L A A.T L.T for a random lower triangular A (Bartlett, "On the theory of statistical regression", 1933)."""
        p = self._event_shape[-1]
        a = self._dist_chi2.rsample(sample_shape).clamp(min=torch.finfo(self.df.dtype).tiny).sqrt().diag_embed()
        rows, columns = torch.tril_indices(p, p, offset=-1)
        below = torch.randn(
            (*sample_shape, *self._batch_shape, p * (p - 1) // 2), dtype=self.df.dtype, device=self.df.device
        )
        a[..., rows, columns] = below
        factor = self._unbroadcasted_scale_tril @ a
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draw matrices. Singular matrices are drawn again, up to a few times."""
        if max_try_correction is None:
            max_try_correction = 3 if self._batch_shape else 10
        sample_shape = Size(sample_shape)
        self._bartlett_sampling(
            sample_shape
        )  # PyTorch discards these too: from here on, its random numbers are the same
        sample = self._bartlett_sampling(Size([sample_shape.numel()])).reshape(self._extended_shape(sample_shape))
        singular = ~self.support.check(sample)
        if singular.any():
            warn("Singular sample detected.")
            for _ in range(max_try_correction):
                again = self._bartlett_sampling(sample_shape)
                sample = torch.where(singular[..., None, None], again, sample)
                singular = ~self.support.check(sample)
                if not singular.any():
                    break
        return sample

    def _log_norm(self) -> Tensor:
        """Return the logarithm of the normalization constant of the density."""
        half, p = 0.5 * self.df, self._event_shape[-1]
        log_det = 2 * self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return half * (p * math.log(2) + log_det) + torch.mvlgamma(half, p)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        p = self._event_shape[-1]
        factor = torch.linalg.cholesky(value)
        log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        trace = torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return 0.5 * (self.df - p - 1) * log_det - 0.5 * trace - self._log_norm()

    def entropy(self) -> Tensor:
        half, p = 0.5 * self.df, self._event_shape[-1]
        orders = torch.arange(p, dtype=self.df.dtype, device=self.df.device)
        log_det = 2 * self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        mean_log_det = torch.digamma(half.unsqueeze(-1) - 0.5 * orders).sum(-1) + p * math.log(2) + log_det
        return self._log_norm() - 0.5 * (self.df - p - 1) * mean_log_det + half * p

    _natural_params = formula(lambda self: (-0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[-1] - 1)))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + 0.5 * (p + 1)
        return half * (p * math.log(2) - torch.linalg.slogdet(-2 * x)[1]) + torch.mvlgamma(half, p)


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` by `dim` correlation matrices M with density proportional to `det(M)**(concentration - 1)`.

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
        # PyTorch's first parameter is `offset + 0.5`: its samples do not have its density from three dimensions on.
        like: dict[str, Any] = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = F.pad(torch.arange(dim - 1, **like), [1, 0])
        self._beta = Beta(0.5 * offset + 0.5, self.concentration.unsqueeze(-1) + 0.5 * (dim - 2 - offset))
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        squares = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = torch.randn(self._extended_shape(sample_shape), dtype=squares.dtype, device=squares.device).tril(-1)
        directions = normal / normal.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)
        rows = torch.sqrt(squares) * directions
        diagonal = torch.clamp(1 - torch.sum(rows**2, dim=-1), min=torch.finfo(rows.dtype).tiny).sqrt()
        return rows + torch.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        """Follow theorem 1 and equation 16 of Lewandowski et al., with the Jacobian of the product of factor and transpose."""
        self._check_sample(value)
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

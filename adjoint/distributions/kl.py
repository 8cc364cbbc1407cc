"""Kullback-Leibler divergences. `kl_divergence(p, q)` is the expectation of `log p(x) - log q(x)` under p.

Each pair of classes has a registered function. `kl_divergence` calls the function for the nearest classes. If q's
density needs only a few moments of p, the divergence is minus p's entropy minus q's expected `log_prob`. Such a
function serves all classes of p.

>>> import adjoint as torch
>>> from adjoint.distributions import Normal
>>> kl_divergence(Normal(torch.tensor(1.0), 1.0), Normal(torch.tensor(0.0), 1.0))
tensor(0.5000)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import adjoint as torch
from adjoint import Tensor
from adjoint.nn import functional as F

from .._runtime.tracebacks import ending_at_caller, warn
from .._runtime.weak_keys import WeakKeys
from .bounded import ContinuousBernoulli, Uniform
from .classes import Categorical, OneHotCategorical
from .composed import Independent, TransformedDistribution
from .counts import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta, Dirichlet, Exponential, Gamma, Gumbel
from .gaussian import (
    HalfNormal,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Normal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
    _batch_mahalanobis,
)
from .tails import Cauchy, Laplace, Pareto
from .utils import EULER, _sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Tensor]

_KL_REGISTRY: dict[tuple[Any, Any], Divergence] = {}
_KL_MEMOIZE: WeakKeys[type, WeakKeys[type, Divergence | None]] = WeakKeys()


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Decorate the function that computes the divergence of two classes of distributions.

    If two functions match, the function for the nearer class of p takes precedence.
    """
    for name, kind in (("p", type_p), ("q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected type_{name} to be a Distribution subclass but got {kind}")

    def decorator(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _found(type_p: Any, type_q: Any) -> Divergence | None:
    """Return the function for the nearest registered base classes."""
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return None

    def by_p(pair: tuple[type, type]) -> tuple[int, int]:
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    def by_q(pair: tuple[type, type]) -> tuple[int, int]:
        return by_p(pair)[::-1]

    left, right = min(matches, key=by_p), min(matches, key=by_q)
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
        )
    return _KL_REGISTRY[left]


@ending_at_caller
def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence of `p` from `q`, in their batch shape.

    Raises:
        NotImplementedError: if no function is registered for their classes.
    """
    type_p, type_q = type(p), type(q)
    known = _KL_MEMOIZE.setdefault(type_p, WeakKeys())
    if type_q not in known:
        known[type_q] = _found(type_p, type_q)
    function = known[type_q]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return function(p, q)


# --- equal families -------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    of_1 = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    of_0 = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    of_1 = torch.where(p.probs == 0, 0.0, torch.where(q.probs == 0, torch.inf, of_1))
    of_0 = torch.where(p.probs == 1, 0.0, torch.where(q.probs == 1, torch.inf, of_0))
    return of_1 + of_0


@register_kl(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> Tensor:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    norm_q = q.concentration1.lgamma() + q.concentration0.lgamma() - total_q.lgamma()
    norm_p = p.concentration1.lgamma() + p.concentration0.lgamma() - total_p.lgamma()
    of_1 = (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
    of_0 = (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
    return norm_q - norm_p + of_1 + of_0 + (total_q - total_p) * torch.digamma(total_p)


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    """Return the divergence for equal numbers of trials. It is infinite if p has more trials than q."""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return torch.where(p.total_count > q.total_count, torch.inf, kl)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return torch.where(p.probs == 0, 0.0, torch.where(q.probs == 0, torch.inf, terms)).sum(-1)


register_kl(OneHotCategorical, OneHotCategorical)(lambda p, q: _categorical_categorical(p._categorical, q._categorical))


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions", 2019."""
    distance = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli_continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    norms = p._log_norm() + torch.log1p(-p.probs) - q._log_norm() - torch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + norms


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    norms = q._log_normalizer(q.concentration) - p._log_normalizer(p.concentration)
    mean_logs = p.concentration.digamma() - p.concentration.sum(-1, keepdim=True).digamma()
    return norms + ((p.concentration - q.concentration) * mean_logs).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Return the Bregman divergence of the log-normalizer (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    params_p = [each.detach().requires_grad_() for each in p._natural_params]
    params_q = q._natural_params
    norm_p = p._log_normalizer(*params_p)
    gradients = torch.autograd.grad(norm_p.sum(), params_p, create_graph=True)
    result = q._log_normalizer(*params_q) - norm_p
    for of_p, of_q, gradient in zip(params_p, params_q, gradients, strict=True):
        result = result - _sum_rightmost((of_q - of_p) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log()
        + torch.lgamma(q.concentration)
        - torch.lgamma(p.concentration)
        + (p.concentration - q.concentration) * torch.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


register_kl(Geometric, Geometric)(lambda p, q: -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits)


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    moved = q.loc / q.scale - p.loc / q.scale
    return ratio * EULER + torch.exp(moved + torch.lgamma(1 + ratio)) - moved - ratio.log() - (1 + EULER)


register_kl(HalfNormal, HalfNormal)(lambda p, q: _normal_normal(p.base_dist, q.base_dist))


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * torch.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale.log() - q.scale.log()) - ratio.log() + ratio - 1
    return torch.where(p.support.lower_bound < q.support.lower_bound, torch.inf, kl)


register_kl(Poisson, Poisson)(lambda p, q: p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate))


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), torch.inf, kl)


# --- composed distributions -----------------------------------------------------------------------------------


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


# --- of multivariate normal distributions ---------------------------------------------------------------------


def _low_rank(normal: LowRankMultivariateNormal) -> tuple[Tensor, Tensor, Tensor]:
    return normal._unbroadcasted_cov_factor, normal._unbroadcasted_cov_diag, normal._capacitance_tril


def _log_det(normal: Any) -> Tensor:
    if isinstance(normal, LowRankMultivariateNormal):
        return _batch_lowrank_logdet(normal._unbroadcasted_cov_diag, normal._capacitance_tril)
    return 2 * normal._half_log_det()


def _columns(normal: Any) -> Tensor:
    """Return vectors whose outer products sum to the covariance, one per row."""
    if isinstance(normal, LowRankMultivariateNormal):
        factor, diagonal, _ = _low_rank(normal)
        batch = torch.broadcast_shapes(factor.shape[:-2], diagonal.shape[:-1])
        parts = (factor.mT, torch.diag_embed(diagonal.sqrt()))
        return torch.cat([part.expand(*batch, -1, -1) for part in parts], -2)
    return normal._unbroadcasted_scale_tril.mT


def _normals(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {_called(p, q)} with different event shapes cannot be computed")

    columns = _columns(p)
    moved = q.loc - p.loc
    if isinstance(q, LowRankMultivariateNormal):
        factor, diagonal, tril = _low_rank(q)
        apart = _batch_lowrank_mahalanobis(factor.unsqueeze(-3), diagonal.unsqueeze(-2), columns, tril.unsqueeze(-3))
        distance = _batch_lowrank_mahalanobis(factor, diagonal, moved, tril)
    else:
        tril = q._unbroadcasted_scale_tril
        apart = _batch_mahalanobis(tril.unsqueeze(-3), columns)
        distance = _batch_mahalanobis(tril, moved)
    return 0.5 * (_log_det(q) - _log_det(p) + apart.sum(-1) + distance - p.event_shape[0])


def _called(p: Any, q: Any) -> str:
    if type(p) is type(q) is LowRankMultivariateNormal:
        return "Low Rank Multivariate Normals"
    return "Multivariate Normals" if type(p) is type(q) else "(Low Rank) Multivariate Normals"


for _pair in [(p, q) for p in (MultivariateNormal, LowRankMultivariateNormal) for q in (
    MultivariateNormal, LowRankMultivariateNormal
)]:  # fmt: skip
    register_kl(*_pair)(_normals)


# --- different families ---------------------------------------------------------------------------------------


def _impossible(p: Any, q: Any) -> Tensor:
    """Return infinity, because p has values with density 0 under q."""
    like = p.mean
    return torch.full(p.batch_shape, torch.inf, dtype=like.dtype, device=like.device)


_POSITIVE = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)

for _p, _values in {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: _POSITIVE,
    Laplace: _POSITIVE,
    Normal: _POSITIVE,
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}.items():
    for _q in _values:
        register_kl(_p, _q)(_impossible)


def _each(q: type, *ps: type) -> Callable[[Divergence], Divergence]:
    """Register a function for several classes of p."""

    def decorate(function: Divergence) -> Divergence:
        for p in ps:
            register_kl(p, q)(function)
        return function

    return decorate


def _x_log_x(x: Tensor) -> Tensor:
    return torch.xlogy(x, x)


_MEAN_LOG: dict[type, Callable[..., Tensor]] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -EULER - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1,
}
"""The expectation of log x."""

_MEAN_EXP: dict[type, Callable[..., Tensor]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (1 + t / p.rate).pow(-p.concentration),
    Normal: lambda p, t: torch.exp(-t * p.loc + 0.5 * (t * p.scale).pow(2)),
    Uniform: lambda p, t: (torch.exp(-t * p.low) - torch.exp(-t * p.high)) / (t * (p.high - p.low)),
}
"""The expectation of exp(-t * x)."""


def _expected(formulas: dict[type, Callable[..., Tensor]], p: Distribution, *args: Tensor) -> Tensor:
    """Apply the formula for the class of p."""
    return next(formula for kind, formula in formulas.items() if isinstance(p, kind))(p, *args)


@_each(Normal, Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)
def _any_normal(p: Any, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    apart = (p.variance + (p.mean - q.loc).pow(2)) / variance
    kl = 0.5 * ((2 * math.pi * variance).log() + apart) - p.entropy()
    return torch.where(p.variance == torch.inf, torch.inf, kl)


def _is_below(p: Any, bound: float | Tensor) -> Any:
    """Return a mask of uniform distributions with values below a bound. For other distributions, it is False."""
    return p.low < bound if isinstance(p, Uniform) else torch.zeros_like(p.mean, dtype=torch.bool)


@_each(Exponential, Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)
def _any_exponential(p: Any, q: Exponential) -> Tensor:
    return torch.where(_is_below(p, 0), torch.inf, q.rate * p.mean - q.rate.log() - p.entropy())


@_each(Gamma, Beta, Exponential, Pareto, Uniform)
def _any_gamma(p: Any, q: Gamma) -> Tensor:
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    kl = norm - (q.concentration - 1) * _expected(_MEAN_LOG, p) + q.rate * p.mean - p.entropy()
    return torch.where(_is_below(p, 0), torch.inf, kl)


@_each(Gumbel, Exponential, Gamma, Normal, Uniform)
def _any_gumbel(p: Any, q: Gumbel) -> Tensor:
    moved = (p.mean - q.loc) / q.scale
    tail = torch.exp(q.loc / q.scale) * _expected(_MEAN_EXP, p, q.scale.reciprocal())
    return q.scale.log() + moved + tail - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    distance = p.loc - q.loc
    z = distance / p.scale
    apart = p.scale * math.sqrt(2 / math.pi) * torch.exp(-0.5 * z.pow(2)) + distance * torch.erf(z / math.sqrt(2))
    return (2 * q.scale).log() + apart / q.scale - p.entropy()


@_each(ContinuousBernoulli, Beta, Uniform)
def _any_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    kl = -p.mean * q.logits - torch.log1p(-q.probs) - q._log_norm() - p.entropy()
    if isinstance(p, Uniform):
        return torch.where((p.low < 0) | (p.high > 1), torch.inf, kl)
    return kl


@_each(Uniform, Beta, ContinuousBernoulli)
def _unit_uniform(p: Any, q: Uniform) -> Tensor:
    return torch.where((q.low > 0) | (q.high < 1), torch.inf, (q.high - q.low).log() - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    low, high = 1 - p.high, 1 - p.low
    mean_log_rest = (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1
    norm = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    kl = norm - (q.concentration1 - 1) * _expected(_MEAN_LOG, p) - (q.concentration0 - 1) * mean_log_rest - p.entropy()
    return torch.where((p.low < 0) | (p.high > 1), torch.inf, kl)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    kl = (q.alpha + 1) * _expected(_MEAN_LOG, p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return torch.where(p.low < q.scale, torch.inf, kl)


register_kl(Bernoulli, Poisson)(lambda p, q: q.rate - p.probs * q.rate.log() - p.entropy())

"""`torch.distributions`: laws of random numbers with densities, samples, and gradients through both; names, no logic.

>>> import adjoint as torch
>>> from adjoint.distributions import Normal, kl_divergence
>>> mean = torch.tensor(1.0, requires_grad=True)
>>> kl_divergence(Normal(mean, 1.0), Normal(0.0, 1.0)).backward()
>>> mean.grad
tensor(1.)
"""

import sys

from . import (
    bounded,
    classes,
    composed,
    constraint_registry,
    constraints,
    counts,
    distribution,
    exp_family,
    gammas,
    gaussian,
    kl,
    matrices,
    relaxed,
    tails,
    transforms,
    utils,
)
from .bounded import ContinuousBernoulli, Kumaraswamy, Uniform, VonMises
from .classes import Categorical, MixtureSameFamily, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough
from .composed import Independent, TransformedDistribution
from .constraint_registry import biject_to, transform_to
from .counts import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .gammas import Beta, Chi2, Dirichlet, Exponential, FisherSnedecor, Gamma, Gumbel, InverseGamma, StudentT, Weibull
from .gaussian import HalfNormal, LogisticNormal, LogNormal, LowRankMultivariateNormal, MultivariateNormal, Normal
from .kl import kl_divergence, register_kl
from .matrices import LKJCholesky, Wishart
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .tails import Cauchy, GeneralizedPareto, HalfCauchy, Laplace, Pareto
from .transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]

_LAWS = {
    bounded: "continuous_bernoulli kumaraswamy uniform von_mises",
    classes: "categorical mixture_same_family multinomial one_hot_categorical",
    composed: "independent transformed_distribution",
    counts: "bernoulli binomial geometric negative_binomial poisson",
    gammas: "beta chi2 dirichlet exponential fishersnedecor gamma gumbel inverse_gamma studentT weibull",
    gaussian: "half_normal log_normal logistic_normal lowrank_multivariate_normal multivariate_normal normal",
    matrices: "lkj_cholesky wishart",
    relaxed: "relaxed_bernoulli relaxed_categorical",
    tails: "cauchy generalized_pareto half_cauchy laplace pareto",
}
for _family, _modules in _LAWS.items():  # PyTorch has a module for each law
    for _module in _modules.split():
        sys.modules[f"{__name__}.{_module}"] = globals()[_module] = _family

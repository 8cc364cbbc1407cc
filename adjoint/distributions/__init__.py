"""`torch.distributions`: probability distributions with densities, samples, and gradients through both.

This file contains names only.

>>> import adjoint as torch
>>> from adjoint.distributions import Normal, kl_divergence
>>> mean = torch.tensor(1.0, requires_grad=True)
>>> kl_divergence(Normal(mean, 1.0), Normal(0.0, 1.0)).backward()
>>> mean.grad
tensor(1.)
"""

from . import constraint_registry, constraints, distribution, kl, transforms, utils
from .bounded import ContinuousBernoulli, Kumaraswamy, Uniform, VonMises
from .classes import Categorical, MixtureSameFamily, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough
from .composed import Independent, TransformedDistribution
from .constraint_registry import biject_to, transform_to
from .counts import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta, Chi2, Dirichlet, Exponential, FisherSnedecor, Gamma, Gumbel, InverseGamma, StudentT, Weibull
from .gaussian import HalfNormal, LogisticNormal, LogNormal, LowRankMultivariateNormal, MultivariateNormal, Normal
from .kl import kl_divergence, register_kl
from .matrices import LKJCholesky, Wishart
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .tails import Cauchy, GeneralizedPareto, HalfCauchy, Laplace, Pareto
from .transforms import *

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

"""Distributions of numbers for parametrized tests, with float64 leaves as parameters, and integrals over their supports."""

import numpy

import adjoint as torch
from adjoint import distributions as D
from adjoint.distributions import constraints


def parameter(*values):
    return torch.tensor(values[0] if len(values) == 1 else values, dtype=torch.float64, requires_grad=True)


CONTINUOUS = {
    "Beta": lambda: (D.Beta, [parameter(1.7), parameter(3.2)]),
    "Cauchy": lambda: (D.Cauchy, [parameter(0.3), parameter(0.7)]),
    "Chi2": lambda: (D.Chi2, [parameter(3.5)]),
    "ContinuousBernoulli": lambda: (D.ContinuousBernoulli, [parameter(0.3)]),
    "ContinuousBernoulli about 1/2": lambda: (D.ContinuousBernoulli, [parameter(0.5004)]),
    "Exponential": lambda: (D.Exponential, [parameter(1.7)]),
    "FisherSnedecor": lambda: (D.FisherSnedecor, [parameter(4.5), parameter(9.0)]),
    "Gamma": lambda: (D.Gamma, [parameter(2.6), parameter(1.4)]),
    "GeneralizedPareto": lambda: (D.GeneralizedPareto, [parameter(0.4), parameter(1.4), parameter(0.2)]),
    "GeneralizedPareto that ends": lambda: (D.GeneralizedPareto, [parameter(0.4), parameter(1.4), parameter(-0.3)]),
    "GeneralizedPareto of tail 0": lambda: (D.GeneralizedPareto, [parameter(0.4), parameter(1.4), parameter(0.0)]),
    "Gumbel": lambda: (D.Gumbel, [parameter(0.3), parameter(0.7)]),
    "HalfCauchy": lambda: (D.HalfCauchy, [parameter(0.7)]),
    "HalfNormal": lambda: (D.HalfNormal, [parameter(0.7)]),
    "InverseGamma": lambda: (D.InverseGamma, [parameter(4.6), parameter(1.4)]),
    "Kumaraswamy": lambda: (D.Kumaraswamy, [parameter(1.7), parameter(2.2)]),
    "Laplace": lambda: (D.Laplace, [parameter(0.0), parameter(0.7)]),
    "LogNormal": lambda: (D.LogNormal, [parameter(0.3), parameter(0.7)]),
    "Normal": lambda: (D.Normal, [parameter(0.3), parameter(0.7)]),
    "Pareto": lambda: (D.Pareto, [parameter(0.8), parameter(3.7)]),
    "RelaxedBernoulli": lambda: (D.RelaxedBernoulli, [parameter(0.8), parameter(0.3)]),
    "StudentT": lambda: (D.StudentT, [parameter(5.5), parameter(0.3), parameter(0.7)]),
    "Uniform": lambda: (D.Uniform, [parameter(0.3), parameter(0.7)]),
    "VonMises": lambda: (D.VonMises, [parameter(0.3), parameter(1.7)]),
    "Weibull": lambda: (D.Weibull, [parameter(0.8), parameter(1.7)]),
}

DISCRETE = {
    "Bernoulli": lambda: (D.Bernoulli, [parameter(0.3)]),
    "Binomial": lambda: (lambda p: D.Binomial(40, p), [parameter(0.3)]),
    "Binomial of few": lambda: (lambda p: D.Binomial(7, p), [parameter(0.8)]),
    "Categorical": lambda: (D.Categorical, [parameter(0.3, 0.2, 0.5)]),
    "Geometric": lambda: (D.Geometric, [parameter(0.4)]),
    "NegativeBinomial": lambda: (lambda p: D.NegativeBinomial(3.5, p), [parameter(0.4)]),
    "Poisson": lambda: (D.Poisson, [parameter(3.3)]),
    "Poisson of many": lambda: (D.Poisson, [parameter(30.0)]),
}

NO_MEAN = {"Cauchy", "HalfCauchy"}


def made(table, name):
    """Return the distribution and its parameters."""
    make, parameters = table[name]()
    return make(*parameters), parameters


def bounds(distribution):
    if isinstance(distribution, D.VonMises):
        return -numpy.pi, numpy.pi
    support = distribution.support
    if isinstance(support, type(constraints.real)):
        return -numpy.inf, numpy.inf
    low = getattr(support, "lower_bound", -numpy.inf)
    high = getattr(support, "upper_bound", numpy.inf)
    return float(torch.as_tensor(low).detach()), float(torch.as_tensor(high).detach())


def nodes(distribution, step=0.01, reach=3.6):
    """Return points of the support and weights of a double exponential rule (Takahasi and Mori, 1974)."""
    t = numpy.arange(-reach, reach + step / 2, step)
    bent, slope = numpy.pi / 2 * numpy.sinh(t), numpy.pi / 2 * numpy.cosh(t) * step
    low, high = bounds(distribution)
    if numpy.isinf(low):
        x, weights = numpy.sinh(bent), numpy.cosh(bent) * slope
    elif numpy.isinf(high):
        x, weights = low + numpy.exp(bent), numpy.exp(bent) * slope
    else:
        share = 1 / (1 + numpy.exp(-2 * bent))
        x, weights = low + (high - low) * share, 2 * (high - low) * share * (1 - share) * slope
    inside = (x > low) & (x < high) & (weights > 0)
    return x[inside], weights[inside]


def values_of(distribution, most=400):
    """Return the values of a discrete distribution, up to `most`."""
    if distribution.has_enumerate_support:
        return distribution.enumerate_support().double()
    return torch.arange(most, dtype=torch.float64)

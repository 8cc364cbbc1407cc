"""The integrals of densities are 1. Densities agree with the moments, entropies, distribution functions and derivatives."""

import numpy
import pytest

import adjoint as torch
from adjoint import distributions as D
from adjoint.autograd import gradcheck

from .cases import CONTINUOUS, DISCRETE, NO_MEAN, made, nodes, values_of

LIMITS = {"Laplace": 1e-4, "StudentT": 1e-6}
"""The tolerance is larger at kinks, because the integration rule assumes smooth functions. Without kinks it is 1e-7."""


def weighed(name):
    """Return the distribution, some values, and the probabilities of the values."""
    if name in DISCRETE:
        distribution, _ = made(DISCRETE, name)
        values = values_of(distribution)
        return distribution, values, distribution.log_prob(values).exp()
    distribution, _ = made(CONTINUOUS, name)
    x, weights = nodes(distribution)
    x = torch.from_numpy(x)
    return distribution, x, distribution.log_prob(x).exp() * torch.from_numpy(weights)


def close(actual, expected, name):
    numpy.testing.assert_allclose(
        actual.detach().numpy(), expected.detach().numpy(), rtol=LIMITS.get(name, 1e-7), atol=1e-12
    )


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_probabilities_sum_to_one(name):
    _, _, probabilities = weighed(name)
    close(probabilities.sum(), torch.tensor(1.0), name)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_moments(name):
    distribution, x, probabilities = weighed(name)
    if name in NO_MEAN | {"RelaxedBernoulli", "Categorical"}:
        return
    mean = (x * probabilities).sum()
    if name == "VonMises":  # the moments of an angle are the moments of a point on the circle
        close(distribution.variance, 1 - (torch.cos(x - distribution.mean) * probabilities).sum(), name)
        return
    close(distribution.mean, mean, name)
    close(distribution.variance, ((x - mean).square() * probabilities).sum(), name)
    close(distribution.stddev, distribution.variance.sqrt(), name)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_entropy(name):
    distribution, x, probabilities = weighed(name)
    try:
        entropy = distribution.entropy()
    except NotImplementedError:
        return
    terms = torch.where(probabilities > 0, distribution.log_prob(x) * probabilities, 0.0)
    close(entropy, -terms.sum(), name)
    close(distribution.perplexity(), entropy.exp(), name)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_density_is_the_derivative_of_the_distribution_function(name):
    if name == "ContinuousBernoulli about 1/2":
        return  # near 1/2, the class computes with the uniform distribution
    distribution, _ = made(CONTINUOUS, name)
    torch.manual_seed(0)
    x = distribution.sample((5,)).requires_grad_()
    try:
        share = distribution.cdf(x)
    except NotImplementedError:
        return
    (density,) = torch.autograd.grad(share.sum(), x)
    close(density, distribution.log_prob(x).exp(), name)
    try:
        back = distribution.icdf(share)
    except NotImplementedError:
        return
    close(back, x, name)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_gradients_of_log_prob(name):
    table = CONTINUOUS if name in CONTINUOUS else DISCRETE
    if name in ("Categorical", "GeneralizedPareto of tail 0"):
        return  # dependent parameters, or a density that is not smooth in the tail
    distribution, parameters = made(table, name)
    torch.manual_seed(0)
    x = distribution.sample((3,))
    if name in CONTINUOUS:
        parameters = [*parameters, x.requires_grad_()]

    def log_prob(*values):
        make = table[name]()[0]
        values, at = (values[:-1], values[-1]) if name in CONTINUOUS else (values, x)
        return make(*values).log_prob(at)

    assert gradcheck(log_prob, parameters)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_the_mode_is_likeliest(name):
    distribution, x, _ = weighed(name)
    try:
        mode = distribution.mode
    except NotImplementedError:
        return
    if mode.isnan().any():
        return
    if distribution.support.check(mode).all():
        log_prob = distribution.log_prob(mode.expand(1).double())
        assert (log_prob >= distribution.log_prob(x).max() - 1e-9).all()


def test_modes_at_the_edge():
    assert D.Weibull(2.0, 0.5).mode == 0
    assert D.Kumaraswamy(torch.tensor([1.0]), torch.tensor([2.0])).mode == 0
    numpy.testing.assert_allclose(D.Kumaraswamy(torch.tensor([3.0]), torch.tensor([3.0])).mode.numpy(), 0.25 ** (1 / 3))


def test_multivariate_normal_densities_agree():
    """The three ways to specify a covariance agree, and so does the class for covariances of low rank."""
    factor, diagonal = torch.tensor([[1.0], [0.5], [2.0]]).double(), torch.tensor([0.3, 1.0, 0.5]).double()
    loc, x = torch.tensor([0.5, -1.0, 2.0]).double(), torch.tensor([[0.0, 0.3, 1.0], [2.0, 1.0, 0.0]]).double()
    covariance = factor @ factor.mT + diagonal.diag()
    distributions = [
        D.LowRankMultivariateNormal(loc, factor, diagonal),
        D.MultivariateNormal(loc, covariance),
        D.MultivariateNormal(loc, precision_matrix=torch.linalg.inv(covariance)),
        D.MultivariateNormal(loc, scale_tril=torch.linalg.cholesky(covariance)),
    ]
    distance = ((x - loc) @ torch.linalg.inv(covariance) * (x - loc)).sum(-1)
    expected = -0.5 * (distance + torch.logdet(covariance) + 3 * numpy.log(2 * numpy.pi))
    for distribution in distributions:
        close(distribution.log_prob(x), expected, "")
        close(distribution.covariance_matrix, covariance, "")
        close(distribution.precision_matrix, torch.linalg.inv(covariance), "")
        close(distribution.scale_tril, torch.linalg.cholesky(covariance), "")
        close(distribution.variance, covariance.diagonal(), "")
        close(distribution.entropy(), 0.5 * (torch.logdet(covariance) + 3 * (1 + numpy.log(2 * numpy.pi))), "")


def test_wishart_of_one_dimension_is_a_gamma_distribution():
    df, scale = 3.7, 1.3
    distribution = D.Wishart(torch.tensor(df).double(), torch.tensor([[scale]]).double())
    gamma = D.Gamma(torch.tensor(df / 2).double(), torch.tensor(1 / (2 * scale)).double())
    x = torch.tensor([0.3, 2.0, 5.0]).double()
    close(distribution.log_prob(x[:, None, None]), gamma.log_prob(x), "")
    close(distribution.entropy(), gamma.entropy(), "")
    close(distribution.mean.squeeze(), gamma.mean, "")
    close(distribution.variance.squeeze(), gamma.variance, "")


def test_dirichlet_of_two_is_a_beta_distribution():
    x = torch.tensor([0.2, 0.7]).double()
    beta = D.Beta(torch.tensor(1.5).double(), 2.5)
    dirichlet = D.Dirichlet(torch.tensor([1.5, 2.5]).double())
    close(dirichlet.log_prob(torch.stack([x, 1 - x], -1)), beta.log_prob(x), "")
    close(dirichlet.entropy(), beta.entropy(), "")


def test_lkj_of_two_dimensions_is_known():
    """The correlation r has the density (1 - r**2) ** (concentration - 1) / B. The factor has the row (r, sqrt(1 - r**2))."""
    r = torch.linspace(-1, 1, 20001, dtype=torch.float64)[1:-1]
    rows = [torch.stack([torch.ones_like(r), torch.zeros_like(r)], -1), torch.stack([r, (1 - r * r).sqrt()], -1)]
    density = D.LKJCholesky(2, torch.tensor(2.5).double(), validate_args=False).log_prob(torch.stack(rows, -2)).exp()
    close(torch.trapezoid(density, r), torch.tensor(1.0), "StudentT")


def test_multinomial_sums_to_one():
    distribution = D.Multinomial(4, torch.tensor([0.2, 0.3, 0.5]).double())
    counts = [[i, j, 4 - i - j] for i in range(5) for j in range(5 - i)]
    log_prob = distribution.log_prob(torch.tensor(counts).double())
    close(log_prob.exp().sum(), torch.tensor(1.0), "")
    close(distribution.entropy(), -(log_prob.exp() * log_prob).sum(), "")


def test_certain_values():
    assert D.Geometric(torch.tensor(1.0)).log_prob(torch.tensor(0.0)) == 0
    assert D.Poisson(torch.tensor(0.0)).log_prob(torch.tensor(0.0)) == 0
    assert D.Multinomial(2, torch.tensor([0.0, 1.0])).log_prob(torch.tensor([0.0, 2.0])).abs() < 1e-6
    assert D.Bernoulli(torch.tensor(0.0)).log_prob(torch.tensor(0.0)).abs() < 1e-6

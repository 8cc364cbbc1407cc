"""Samples: their shapes, their distributions, and their reproducibility."""

import numpy
import pytest

import adjoint as torch
from adjoint import distributions as D

from .cases import CONTINUOUS, DISCRETE, made, nodes, values_of

COUNT = 3000


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_samples(name):
    """The Kolmogorov-Smirnov test: the scaled distance of the distribution functions exceeds 2 once in 1500 cases."""
    distribution, _ = made(CONTINUOUS, name)
    torch.manual_seed(1)
    drawn = numpy.sort(distribution.sample((COUNT,)).numpy())
    assert distribution.support.check(torch.from_numpy(drawn)).all()
    x, weights = nodes(distribution)
    shares = numpy.cumsum(distribution.log_prob(torch.from_numpy(x)).exp().detach().numpy() * weights)
    expected = numpy.interp(drawn, x, shares)
    distance = numpy.abs(expected - (numpy.arange(COUNT) + 0.5) / COUNT).max() * COUNT**0.5
    assert distance < 2.0


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_samples(name):
    distribution, _ = made(DISCRETE, name)
    torch.manual_seed(1)
    drawn = distribution.sample((COUNT,)).numpy()
    values = values_of(distribution)
    probabilities = distribution.log_prob(values).exp().detach().numpy()
    counts = numpy.array([(drawn == value).sum() for value in values.tolist()])
    assert counts.sum() == COUNT
    often = probabilities * COUNT > 5
    excess = (counts - probabilities * COUNT)[often] ** 2 / (probabilities * COUNT)[often]
    freedom = often.sum()
    assert excess.sum() < freedom + 4 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_samples_repeat_and_have_shapes(name):
    distribution, _ = made(CONTINUOUS if name in CONTINUOUS else DISCRETE, name)
    torch.manual_seed(3)
    first = distribution.sample((2, 3))
    torch.manual_seed(3)
    assert torch.equal(first, distribution.sample((2, 3)))
    assert first.shape == (2, 3)
    assert not first.requires_grad
    assert distribution.expand((4,)).sample((2,)).shape == (2, 4)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_moving_samples(name):
    distribution, parameters = made(CONTINUOUS, name)
    if not distribution.has_rsample:
        with pytest.raises(NotImplementedError):
            distribution.rsample()
        return
    torch.manual_seed(3)
    fixed = distribution.sample((3,))
    torch.manual_seed(3)
    moving = distribution.rsample((3,))
    assert torch.equal(fixed, moving.detach())
    gradients = torch.autograd.grad(moving.sum(), parameters)
    assert all(gradient.isfinite().all() for gradient in gradients)


VECTORS = {
    "Dirichlet": lambda: D.Dirichlet(torch.tensor([0.7, 2.0, 3.0])),
    "LowRankMultivariateNormal": lambda: D.LowRankMultivariateNormal(
        torch.tensor([1.0, 2.0]), torch.tensor([[1.0], [0.5]]), torch.tensor([0.3, 0.4])
    ),
    "Multinomial": lambda: D.Multinomial(6, torch.tensor([0.2, 0.3, 0.5])),
    "MultivariateNormal": lambda: D.MultivariateNormal(
        torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.5], [0.5, 2.0]])
    ),
    "OneHotCategorical": lambda: D.OneHotCategorical(torch.tensor([0.2, 0.3, 0.5])),
    "Wishart": lambda: D.Wishart(torch.tensor(4.5), torch.tensor([[1.0, 0.5], [0.5, 2.0]])),
    "MixtureSameFamily": lambda: D.MixtureSameFamily(
        D.Categorical(torch.tensor([0.3, 0.7])), D.Normal(torch.tensor([0.0, 3.0]), torch.tensor([1.0, 0.5]))
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_moments_of_vectors(name):
    distribution = VECTORS[name]()
    torch.manual_seed(2)
    drawn = distribution.sample((COUNT,))
    assert drawn.shape == (COUNT, *distribution.event_shape)
    assert distribution.support.check(drawn).all()
    spread = (distribution.variance / COUNT).sqrt()
    assert ((drawn.mean(0) - distribution.mean).abs() < 4.5 * spread).all()
    numpy.testing.assert_allclose(drawn.var(0).numpy(), distribution.variance.numpy(), rtol=0.15)


def test_covariances():
    covariance = torch.tensor([[1.0, 0.5, 0.1], [0.5, 2.0, -0.3], [0.1, -0.3, 0.7]])
    torch.manual_seed(2)
    for distribution in (
        D.MultivariateNormal(torch.zeros(3), covariance),
        D.MultivariateNormal(torch.zeros(3), precision_matrix=torch.linalg.inv(covariance)),
    ):
        drawn = distribution.sample((COUNT,))
        numpy.testing.assert_allclose(torch.cov(drawn.mT).numpy(), covariance.numpy(), atol=0.12)


def test_correlation_matrices():
    """For every correlation r in d dimensions, (r + 1) / 2 has a beta distribution.

    Both parameters are concentration - 1 + d / 2.
    """
    distribution = D.LKJCholesky(4, torch.tensor(1.5))
    torch.manual_seed(2)
    factors = distribution.sample((COUNT,))
    assert D.constraints.corr_cholesky.check(factors).all()
    correlations = (factors @ factors.mT)[:, [1, 2, 3, 3], [0, 1, 0, 2]]
    expected = 4 * D.Beta(torch.tensor(2.5), 2.5).variance
    assert correlations.mean(0).abs().max() < 4.5 * (expected / COUNT) ** 0.5
    numpy.testing.assert_allclose(correlations.var(0).numpy(), expected.item(), rtol=0.15)


def test_relaxed_categories():
    distribution = D.RelaxedOneHotCategorical(torch.tensor(0.3), torch.tensor([0.2, 0.3, 0.5]))
    torch.manual_seed(2)
    drawn = distribution.rsample((COUNT,))
    shares = torch.bincount(drawn.argmax(-1), minlength=3) / COUNT
    numpy.testing.assert_allclose(shares.numpy(), [0.2, 0.3, 0.5], atol=0.03)


def test_straight_through():
    probs = torch.tensor([0.2, 0.3, 0.5], requires_grad=True)
    drawn = D.OneHotCategoricalStraightThrough(probs).rsample((4,))
    assert D.constraints.one_hot.check(drawn.detach().round()).all()
    (drawn * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert probs.grad.abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gamma_samples_are_never_zero(dtype):
    torch.manual_seed(0)
    drawn = D.Gamma(torch.full((200,), 1e-3, dtype=dtype), 1.0).sample()
    assert (drawn >= torch.finfo(dtype).tiny).all()
    points = D.Dirichlet(torch.full((50, 3), 1e-3, dtype=dtype)).sample()
    assert (points > 0).all()
    assert (points < 1).all()


def test_samplers_refuse():
    with pytest.raises(NotImplementedError, match=r"gamma_cpu.*not implemented for 'Long'"):
        torch._standard_gamma(torch.ones(2, dtype=torch.int64))
    with pytest.raises(NotImplementedError, match=r"dirichlet.*not implemented for 'Half'"):
        torch._sample_dirichlet(torch.ones(2, dtype=torch.float16))
    with pytest.raises(ValueError, match="binomial only supports floating-point dtypes for count, got: Long"):
        torch.binomial(torch.ones(2, dtype=torch.int64), torch.ones(2))
    with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
        torch.binomial(torch.ones(2).double(), torch.ones(2))


def test_binomial_at_its_edges():
    counts = torch.tensor([5.0, 5.0, 0.0, -1.0, 5.0])
    probs = torch.tensor([0.0, 1.0, 0.5, 0.5, float("nan")])
    drawn = torch.binomial(counts, probs)
    assert drawn[:4].tolist() == [0.0, 5.0, 0.0, 0.0]
    assert drawn[4].isnan()


def test_vmap_draws_for_each_example():
    distribution = torch.func.vmap(lambda a: D.Gamma(a, 1.0, validate_args=False).rsample(), randomness="different")
    torch.manual_seed(0)
    drawn = distribution(torch.ones(4))
    assert drawn.unique().numel() == 4

"""Kullback-Leibler divergences against integrals, sums and samples."""

import warnings

import pytest

import adjoint as torch
from adjoint import distributions as D
from adjoint.distributions import kl

from .cases import CONTINUOUS, DISCRETE, made, nodes, values_of


def univariate():
    """Return pairs of univariate distributions for which a divergence is registered."""
    by_class = {}
    for table in (CONTINUOUS, DISCRETE):
        for name in table:
            by_class.setdefault(type(made(table, name)[0]), (table, name))
    for p, q in kl._KL_REGISTRY:
        if p in by_class and q in by_class:
            yield pytest.param(by_class[p], by_class[q], id=f"{p.__name__}-{q.__name__}")


def other(distribution):
    """Return a distribution of the same class with other parameters.

    Its support contains the support of the given distribution.
    """
    moved = {
        D.Binomial: lambda: D.Binomial(distribution.total_count, distribution.probs * 0.7),
        D.Categorical: lambda: D.Categorical(distribution.probs.flip(0)),
        D.Uniform: lambda: D.Uniform(distribution.low - 1, distribution.high + 2),
        D.Pareto: lambda: D.Pareto(distribution.scale * 0.7, distribution.alpha * 0.8),
        D.HalfNormal: lambda: D.HalfNormal(distribution.scale * 1.3),
    }.get(type(distribution))
    if moved is not None:
        return moved()
    return type(distribution)(
        *(getattr(distribution, name) * 0.8 + 0.1 for name in distribution.arg_constraints if name != "logits")
    )


@pytest.mark.parametrize(("one", "two"), list(univariate()))
def test_divergences_of_numbers(one, two):
    (p, _), (q, _) = made(*one), made(*two)
    if type(p) is type(q):
        q = other(q)
    actual = D.kl_divergence(p, q)
    q._validate_args = False
    if one[0] is DISCRETE:
        x = values_of(p)
        weights = p.log_prob(x).exp()
    else:
        points, widths = (torch.from_numpy(each) for each in nodes(p))
        weights = p.log_prob(points).exp() * widths
        x = points[weights > 0]
        weights = weights[weights > 0]
    x = x.double()
    if not q.support.check(x[weights > 1e-12]).all() or actual.isinf():
        assert actual.isinf()
        return
    log_q = torch.where(q.support.check(x), q.log_prob(x), 0.0)
    terms = torch.where(weights > 0, weights * (p.log_prob(x) - log_q), 0.0)
    kinked = isinstance(p, D.Laplace) or isinstance(q, D.Laplace)  # the integration rule is less exact at kinks
    assert torch.allclose(actual, terms.sum(), rtol=1e-2 if kinked else 1e-6, atol=1e-9)


def normal(loc, covariance, low_rank):
    loc, covariance = torch.tensor(loc).double(), torch.tensor(covariance).double()
    if not low_rank:
        return D.MultivariateNormal(loc, covariance)
    factor = torch.tensor([[1.0], [0.4]]).double()
    return D.LowRankMultivariateNormal(loc, factor, covariance.diagonal())


@pytest.mark.parametrize("of_p", [False, True])
@pytest.mark.parametrize("of_q", [False, True])
def test_divergences_of_normal_vectors(of_p, of_q):
    p, q = normal([0.3, 1.0], [[1.0, 0.3], [0.3, 2.0]], of_p), normal([[0.0, 1.5]] * 3, [[2.0, 0.1], [0.1, 1.0]], of_q)
    inverse = torch.linalg.inv(q.covariance_matrix)
    moved = (q.loc - p.loc)[..., None]
    expected = 0.5 * (
        (inverse @ p.covariance_matrix).diagonal(dim1=-2, dim2=-1).sum(-1)
        + (moved.mT @ inverse @ moved).squeeze((-1, -2))
        - 2
        + torch.logdet(q.covariance_matrix)
        - torch.logdet(p.covariance_matrix)
    )
    assert torch.allclose(D.kl_divergence(p, q), expected)


def test_divergences_of_vectors_by_samples():
    torch.manual_seed(0)
    pairs = [
        (D.Dirichlet(torch.tensor([0.9, 2.0, 3.0])), D.Dirichlet(torch.tensor([2.0, 2.0, 1.0]))),
        (
            D.Wishart(torch.tensor(4.0).double(), torch.eye(2).double()),
            D.Wishart(torch.tensor(5.0).double(), 2 * torch.eye(2).double()),
        ),
        (D.OneHotCategorical(torch.tensor([0.2, 0.8])), D.OneHotCategorical(torch.tensor([0.5, 0.5]))),
        (
            D.Independent(D.Normal(torch.zeros(2), 1.0), 1),
            D.Independent(D.Normal(torch.ones(2), torch.tensor([1.0, 2.0])), 1),
        ),
    ]
    for p, q in pairs:
        x = p.sample((4000,))
        ratio = p.log_prob(x) - q.log_prob(x)
        spread = ratio.std() / 4000**0.5
        assert (D.kl_divergence(p, q) - ratio.mean()).abs() < 4.5 * spread


def test_the_nearest_classes_are_taken():
    class Mine(D.Normal):
        pass

    class Yours(D.Normal):
        pass

    p, q = Mine(0.0, 1.0), Yours(1.0, 1.0)
    assert D.kl_divergence(p, q) == 0.5

    @D.register_kl(Mine, Mine)
    def nothing(p, q):
        return torch.zeros(())

    assert D.kl_divergence(p, p) == 0
    D.register_kl(Mine, D.Normal)(lambda p, q: torch.tensor(1.0))
    D.register_kl(D.Normal, Yours)(lambda p, q: torch.tensor(2.0))
    with pytest.warns(
        RuntimeWarning, match=r"Ambiguous kl_divergence\(Mine, Yours\). Please register_kl\(Mine, Yours\)"
    ):
        assert D.kl_divergence(p, q) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert D.kl_divergence(p, q) == 1.0  # the warning appears once
    for pair in ((Mine, Mine), (Mine, D.Normal), (D.Normal, Yours)):
        del kl._KL_REGISTRY[pair]
    kl._KL_MEMOIZE.clear()


def test_refusals():
    with pytest.raises(
        NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q type Cauchy"
    ):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0))
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass but got 3"):
        D.register_kl(3, D.Normal)
    with pytest.raises(ValueError, match="different event shapes"):
        D.kl_divergence(
            normal([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], False), D.MultivariateNormal(torch.zeros(3), torch.eye(3))
        )

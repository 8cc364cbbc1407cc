"""Transforms: inverses, Jacobians against automatic differentiation, caches, shapes, and the registries of constraints."""

import gc
import pickle

import pytest

import adjoint as torch
from adjoint import distributions as D
from adjoint.distributions import biject_to, constraints, transform_to
from adjoint.distributions import transforms as X


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


PAIR = torch.tensor([0.5, -2.0], dtype=torch.float64)

TRANSFORMS = {
    "abs": (X.AbsTransform(), numbers(3).abs()),
    "affine": (X.AffineTransform(PAIR, PAIR * 3), numbers(3, 2)),
    "affine of numbers": (X.AffineTransform(1.0, -2.0), numbers(3)),
    "affine of vectors": (X.AffineTransform(0.0, PAIR, event_dim=1), numbers(3, 2)),
    "cat": (X.CatTransform([X.ExpTransform(), X.TanhTransform()], dim=-1, lengths=[1, 2]), numbers(4, 3)),
    "compose": (X.ComposeTransform([X.AffineTransform(1.0, 2.0), X.SigmoidTransform()]), numbers(3)),
    "correlation": (X.CorrCholeskyTransform(), numbers(4, 6)),
    "distribution": (X.CumulativeDistributionTransform(D.Normal(PAIR[0], 2.0)), numbers(3)),
    "exp": (X.ExpTransform(), numbers(3)),
    "exp back": (X.ExpTransform().inv, numbers(3).exp()),
    "identity": (X.identity_transform, numbers(3)),
    "independent": (X.IndependentTransform(X.ExpTransform(), 1), numbers(3, 2)),
    "power": (X.PowerTransform(torch.tensor(-1.5).double()), numbers(3).exp()),
    "reshape": (X.ReshapeTransform((2, 3), (6,)), numbers(4, 2, 3)),
    "sigmoid": (X.SigmoidTransform(), numbers(3)),
    "softplus": (X.SoftplusTransform(), numbers(3)),
    "stack": (X.StackTransform([X.ExpTransform(), X.TanhTransform()], dim=-1), numbers(4, 2)),
    "stick breaking": (X.StickBreakingTransform(), numbers(4, 3)),
    "stick breaking of scaled": (
        X.ComposeTransform([X.AffineTransform(0.5, 2.0), X.StickBreakingTransform()]),
        numbers(4, 3),
    ),
    "tanh": (X.TanhTransform(), numbers(3)),
    "to an interval": (biject_to(constraints.interval(-1.0, 3.0)), numbers(3)),
    "to less": (biject_to(constraints.less_than(-1.0)), numbers(3)),
}
MATRICES = {
    "lower": (X.LowerCholeskyTransform(), numbers(2, 3, 3)),
    "definite": (X.PositiveDefiniteTransform(), numbers(2, 3, 3)),
    "softmax": (X.SoftmaxTransform(), numbers(2, 3)),
}


@pytest.mark.parametrize("name", [*TRANSFORMS, *MATRICES])
def test_values_lie_in_the_domain(name):
    transform, x = (TRANSFORMS | MATRICES)[name]
    y = transform(x)
    assert transform.domain.check(x).all()
    assert transform.codomain.check(y).all()
    assert transform.forward_shape(x.shape) == y.shape
    assert transform.inverse_shape(y.shape) == x.shape
    again = transform(transform.inv(y))
    assert torch.allclose(again, y)
    if transform.bijective:
        assert torch.allclose(transform.inv(y), x)


def free(value, region):
    """Return independent coordinates of a point in a region that has fewer dimensions than its vectors."""
    if isinstance(region, type(constraints.simplex)):
        return value[..., :-1]
    if isinstance(region, type(constraints.corr_cholesky)):
        rows, columns = torch.tril_indices(value.shape[-1], value.shape[-1], -1)
        return value[..., rows, columns]
    return value


@pytest.mark.parametrize("name", [name for name in TRANSFORMS if name != "abs"])
def test_jacobians(name):
    transform, x = TRANSFORMS[name]
    y = transform(x)
    dims = transform.domain.event_dim
    events = x.reshape(-1, *x.shape[x.dim() - dims :]) if dims else x.reshape(-1)
    actual = transform.log_abs_det_jacobian(x, y)
    assert torch.allclose(transform.inv.log_abs_det_jacobian(y, x), -actual)
    if name in ("affine", "cat", "stack"):  # positions have different transforms, so compare all positions together
        events, actual = x[None], actual.sum()[None]
    expected = []
    for event in events:
        jacobian = torch.autograd.functional.jacobian(lambda e: free(transform(e), transform.codomain), event)
        n = event.numel()
        expected.append(torch.linalg.slogdet(jacobian.reshape(n, n))[1])
    assert torch.allclose(actual.reshape(-1), torch.stack(expected))


@pytest.mark.parametrize("name", ["affine", "exp", "sigmoid", "softplus", "tanh", "power", "distribution", "compose"])
def test_signs(name):
    transform, x = TRANSFORMS[name]
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(transform(x).sum(), x)
    assert (slope.sign() == transform.sign).all()


def test_caches():
    cached, x = X.ExpTransform(cache_size=1), numbers(2)
    y = cached(x)
    assert cached.inv(y) is x
    assert cached(x) is y
    assert cached.with_cache() is cached
    assert X.ExpTransform().with_cache(1)._cache_size == 1
    composed = X.ComposeTransform([X.ExpTransform(), X.AffineTransform(0.0, 2.0)]).with_cache()
    y = composed(x)
    assert composed.inv(y) is x
    for transform, _ in (TRANSFORMS | MATRICES).values():
        assert type(transform.with_cache(1)) is type(transform)
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        X.ExpTransform(cache_size=2)


def test_a_transform_and_its_inverse_are_no_cycle():
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(50):
            transform = X.ExpTransform()
            assert transform.inv.inv is transform
            X.ComposeTransform([transform]).inv.inv
        del transform
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()


def test_pickled():
    transform = pickle.loads(pickle.dumps(X.AffineTransform(1.0, 2.0)))
    assert transform.inv(transform(PAIR)).equal(PAIR)
    assert transform == X.AffineTransform(1.0, 2.0)


def test_equality():
    assert X.ExpTransform() == X.ExpTransform()
    assert X.ExpTransform() != X.SigmoidTransform()
    assert X.ExpTransform().inv == X.ExpTransform().inv
    assert X.AffineTransform(PAIR, 1.0) != X.AffineTransform(PAIR + 1, 1.0)
    assert X.ComposeTransform([X.ExpTransform()]) == X.ComposeTransform([X.ExpTransform()])


REGIONS = [
    constraints.real,
    constraints.positive,
    constraints.nonnegative,
    constraints.greater_than(2.0),
    constraints.greater_than(PAIR),
    constraints.less_than(-1.0),
    constraints.unit_interval,
    constraints.interval(-1.0, 3.0),
    constraints.half_open_interval(-1.0, 3.0),
    constraints.simplex,
    constraints.corr_cholesky,
    constraints.lower_cholesky,
    constraints.positive_definite,
    constraints.positive_semidefinite,
    constraints.real_vector,
    constraints.independent(constraints.positive, 1),
    constraints.cat([constraints.positive, constraints.less_than(0.0)], dim=-1, lengths=[1, 1]),
    constraints.stack([constraints.positive, constraints.less_than(0.0)], dim=-1),
]


@pytest.mark.parametrize("registry", [biject_to, transform_to])
@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_registries(registry, region):
    try:
        transform = registry(region)
    except NotImplementedError:
        assert registry is biject_to
        assert isinstance(region, (type(constraints.lower_cholesky), type(constraints.symmetric)))
        return
    shape = {0: (5, 2), 1: (5, 2), 2: (5, 2, 2)}[transform.domain.event_dim]
    shape = (5, 3) if region is constraints.corr_cholesky else shape
    y = transform(numbers(*shape))
    assert region.check(y).all()
    assert transform.bijective or registry is transform_to


def test_own_constraints_may_be_registered():
    class Even(constraints.Constraint):
        pass

    @biject_to.register(Even)
    def twice(constraint):
        return X.AffineTransform(0.0, 2.0)

    assert biject_to(Even()) == X.AffineTransform(0.0, 2.0)
    with pytest.raises(NotImplementedError, match="Cannot transform Even constraints"):
        transform_to(Even())
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        biject_to.register(3, twice)


def test_transformed_distributions_agree_with_known_ones():
    x = torch.tensor([0.7, 0.2]).double()
    log_normal = D.TransformedDistribution(D.Normal(PAIR, 2.0), X.ExpTransform())
    assert torch.allclose(log_normal.log_prob(x), D.LogNormal(PAIR, 2.0).log_prob(x))
    falling = D.TransformedDistribution(D.Uniform(0.0, PAIR.abs()), X.AffineTransform(1.0, -1.0))
    assert torch.allclose(falling.cdf(x), D.Uniform(1 - PAIR.abs(), 1.0).cdf(x))
    assert torch.allclose(falling.icdf(falling.cdf(x)), x)
    broadcast = D.TransformedDistribution(D.Normal(0.0, 1.0), X.AffineTransform(PAIR, 1.0))
    assert broadcast.batch_shape == (2,)
    assert torch.allclose(broadcast.log_prob(x), D.Normal(PAIR, 1.0).log_prob(x))


def test_transforms_and_distributions_may_be_modules():
    class Scaling(X.Transform, torch.nn.Module):
        domain = codomain = constraints.real
        __hash__ = torch.nn.Module.__hash__

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((2,), 3.0))

        def _call(self, x):
            return x * self.weight

    class Shifted(torch.distributions.Normal, torch.nn.Module):
        def __init__(self):
            super().__init__(torch.zeros(2), 1.0)
            self.shift = torch.nn.Parameter(torch.ones(2))

    assert [name for name, _ in Scaling().named_parameters()] == ["weight"]
    assert Scaling()(torch.ones(2)).tolist() == [3, 3]
    assert [name for name, _ in Shifted().named_parameters()] == ["shift"]

"""The base of all distributions: validation, expansion, subclasses, lazy attributes, and imports."""

import pickle
import subprocess
import sys

import pytest

import adjoint as torch
from adjoint import distributions as D
from adjoint.distributions import constraints, utils

from .cases import CONTINUOUS, DISCRETE, made


@pytest.mark.thorough
def test_imported_when_first_used():
    program = (
        "import adjoint, sys; assert 'adjoint.distributions' not in sys.modules; adjoint.distributions.Normal(0., 1.)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_expanded_distributions_are_copies_of_the_distribution(name):
    distribution, _ = made(CONTINUOUS if name in CONTINUOUS else DISCRETE, name)
    torch.manual_seed(0)
    x = distribution.sample((3, 2))
    new = distribution.expand((3, 2))
    assert type(new) is type(distribution)
    assert new.batch_shape == (3, 2)
    assert torch.equal(new.log_prob(x), distribution.log_prob(x))
    again = new.expand((5, 3, 2))
    assert again.sample().shape == (5, 3, 2)
    assert pickle.loads(pickle.dumps(distribution)).log_prob(x).equal(distribution.log_prob(x))


def test_gradients_reach_parameters_through_expansion():
    loc = torch.zeros(2, requires_grad=True)
    D.Normal(loc, 1.0).expand((3, 2)).log_prob(torch.ones(3, 2)).sum().backward()
    assert loc.grad.tolist() == [3.0, 3.0]


def test_expansion_derives_anew():
    distribution = D.Bernoulli(torch.tensor([0.2, 0.7]))
    distribution.logits
    new = distribution.expand((3, 2))
    assert new.logits.shape == new.probs.shape == (3, 2)
    low_rank = D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2))
    low_rank.variance
    assert low_rank.expand((4,)).variance.shape == (4, 2)


def test_subclasses():
    class Same(D.Normal):
        pass

    class Centred(D.Normal):
        def __init__(self, scale):
            super().__init__(0.0, scale)

    class Own(Centred):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Own, _instance)
            return super().expand(batch_shape, _instance=new)

    assert type(Same(0.0, 1.0).expand((2,))) is Same
    words = (
        "Subclass Centred of Normal that defines a custom __init__ method must also define a custom .expand() method."
    )
    with pytest.raises(NotImplementedError) as caught:
        Centred(1.0).expand((2,))
    assert str(caught.value) == words
    assert Own(1.0).expand((2,)).batch_shape == (2,)


def test_a_distribution_of_ones_own():
    class Triangle(D.Distribution):
        arg_constraints = {"width": constraints.positive}
        has_rsample = True

        def __init__(self, width, validate_args=None):
            (self.width,) = utils.broadcast_all(width)
            super().__init__(self.width.shape, validate_args=validate_args)

        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return constraints.interval(0.0, self.width)

        def rsample(self, sample_shape=()):
            return self.width * torch.rand(self._extended_shape(sample_shape)).sqrt()

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return (2 * value / self.width**2).log()

    assert Triangle.support.event_dim == 0
    distribution = Triangle(torch.tensor([1.0, 2.0]))
    assert repr(distribution) == "Triangle(width: torch.Size([2]))"
    assert distribution.sample((3,)).shape == (3, 2)
    assert distribution.log_prob(torch.tensor([0.5, 1.0])).exp().tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match=r"to be within the support \(Interval"):
        distribution.log_prob(torch.tensor(1.5))
    with pytest.raises(ValueError, match="Expected parameter width"):
        Triangle(-1.0)
    with pytest.raises(NotImplementedError):
        distribution.expand((3, 2))
    assert D.Independent(distribution, 1).log_prob(torch.tensor([0.5, 1.0])).shape == ()


def test_validation_can_be_switched_off():
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale == -1
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, -1.0)
    assert not D.Uniform(0.0, 1.0, validate_args=False).log_prob(torch.tensor(2.0)).isfinite()


def test_undefined_attributes_warn():
    class Bare(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        Bare()
    bare = Bare(validate_args=False)
    with pytest.warns(UserWarning, match="does not define `support`"):
        bare._validate_sample(torch.zeros(()))
    for ask in (lambda: bare.mean, lambda: bare.sample(), lambda: bare.entropy(), lambda: bare.expand((2,))):
        with pytest.raises(NotImplementedError):
            ask()
    with pytest.warns(FutureWarning, match=r"`sample_n\(n\)` will be deprecated"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_lazy_properties():
    class Square:
        made = 0

        def __init__(self, x):
            self.x = x

        @utils.lazy_property
        def area(self):
            """The area."""
            type(self).made += 1
            return self.x * self.x

    x = torch.tensor(3.0, requires_grad=True)
    square = Square(x)
    with torch.no_grad():
        assert square.area.requires_grad
    assert square.area is square.area
    assert Square.made == 1
    assert Square.area.__doc__ == "The area."
    square.area = 4
    assert square.area == 4


def test_entropy_by_natural_parameters():
    """The entropy that exponential families inherit agrees with the formulas of the classes."""
    for name in ("Bernoulli", "Beta", "Exponential", "Gamma", "Normal"):
        distribution, _ = made(DISCRETE if name in DISCRETE else CONTINUOUS, name)
        if name != "Beta":  # adjoint and PyTorch do not define the carrier measure of Beta
            assert torch.allclose(D.ExponentialFamily.entropy(distribution), distribution.entropy())
    wishart = D.Wishart(torch.tensor(4.0).double(), torch.tensor([[1.0, 0.5], [0.5, 2.0]]).double())
    assert torch.allclose(D.ExponentialFamily.entropy(wishart.expand((1,))), wishart.entropy())


def test_triangles_and_vectors():
    matrix = torch.arange(9.0).reshape(3, 3)
    for diag in (-1, 0, 1):
        vector = utils.tril_matrix_to_vec(matrix, diag)
        if diag < 1:
            assert utils.vec_to_tril_matrix(vector, diag).equal(matrix.tril(diag))
    with pytest.raises(ValueError, match=r"diag \(3\) provided is outside \[-3, 2\]"):
        utils.tril_matrix_to_vec(matrix, 3)


def test_samples_do_not_depend_on_gradient_mode():
    torch.manual_seed(0)
    one = D.Gamma(torch.ones(3, requires_grad=True), 1.0).sample()
    assert not one.requires_grad
    with torch.inference_mode():
        assert D.Normal(torch.zeros(2), 1.0).sample().shape == (2,)


@pytest.mark.parametrize("shape", [2, None])
def test_the_shape_of_samples_is_a_sequence(shape):
    with pytest.raises(TypeError, match="object is not iterable"):
        torch.distributions.Normal(0.0, 1.0).sample(shape)

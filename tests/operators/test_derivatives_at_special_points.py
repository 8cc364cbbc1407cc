"""The first three derivatives at points where a formula divides zero by zero."""

import math

import pytest

import adjoint as torch


def derivatives(function, point, orders=3):
    """Return the derivatives of the sum of an elementwise function, for the orders from 1 on."""
    leaf = torch.tensor(point, dtype=torch.float64, requires_grad=True)
    value, found = function(leaf), []
    for _ in range(orders):
        (value,) = torch.autograd.grad(value.sum() + 0 * leaf.sum(), leaf, create_graph=True)
        found.append(value.tolist())
    return found


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("power", [torch.pow, torch.float_power, lambda x, y: x**y])
def test_powers_of_zero(power, exponent):
    expected = [math.factorial(exponent) * (order == exponent) for order in (1, 2, 3)]
    assert derivatives(lambda x: power(x, torch.tensor(exponent)), 0.0) == expected
    assert derivatives(lambda x: power(x, exponent), 0.0) == expected


def test_powers_by_their_exponent():
    for base in (0.0, torch.tensor(0.0)):
        assert derivatives(lambda exponent, base=base: torch.pow(base, exponent), [1.0, 2.5, 3.0]) == [[0.0] * 3] * 3
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    exponent = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    for first, second in ((x, exponent), (exponent, x)):  # the mixed derivative of x ** 0 is 1 / x
        (gradient,) = torch.autograd.grad(x**exponent, first, create_graph=True)
        assert torch.autograd.grad(gradient, second)[0].item() == 0.5


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_sinc_near_zero(dtype):
    for point, tolerance in ((0.0, 1e-12), (1e-160, 1e-12), (1e-5, 1e-8), (1e-3, 1e-5), (0.4, 1e-9), (1.3, 1e-9)):
        x = torch.tensor(point, dtype=dtype, requires_grad=True)
        value, exact = torch.sinc(x), None
        for order in (1, 2, 3, 4, 5):
            (value,) = torch.autograd.grad(value.real, x, create_graph=True)
            # Reference values by Simpson's rule: the mean of the derivatives of cos(2 pi x t) over t from -1/2 to 1/2.
            t = torch.linspace(-0.5, 0.5, 20001, dtype=torch.float64)
            integrand = (2 * math.pi * t) ** order * torch.cos(2 * math.pi * t * point + order * math.pi / 2)
            weights = torch.ones_like(t) * 2
            weights[1::2], weights[0], weights[-1] = 4, 1, 1
            exact = ((integrand * weights).sum() / 60000).item()
            assert abs(complex(value.item()) - exact) <= 1e-9 + tolerance * abs(exact)


@pytest.mark.parametrize("function", [torch.logaddexp, torch.logaddexp2])
def test_sums_of_exponentials_with_nothing(function):
    for numbers in ([0.3, -math.inf], [-math.inf, 0.3], [2e3, 0.3], [-2e3, 0.3]):
        first, second, third = derivatives(lambda x: function(x[0], x[1]), numbers)
        assert first == [float(n == max(numbers)) for n in numbers]
        assert second == third == [0.0, 0.0]
    for composed in (torch.logsumexp, lambda x, dim: torch.logcumsumexp(x, dim)[-1]):
        assert derivatives(lambda x, f=composed: f(x, 0), [0.3, -math.inf], 2)[1] == [0.0, 0.0]


NORMS = {
    "vector_norm": torch.linalg.vector_norm,
    "norm": torch.norm,
    "dist": lambda x, p: torch.dist(x, torch.zeros(3, dtype=x.dtype), p),
    "cdist": lambda x, p: torch.cdist(x[None], torch.zeros(1, 3, dtype=x.dtype), p),
    "pdist": lambda x, p: torch.pdist(torch.stack([x, 0 * x]), p),
    "pairwise_distance": lambda x, p: torch.nn.functional.pairwise_distance(x, torch.zeros_like(x), p, eps=0.0),
    "renorm": lambda x, p: torch.renorm(x[None], p, 0, 1.0),
}


@pytest.mark.parametrize("order", [2.5, 3.0, 3.5, 4.0])
@pytest.mark.parametrize("name", NORMS)
def test_norms_with_an_element_that_is_zero(name, order):
    """These norms are twice differentiable, so the second derivative at zero agrees with the second derivative near zero."""
    at, near = (derivatives(lambda x: NORMS[name](x, order), [1.0, zero, -2.0], 2) for zero in (0.0, 1e-9))
    torch.testing.assert_close(torch.tensor(at), torch.tensor(near), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("order", [1.25, 1.5, 1.9])
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_low_order_with_an_element_that_is_zero(name, order):
    """The second derivative is infinite at zero.

    At the other elements, the second derivative agrees with its values near zero.
    """
    at, near = (derivatives(lambda x: NORMS[name](x, order), [1.0, zero, -2.0], 2) for zero in (0.0, 1e-20))
    assert not math.isfinite(at[1][1])
    for found, expected in zip(at, near, strict=True):
        torch.testing.assert_close(torch.tensor(found[::2]), torch.tensor(expected[::2]), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("order", [-2.0, -1.0, -0.5, 0.5])
@pytest.mark.parametrize("zeros", [[0.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
@pytest.mark.parametrize("name", ["vector_norm", "norm", "dist"])
def test_norms_of_order_below_one_with_an_element_that_is_zero(name, zeros, order):
    """The zero element has no derivative, but other elements do not become nan."""
    values = derivatives(lambda x: NORMS[name](x, order), zeros, 3)
    assert all(math.isfinite(number) for row in values for number in row)
    assert all(row[0] == 0 for row in values)

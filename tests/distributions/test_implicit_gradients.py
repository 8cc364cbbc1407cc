"""Incomplete integrals and the derivatives of gamma and Dirichlet samples, compared with values of 60 digits."""

import numpy
import pytest

import adjoint as torch
from adjoint.kernels.math.incomplete import dirichlet_grad, igamma, igammac, standard_gamma_grad

# fmt: off
# Concentration, sample, derivative of the sample, and the lower and the upper incomplete function; computed with mpmath.
GAMMA = [
    (0.01, 1e-30, 6.85166673319527e-27, 0.5040472728599954, 0.49595272714000455),
    (0.01, 0.3, 37.034760047760756, 0.990927603578235, 0.009072396421765093),
    (0.3, 0.001, 0.022481140914591295, 0.14024245892486736, 0.8597575410751326),
    (0.3, 0.7, 2.338650104806125, 0.8668625855062952, 0.13313741449370475),
    (0.7, 0.6, 1.1496147124282257, 0.6107688624801707, 0.38923113751982935),
    (1.0, 0.2, 0.4611264993996721, 0.18126924692201815, 0.8187307530779818),
    (1.0, 3.0, 1.937911693824961, 0.950212931632136, 0.049787068367863944),
    (2.5, 0.1, 0.1405497929736699, 0.0008861387888124426, 0.9991138612111875),
    (2.5, 2.0, 0.9534627029186165, 0.4505840486472198, 0.5494159513527802),
    (2.5, 9.0, 1.891711800090848, 0.9970535954121197, 0.0029464045878802906),
    (30.0, 20.0, 0.8154222242260368, 0.02181821752555739, 0.9781817824744427),
    (30.0, 29.5, 0.9971467809303334, 0.48771114641816943, 0.5122888535818306),
    (30.0, 45.0, 1.223142506370333, 0.9926628007022035, 0.007337199297796504),
    (1000.0, 950.0, 0.9747350236971637, 0.05505468623073803, 0.9449453137692619),
    (1000.0, 1000.0, 1.0001666833238059, 0.5042052441802155, 0.4957947558197845),
    (1000.0, 1100.0, 1.048586678561617, 0.99894067674607, 0.0010593232539299773),
    (100000.0, 100200.0, 1.0010010023328724, 0.7366620100051987, 0.2633379899948013),
]

# Sample, both concentrations, and the derivative of the sample divided by 1 minus the sample.
BETA = [
    (1e-20, 0.05, 0.3, 9.704985547681396e-18),
    (0.2, 0.05, 0.3, 16.99084347116247),
    (0.9999, 0.05, 0.3, 58.41823407545448),
    (0.3, 1.0, 1.0, 0.5159883447111154),
    (0.01, 2.0, 5.0, 0.018733947950895075),
    (0.3, 2.0, 5.0, 0.1668721242262059),
    (0.7, 2.0, 5.0, 0.249401399701398),
    (0.2, 30.0, 100.0, 0.007212706080645703),
    (0.23, 30.0, 100.0, 0.007742093815853039),
    (0.4, 30.0, 100.0, 0.010085595586356489),
    (0.001, 0.5, 200.0, 0.0039708947722093945),
    (0.99, 20.0, 0.1, 0.05088134773747757),
    (0.999999, 300.0, 0.1, 0.003338336105259966),
    (0.5, 1000.0, 1000.0, 0.0005001666999952333),
]
# fmt: on


def columns(table):
    return [numpy.array(column) for column in zip(*table, strict=True)]


def test_incomplete_gamma_functions():
    a, x, _, lower, upper = columns(GAMMA)
    numpy.testing.assert_allclose(igamma(a, x), lower, rtol=1e-11)
    numpy.testing.assert_allclose(igammac(a, x), upper, rtol=1e-11)


def test_incomplete_gamma_functions_at_the_edges():
    a = numpy.array([0.0, 0.0, 1.0, -1.0, 1.0, numpy.inf, 1.0, numpy.inf, numpy.nan, 1.0])
    x = numpy.array([0.0, 1.0, 0.0, 1.0, -1.0, 1.0, numpy.inf, numpy.inf, 1.0, numpy.nan])
    lower = numpy.array([numpy.nan, 1, 0, numpy.nan, numpy.nan, 0, 1, numpy.nan, numpy.nan, numpy.nan])
    numpy.testing.assert_array_equal(igamma(a, x), lower)
    numpy.testing.assert_array_equal(igammac(a, x), 1 - lower)


def test_moves_of_gamma_samples():
    a, x, moves, _, _ = columns(GAMMA)
    numpy.testing.assert_allclose(standard_gamma_grad(a, x), moves, rtol=1e-10)


def test_moves_of_beta_samples():
    x, a, b, moves = columns(BETA)
    numpy.testing.assert_allclose(dirichlet_grad(x, a, a + b), moves, rtol=1e-8)


def test_float32_is_computed_in_float64():
    a, x, moves, _, _ = columns(GAMMA[1:])
    actual = standard_gamma_grad(a.astype(numpy.float32), x.astype(numpy.float32))
    assert actual.dtype == numpy.float32
    numpy.testing.assert_allclose(actual, moves, rtol=2e-4)  # the rounding of x limits the precision


@pytest.mark.parametrize("rate", [0.5, 3.0])
@pytest.mark.thorough
def test_gradients_of_expectations(rate):
    """The gradients of the means of x and of x ** 2 agree with the formulas."""
    torch.manual_seed(0)
    concentration = torch.tensor([0.4, 1.0, 6.0], dtype=torch.float64, requires_grad=True)
    x = torch.distributions.Gamma(concentration, rate).rsample((20000,))
    (of_mean,) = torch.autograd.grad(x.mean(0).sum(), concentration, retain_graph=True)
    (of_square,) = torch.autograd.grad(x.square().mean(0).sum(), concentration)
    numpy.testing.assert_allclose(of_mean.numpy(), 1 / rate, rtol=0.05)
    numpy.testing.assert_allclose(of_square.numpy(), (2 * concentration + 1).detach().numpy() / rate**2, rtol=0.1)


@pytest.mark.thorough
def test_dirichlet_gradients_of_expectations():
    torch.manual_seed(0)
    concentration = torch.tensor([0.5, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
    x = torch.distributions.Dirichlet(concentration).rsample((20000,))
    weights = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    (actual,) = torch.autograd.grad((x * weights).sum(-1).mean(), concentration)
    mean = concentration / concentration.sum()
    (expected,) = torch.autograd.grad((mean * weights).sum(), concentration)
    numpy.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=0.05)


def test_a_sample_of_the_simplex_stays_there():
    """The derivative of the sum of the coordinates is zero."""
    torch.manual_seed(0)
    concentration = torch.tensor([0.5, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
    torch.distributions.Dirichlet(concentration).rsample((5,)).sum().backward()
    numpy.testing.assert_allclose(concentration.grad.numpy(), 0.0, atol=1e-10)


def test_very_large_concentrations():
    a = numpy.array([1e16, 1e18, 1e300])
    numpy.testing.assert_allclose(igamma(a, a), 0.5 + 1 / (3 * numpy.sqrt(2 * numpy.pi * a)), rtol=1e-12)
    numpy.testing.assert_allclose(igammac(a, a), 0.5, rtol=1e-8)
    numpy.testing.assert_allclose(standard_gamma_grad(a, a), 1.0, rtol=1e-12)

"""Activations: values, first and second derivatives, kinks, in-place forms, noise."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as torch

functional = torch.nn.functional
POINTS = [-7.1, -3.2, -1.3, -0.6, -0.2, 0.15, 0.7, 1.9, 3.4, 6.6]

SMOOTH_ENOUGH = {
    "relu": functional.relu,
    "relu6": functional.relu6,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
    "leaky_relu with a negative slope": lambda x: functional.leaky_relu(x, -0.3),
    "elu": lambda x: functional.elu(x, 1.7),
    "selu": functional.selu,
    "celu": lambda x: functional.celu(x, 2.5),
    "gelu": functional.gelu,
    "gelu with tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "mish": functional.mish,
    "softplus": functional.softplus,
    "softplus with options": lambda x: functional.softplus(x, 2, 3),
    "softsign": functional.softsign,
    "hardtanh": functional.hardtanh,
    "hardsigmoid": functional.hardsigmoid,
    "hardswish": functional.hardswish,
    "hardshrink": functional.hardshrink,
    "softshrink": functional.softshrink,
    "tanhshrink": functional.tanhshrink,
    "threshold": lambda x: functional.threshold(x, 0.5, 9),
    "logsigmoid": functional.logsigmoid,
    "prelu": lambda x: functional.prelu(x, torch.tensor([0.3], dtype=torch.float64)),
    "rrelu": functional.rrelu,
    "glu": lambda x: functional.glu(torch.stack([x, x], -1)).squeeze(-1),
}


def derivative(function, points, order):
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    y = function(x)
    for _ in range(order):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y.detach().numpy()


@pytest.mark.parametrize("name", SMOOTH_ENOUGH)
def test_derivatives(name):
    function, step = SMOOTH_ENOUGH[name], 1e-5
    moved = [function(torch.tensor(numpy.array(POINTS) + sign * step)).numpy() for sign in (1, -1)]
    slope = derivative(function, POINTS, 1)
    assert slope == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-7, abs=1e-8)
    bent = [derivative(function, numpy.array(POINTS) + sign * step, 1) for sign in (1, -1)]
    assert derivative(function, POINTS, 2) == pytest.approx((bent[0] - bent[1]) / (2 * step), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("function", "points", "slopes"),
    [
        (functional.relu, [0.0], [0]),
        (functional.leaky_relu, [0.0], [0.01]),
        (functional.elu, [0.0], [1]),
        (functional.hardtanh, [-1.0, 1.0], [0, 0]),
        (functional.hardswish, [-3.0, 3.0], [0, 1]),
        (functional.hardsigmoid, [-3.0, 3.0], [0, 0]),
        (functional.hardshrink, [-0.5, 0.5], [0, 0]),
        (functional.softshrink, [-0.5, 0.5], [0, 0]),
        (functional.logsigmoid, [0.0], [0.5]),
    ],
)
def test_derivatives_at_kinks(function, points, slopes):
    assert derivative(function, points, 1).tolist() == slopes


@given(st.floats(-1000, 1000))
def test_bounds_and_identities(value):
    x = torch.tensor(value, dtype=torch.float64)
    assert functional.relu(x).item() == max(value, 0)
    assert functional.logsigmoid(x).item() <= 0
    assert functional.softplus(x).item() == pytest.approx(-functional.logsigmoid(-x).item(), abs=3e-9)
    assert functional.silu(x).item() == pytest.approx(value * torch.sigmoid(x).item())
    assert abs(functional.gelu(x).item() - functional.gelu(x, approximate="tanh").item()) < 5e-4
    assert functional.hardtanh(x).item() == min(max(value, -1), 1)


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "elu", "selu", "celu", "leaky_relu", "silu", "mish", "hardswish", "rrelu"]
)
def test_in_place(name):
    function = getattr(functional, name)
    x = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    y = x * 1
    assert function(y, inplace=True) is y
    assert torch.allclose(y, function(x))
    y.sum().backward()
    assert x.grad.numpy() == pytest.approx(derivative(function, POINTS, 1))


def test_negative_slopes_cannot_be_differentiated_in_place():
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    with pytest.raises(
        RuntimeError, match="In-place leakyReLu backward calculation is triggered with a negative slope"
    ):
        functional.leaky_relu(x * 1, -0.2, inplace=True).sum().backward()
    with pytest.raises(RuntimeError, match="In-place leakyReLu backward"):
        functional.rrelu_(x * 1, -0.5, 0.1).sum().backward()
    with pytest.raises(RuntimeError, match="In-place elu backward calculation is triggered with a negative slope"):
        functional.elu(x * 1, -0.2, inplace=True).sum().backward()


def test_weights_of_prelu():
    x = torch.tensor([[1.0, -2.0], [-3.0, 4.0]], requires_grad=True)
    weight = torch.tensor([0.1, 0.2], requires_grad=True)
    y = torch.prelu(x, weight)
    assert torch.equal(y, torch.tensor([[1.0, -0.4], [-0.3, 4.0]]))
    y.sum().backward()
    assert weight.grad.tolist() == [-3, -2]
    assert torch.equal(x.grad, torch.tensor([[1.0, 0.2], [0.1, 1.0]]))
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers and input channel size"):
        torch.prelu(x, torch.ones(3))


def test_noise_of_rrelu():
    torch.manual_seed(0)
    x = -torch.ones(1000)
    x[::2] = 2
    y = functional.rrelu(x, 0.25, 0.5, training=True)
    assert (y[::2] == 2).all()
    assert ((y[1::2] <= -0.25) & (y[1::2] > -0.5)).all()
    assert y[1::2].std().item() == pytest.approx(0.25 / math.sqrt(12), rel=0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "softplus", "elu", "mish", "hardswish", "logsigmoid"])
def test_half_types_are_rounded_once(name, dtype):
    x = torch.linspace(-4, 4, 41).to(dtype)
    function = getattr(functional, name)
    assert torch.equal(function(x), function(x.float()).to(dtype))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: functional.gelu(x, approximate="x"),
            RuntimeError,
            "approximate argument must be either none or tanh.",
        ),
        (lambda x: functional.gelu(x.long()), NotImplementedError, "\"GeluKernelImpl\" not implemented for 'Long'"),
        (lambda x: functional.relu(x > 0), RuntimeError, "Boolean inputs not supported for relu"),
        (lambda x: functional.celu(x, 0), RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU"),
        (lambda x: functional.softshrink(x, -1), RuntimeError, r"lambda must be in range \[0, 3.40282e\+38\]"),
        (lambda x: functional.glu(x), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
        (lambda x: functional.hardtanh(x, 2, 1), ValueError, "min_val cannot be greater than max_val"),
        (lambda x: functional.hardtanh(x.byte(), -1, 1), RuntimeError, "cannot do hardtanh on an unsigned type"),
        (lambda x: functional.hardtanh_(x.byte(), -1, 1), RuntimeError, "cannot do hardtanh on an unsigned type"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.ones(3))


@pytest.mark.parametrize("size", [3000, 300_000])
def test_gelu_is_as_exact_as_float32_allows(size):
    x = numpy.linspace(-8, 8, size).astype(numpy.float32)
    wide = x.astype(numpy.float64)
    half = numpy.array([math.erfc(-value * math.sqrt(0.5)) / 2 for value in wide])
    result = torch.nn.functional.gelu(torch.from_numpy(x)).numpy()
    assert (numpy.abs(result - wide * half) <= 1.5e-7 * numpy.abs(wide)).all()


def test_a_derivative_of_real_numbers_only_is_refused_for_complex_numbers():
    x = torch.tensor([1 + 1j], requires_grad=True)
    for _ in range(2):  # the first call compiles the function
        with pytest.raises(RuntimeError, match=r"^silu does not support automatic differentiation for outputs with"):
            torch.nn.functional.silu(x)
    with pytest.raises(RuntimeError, match=r"^_trilinear does not support"):
        torch.nn.functional.bilinear(x, x, torch.ones(1, 1, 1, dtype=x.dtype))
    with torch.no_grad():
        assert torch.nn.functional.silu(x).is_complex()
    assert torch.nn.functional.silu(x.clone(), inplace=True).grad_fn is not None  # as in PyTorch
    torch.nn.functional.silu(x.real).sum().backward()


def test_elements_that_share_memory_have_one_threshold():
    x = torch.tensor([[1.0, -1.0, 3.0]])
    shared = x.expand(2, 3)
    functional.threshold_(shared, 0.5, 0.25)
    assert x.tolist() == [[1.0, 0.25, 3.0]] and shared.tolist() == x.tolist() * 2

"""Functions of one tensor's elements: values, identities, gradients against finite differences, edge points."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjoint as torch

INF, NAN = math.inf, math.nan


def numeric_gradient(function, points, step=1e-6):
    """Return central differences of an elementwise function."""
    points = numpy.asarray(points)
    above, below = (function(torch.tensor(points + sign * step)) for sign in (1, -1))
    return (above.numpy() - below.numpy()) / (2 * step)


def gradient(function, points, order=1):
    """Return the derivative of this order of an elementwise function, by backward."""
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    y = function(x)
    for _ in range(order):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y.detach().numpy()


ANYWHERE = [-2.3, -0.71, -0.2, 0.13, 0.9, 2.7]
INSIDE = [-0.93, -0.4, 0.11, 0.52, 0.87]
POSITIVE = [0.07, 0.45, 1.3, 2.6, 11.0]
ABOVE_ONE = [1.04, 1.7, 3.1, 9.0]
UNIT = [0.04, 0.3, 0.55, 0.93]

SMOOTH = [
    *[
        (name, ANYWHERE)
        for name in "exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh sigmoid sinc erf erfc i0".split()
    ],
    *[(name, ANYWHERE) for name in "deg2rad rad2deg square reciprocal neg abs frac lgamma digamma".split()],
    *[(name, INSIDE) for name in "asin acos atanh erfinv".split()],
    *[(name, POSITIVE) for name in "log log2 log10 log1p sqrt rsqrt".split()],
    ("acosh", ABOVE_ONE),
    ("logit", UNIT),
]


@pytest.mark.parametrize(("name", "points"), SMOOTH)
def test_gradients(name, points):
    function = getattr(torch, name)
    assert gradient(function, points) == pytest.approx(numeric_gradient(function, points), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(("name", "points"), SMOOTH)
def test_second_derivatives(name, points):
    function = getattr(torch, name)

    def slope(x):
        x.requires_grad_()
        return torch.autograd.grad(function(x).sum(), x)[0]

    try:
        second = gradient(function, points, 2)
    except RuntimeError:
        second = numpy.zeros(len(points))  # the derivative is constant, so skip the second derivative
    assert second == pytest.approx(numeric_gradient(slope, points), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "sign", "sgn"])
def test_steps_have_no_slope(name):
    assert gradient(getattr(torch, name), ANYWHERE).tolist() == [0] * len(ANYWHERE)


@pytest.mark.parametrize(
    ("name", "point", "slope"),
    [
        ("abs", 0.0, 0),
        ("sqrt", 0.0, INF),
        ("log", 0.0, INF),
        ("sinc", 0.0, 0),
        ("sgn", 0.0, 0),
        ("abs", -0.0, 0),
        ("reciprocal", 0.0, -INF),
    ],
)
def test_slopes_at_edge_points(name, point, slope):
    assert gradient(getattr(torch, name), [point]).tolist() == [slope]


def test_values_at_edge_points():
    x = torch.tensor([-INF, -1.5, -0.0, 0.0, 0.5, INF, NAN])
    cases = {
        "sign": [-1, -1, 0, 0, 1, 1, 0],
        "round": [-INF, -2, 0, 0, 0, INF, NAN],
        "trunc": [-INF, -1, 0, 0, 0, INF, NAN],
        "frac": [NAN, -0.5, 0, 0, 0.5, NAN, NAN],
        "isposinf": [False] * 5 + [True, False],
        "isneginf": [True] + [False] * 6,
        "isfinite": [False, True, True, True, True, False, False],
        "signbit": [True, True, True, False, False, False, False],
        "nan_to_num": [torch.finfo(torch.float32).min, -1.5, 0, 0, 0.5, torch.finfo(torch.float32).max, 0],
    }
    for name, expected in cases.items():
        result = getattr(torch, name)(x)
        numpy.testing.assert_array_equal(result.numpy(), numpy.array(expected, result.numpy().dtype), name)
    numpy.testing.assert_array_equal(torch.angle(x).numpy(), numpy.array([math.pi] * 2 + [0] * 4 + [NAN], "f"))


@given(st.floats(-700, 700))
def test_sigmoid_is_symmetric(value):
    x = torch.tensor(value, dtype=torch.float64)
    assert (torch.sigmoid(x) + torch.sigmoid(-x)).item() == pytest.approx(1)
    assert (
        torch.sigmoid(x).logit().item() == pytest.approx(value, abs=1e-3) or abs(value) > 25
    )  # 1 - sigmoid has few correct digits


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_logarithms_turn_products_into_sums(a, b):
    x, y = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    assert (x * y).log().item() == pytest.approx((x.log() + y.log()).item(), abs=1e-12)
    assert x.log2().exp2().item() == pytest.approx(a)
    assert (x.lgamma() + x.log()).item() == pytest.approx((x + 1).lgamma().item(), abs=1e-9)


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_functions_of_complex_numbers_have_the_derivative_of_the_real_one(real, imag):
    z = torch.tensor(complex(real, imag), dtype=torch.complex128, requires_grad=True)
    for name in ("exp", "sin", "cosh", "tanh", "sigmoid"):
        y = getattr(torch, name)(z)
        if not torch.isfinite(y).item() or abs(y.item()) > 1e6:
            continue
        (grad,) = torch.autograd.grad(torch.real(y), z)
        step = 1e-6
        with torch.no_grad():
            along = [
                (getattr(torch, name)(z + d * step) - getattr(torch, name)(z - d * step)) / (2 * step) for d in (1, 1j)
            ]
        expected = complex(along[0].item().real, along[1].item().real)
        assert grad.item() == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_integers_become_floats():
    for name in ("exp", "sqrt", "sigmoid", "angle", "erf", "lgamma"):
        assert getattr(torch, name)(torch.tensor([1, 2])).dtype is torch.float32
    for name in ("floor", "round", "abs", "sign", "neg", "square"):
        assert getattr(torch, name)(torch.tensor([1, 2])).dtype is torch.int64
    assert torch.abs(torch.tensor([3 + 4j])).tolist() == [5]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_types_are_rounded_once(name):
    half = getattr(torch, name)
    x = torch.linspace(-3, 3, 50).to(half)
    for function in (torch.sigmoid, torch.sinc, torch.deg2rad, torch.tanh, torch.erf):
        expected = function(x.float()).to(half)
        assert torch.equal(function(x), expected)


def test_large_arrays_agree_with_small_ones():
    x = torch.linspace(-4, 4, 100_001)
    for function in (torch.sigmoid, torch.erf, torch.sinc, torch.nn.functional.gelu, torch.nn.functional.elu):
        whole = function(x)
        parts = torch.cat([function(part) for part in x.split(1000)])
        assert torch.allclose(whole, parts, atol=1e-6)
        assert torch.allclose(function(x[::2]), whole[::2], atol=1e-6)


@pytest.mark.parametrize("size", [100, 5000, 20_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials_have_the_same_bits_by_every_path(name, dtype, size):
    special = numpy.array([INF, -INF, NAN, 0.0, -0.0, 1e30, -1e30, 1.0, 88.0, -104.0])
    x, y = (torch.tensor(numpy.resize(each, size), dtype=dtype) for each in numpy.meshgrid(special, special))
    function = getattr(torch, name)
    with numpy.errstate(all="ignore"):
        expected = getattr(numpy, name)(x.double().numpy(), y.double().numpy())
    found = function(x, y)
    numpy.testing.assert_allclose(found.numpy(), expected.astype(found.numpy().dtype), rtol=1e-6)
    others = function(x, y, out=torch.empty_like(x)), function(x.clone().requires_grad_(), y).detach()
    for other in others:
        assert other.numpy().tobytes() == found.numpy().tobytes()


def test_in_place():
    x = torch.tensor([0.25, 4.0])
    assert x.sqrt_() is x
    assert x.tolist() == [0.5, 2]
    assert x._version == 1
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.tensor([1]).exp_()
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        torch.tensor([1j]).abs_()


def test_gradient_through_in_place():
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    y = x * 1
    y.exp_()
    y.sum().backward()
    assert x.grad.numpy() == pytest.approx(numpy.exp([0.5, 2.0]))


def test_round_to_decimals():
    x = torch.tensor([1.2345, -0.055, 1234.5], dtype=torch.float64)
    assert torch.round(x, decimals=2).tolist() == pytest.approx([1.23, -0.06, 1234.5])
    assert torch.round(x, decimals=-2).tolist() == [0, 0, 1200]
    assert torch.round(torch.tensor([0.5, 1.5, 2.5, -0.5])).tolist() == [0, 2, 2, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: torch.erf(torch.tensor([1j])),
            NotImplementedError,
            "\"erf_vml_cpu\" not implemented for 'ComplexFloat'",
        ),
        (
            lambda: torch.floor(torch.tensor([True])),
            NotImplementedError,
            "\"floor_vml_cpu\" not implemented for 'Bool'",
        ),
        (lambda: -torch.tensor([True]), RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported"),
        (lambda: torch.sign(torch.tensor([1j])), NotImplementedError, "Unlike NumPy, torch.sign is not intended"),
        (lambda: torch.polygamma(-1, torch.ones(1)), RuntimeError, r"polygamma\(n, x\) does not support negative n"),
        (lambda: torch.exp("a"), TypeError, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not str"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.filterwarnings("error")
def test_no_warning_escapes():
    x = torch.tensor([0.0, -1.0, INF, NAN, 1e30], requires_grad=True)
    for name in ("log", "sqrt", "exp", "reciprocal", "sigmoid", "sinc", "logit", "rsqrt", "acosh"):
        getattr(torch, name)(x).sum().backward()
    assert math.isnan(x.grad[3].item())


def test_magnitudes_of_complex_numbers_are_written_to_real_dtypes():
    z = torch.tensor([3 + 4j, 1j])
    for dtype in (torch.float32, torch.float64, torch.float16, torch.complex64):
        out = torch.empty(2, dtype=dtype)
        assert torch.abs(z, out=out) is out and out.tolist() == [5.0, 1.0]
    with pytest.raises(RuntimeError, match="Found dtype ComplexDouble but expected ComplexFloat"):
        torch.abs(z, out=torch.empty(2, dtype=torch.complex128))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.abs(torch.ones(2), out=torch.empty(2, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions_write_over_tensors_of_any_shape(shape, dtype):
    for (
        name
    ) in "rsqrt sigmoid logit relu round floor exp log sin tanh erf reciprocal square neg abs lgamma digamma".split():
        x = torch.full(shape, 0.75, dtype=dtype)
        expected = getattr(x, name)()
        out = torch.zeros(shape, dtype=dtype)
        assert getattr(x, f"{name}_")() is x and torch.equal(x, expected)
        if name != "relu":
            assert getattr(torch, name)(torch.full(shape, 0.75, dtype=dtype), out=out) is out and torch.equal(
                out, expected
            )

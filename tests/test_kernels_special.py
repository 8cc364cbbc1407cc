import math

import ml_dtypes
import numpy
import pytest

from adjoint.kernels.math import bessel, special

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
EVERY = ["erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "log_ndtr", "lgamma", "digamma", "i0"]


@pytest.fixture(autouse=True)
def quiet():
    with numpy.errstate(all="ignore"):
        yield


def many(low, high):
    """More points than are computed one by one, in the middle of them zero-dimensional and odd-shaped ones."""
    return numpy.linspace(low, high, 4001)


def exact(function, x):
    return numpy.array([function(v) for v in x.tolist()])


@pytest.mark.parametrize(
    ("name", "low", "high"), [("erf", -7, 7), ("erfc", -7, 26), ("lgamma", 1e-3, 60), ("lgamma", 1e6, 1e12)]
)
def test_against_the_math_module(name, low, high):
    x = many(low, high)
    expected = exact(getattr(math, name), x)
    for part in (x, x[::16]):
        result = getattr(special, name)(part)
        reference = expected if len(part) == len(x) else expected[::16]
        numpy.testing.assert_allclose(result, reference, rtol=4e-15, atol=2e-15 if name == "lgamma" else 1e-300)
    single = getattr(special, name)(x.astype("f4"))
    wide = exact(getattr(math, name), x.astype("f4").astype("f8"))
    numpy.testing.assert_allclose(single, wide, rtol=4e-7, atol=1e-37)


def test_lgamma_near_its_zeros_and_left_of_them():
    offsets = numpy.logspace(-12, -2.5, 600)
    zetas = [math.pi**2 / 6, 1.2020569031595943, math.pi**4 / 90, 1.03692775514337, math.pi**6 / 945]

    def series(z):
        return -0.57721566490153286 * z + sum(c * (-z) ** k / k for k, c in enumerate(zetas, 2))

    for x in (1 + offsets, 1 - offsets):
        numpy.testing.assert_allclose(special.lgamma(x), series(x - 1), rtol=1e-14)
        beyond = 1 + x
        z = beyond - 2
        numpy.testing.assert_allclose(special.lgamma(beyond), series(z) + numpy.log1p(z), rtol=1e-14)
    x = many(-9.95031, -0.05)
    numpy.testing.assert_allclose(special.lgamma(x), exact(math.lgamma, x), rtol=1e-13, atol=1e-14)
    assert special.lgamma(numpy.array([0.0, -1.0, -2.0, math.inf, -math.inf])).tolist() == [math.inf] * 5
    below = -numpy.array([5e-324, 1.5e-323, 1e-310, 1e-300, 1e-201, 1e-199])
    numpy.testing.assert_allclose(special.lgamma(below), -numpy.log(-below), rtol=1e-15)


@pytest.mark.parametrize("low", [0.05, -8.0307])
def test_polygammas_obey_their_recurrence(low):
    x = many(low, low + 8)
    for n in range(5):
        step = math.factorial(n) * (-1.0) ** n / x ** (n + 1)
        here = special.polygamma(n, x)
        scale = numpy.abs(here) + numpy.abs(step)
        assert (numpy.abs(special.polygamma(n, x + 1) - here - step) <= 1e-12 * scale).all()


def test_known_values():
    gamma = 0.57721566490153286
    digamma = special.digamma(numpy.array([1.0, 0.5, 2.0, 10.0, 1e10]))
    harmonic = sum(1 / k for k in range(1, 10))
    expected = [-gamma, -gamma - 2 * math.log(2), 1 - gamma, harmonic - gamma, math.log(1e10) - 5e-11]
    numpy.testing.assert_allclose(digamma, expected, rtol=1e-14)
    assert special.polygamma(1, numpy.array(1.0)) == pytest.approx(math.pi**2 / 6, rel=1e-15)
    assert special.polygamma(1, numpy.array(0.5)) == pytest.approx(math.pi**2 / 2, rel=1e-15)
    assert special.polygamma(3, numpy.array(1.0)) == pytest.approx(math.pi**4 / 15, rel=1e-15)
    assert special.zeta(numpy.array(2.0), numpy.array(1.0)) == pytest.approx(math.pi**2 / 6, rel=1e-15)
    assert special.digamma(numpy.array([0.0, -0.0])).tolist() == [-math.inf, math.inf]
    assert numpy.isnan(special.digamma(numpy.array([-1.0, -math.inf]))).all()
    with pytest.raises(RuntimeError, match=r"polygamma\(n, x\) does not support negative n."):
        special.polygamma(-1, numpy.ones(1))


def test_inverses():
    y = numpy.concatenate([many(-0.999, 0.999), numpy.logspace(-300, -1, 300)])
    numpy.testing.assert_allclose(special.erf(special.erfinv(y)), y, rtol=2e-15)
    tail = 1 - numpy.logspace(-14, -1, 600)
    numpy.testing.assert_allclose(special.erfc(special.erfinv(tail)), 1 - tail, rtol=1e-13)
    p = numpy.concatenate([many(1e-4, 1 - 1e-4), numpy.logspace(-250, -5, 300)])
    numpy.testing.assert_allclose(special.ndtr(special.ndtri(p)), p, rtol=1e-12)
    assert special.erfinv(numpy.array([1.0, -1.0, 0.0])).tolist() == [math.inf, -math.inf, 0]
    assert numpy.isnan(special.erfinv(numpy.array([1.5, math.nan]))).all()
    assert special.ndtri(numpy.array([0.0, 1.0])).tolist() == [-math.inf, math.inf]


def test_tails_keep_their_precision():
    x = many(-30, 8)
    numpy.testing.assert_allclose(numpy.exp(special.log_ndtr(x)), special.ndtr(x), rtol=1e-12)
    assert special.log_ndtr(numpy.array(-1e8)) == pytest.approx(-0.5e16, rel=1e-12)
    # Mills' ratio for large x: erfcx(x) sqrt(pi) x tends to 1 - 1 / (2 x ** 2)
    far = numpy.logspace(3, 8, 50)
    numpy.testing.assert_allclose(special.erfcx(far) * math.sqrt(math.pi) * far, 1 - 0.5 / far**2, rtol=1e-11)
    near = many(-5, 5)
    numpy.testing.assert_allclose(special.erfcx(near), numpy.exp(near**2) * special.erfc(near), rtol=1e-13)


def test_bessel_function_is_its_integral():
    angle = (numpy.arange(400) + 0.5) * math.pi / 400
    x = numpy.linspace(-30, 30, 61)
    integral = numpy.exp(x[:, None] * numpy.cos(angle)).mean(1)
    numpy.testing.assert_allclose(bessel.i0(x), integral, rtol=1e-13)


def test_products_with_logarithms():
    x, y = numpy.array([0.0, 0.0, 0.0, 2.0, 2.0]), numpy.array([0.0, math.inf, math.nan, 0.0, math.e])
    result = special.xlogy(x, y)
    assert numpy.isnan(result[2])
    numpy.testing.assert_allclose(numpy.delete(result, 2), [0, 0, -math.inf, 2])
    assert special.xlog1py(x, y - 1)[0] == 0


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4", "f8"], ids=str)
def test_types_and_shapes(name, dtype):
    function = getattr(special, name, None) or getattr(bessel, name)
    x = numpy.linspace(0.1, 0.9, 6).astype(dtype)
    if name in ("erfcx", "ndtri", "log_ndtr") and x.itemsize == 2:
        with pytest.raises(NotImplementedError, match=r"not implemented for '(Half|BFloat16)'"):
            function(x)
        return
    whole = function(x)
    for shape in ((2, 3), (6, 1), (1, 6, 1)):
        result = function(x.reshape(shape))
        assert type(result) is numpy.ndarray
        assert result.dtype == dtype
        numpy.testing.assert_array_equal(result.reshape(-1), whole)
    single = function(x[3].reshape(()))
    assert type(single) is numpy.ndarray
    assert single.shape == ()
    numpy.testing.assert_allclose(single.astype("f8"), whole[3].astype("f8"), rtol=3e-7)
    assert function(x[:0]).shape == (0,)
    assert numpy.isnan(function(numpy.array([math.nan], dtype)).astype("f8")).all()
    numpy.testing.assert_allclose(
        function(numpy.tile(x.reshape(2, 3).T, (300, 1)).T)[:, :3].astype("f8"), whole.reshape(2, 3).astype("f8"),
        rtol={"f8": 1e-14, "f4": 2e-7}.get(dtype, 0),
    )  # fmt: skip


def test_large_arrays_are_computed_in_tiles():
    x = numpy.random.default_rng(0).standard_normal((300, 400)).astype("f4")
    for name in ("erf", "erfc", "ndtr"):
        whole = getattr(special, name)(x)
        rows = numpy.stack([getattr(special, name)(row) for row in x])
        numpy.testing.assert_allclose(whole, rows, rtol=3e-7)


def test_integers_are_refused():
    with pytest.raises(NotImplementedError, match="\"erf_vml_cpu\" not implemented for 'Long'"):
        special.erf(numpy.array([1, 2]))

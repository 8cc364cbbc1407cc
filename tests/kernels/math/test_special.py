import math

import ml_dtypes
import numpy
import pytest

from adjoint.codegen.acceleration import LOOPS
from adjoint.kernels.math import arithmetic, incomplete, special

BFLOAT16 = numpy.dtype(ml_dtypes.bfloat16)
EVERY = ["erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "log_ndtr", "lgamma", "digamma", "i0"]


@pytest.fixture(autouse=True)
def quiet():
    with numpy.errstate(all="ignore"):
        yield


def many(low, high):
    """Return so many points that compiled loops compute functions of the points."""
    return numpy.linspace(low, high, 4001)


def exact(function, x):
    return numpy.array([function(v) for v in x.tolist()])


@pytest.mark.parametrize(
    ("name", "low", "high"), [("erf", -7, 7), ("erfc", -7, 26), ("lgamma", 1e-3, 60), ("lgamma", 1e6, 1e12)]
)
@pytest.mark.long_cases
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


@pytest.mark.parametrize("order", [9.5, 20.0, 41.0, 150.0])
def test_zeta_is_its_sum(order, by_loops):
    """At these orders, a sum of some thousand powers has full precision."""
    q = numpy.concatenate([numpy.linspace(0.25, 30, 80), [-0.5, -2.75] if order % 1 == 0 else []])
    expected = [math.fsum((each + k) ** -order for k in range(2000)) for each in q.tolist()]
    numpy.testing.assert_allclose(special.zeta(numpy.full_like(q, order), q), expected, rtol=2e-14)
    assert not LOOPS.failures


@pytest.mark.parametrize("order", [2, 3, 25, 40])
def test_polygamma_is_a_multiple_of_zeta(order, by_loops):
    x = numpy.arange(1, 121) / 4
    expected = math.factorial(order) * (-1) ** (order + 1) * special.zeta(numpy.full_like(x, order + 1), x)
    numpy.testing.assert_allclose(special.polygamma(order, x), expected, rtol=1e-14)
    single = special.polygamma(order, x.astype("f4"))
    fits = (abs(expected) < 1e38) & (abs(expected) > 1e-37)
    numpy.testing.assert_allclose(single[fits], expected[fits], rtol=3e-7)
    assert not LOOPS.failures


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
    numpy.testing.assert_allclose(special.i0(x), integral, rtol=1e-13)


PLACES = {"airy_ai": (-40, -5.5, -3, 0.25, 1.5, 6)}
BESSEL = {  # computed by mpmath with 30 digits
    "bessel_j0": (0.9844359292958527, 0.5118276717359181, -0.32054250898512143, 0.22523406912010668, 0.00736689058423729),
    "bessel_j1": (0.12402597732272692, 0.5579365079100996, -0.23106043192337064, 0.1916025921891178, 0.126038318037585),
    "bessel_y0": (-0.9315730249300587, 0.38244892379775886, -0.19470500862950454, 0.17676987751364717, 0.12593641705826092),
    "bessel_y1": (-2.7041052293152825, -0.4123086269739113, 0.3009973230696546, -0.21433222865940804, -0.005793505821549633),
    "modified_bessel_k0": (
        1.5415067512483027, 0.21380556264752573, 0.006399857243233975, 0.00019099545486702074, 8.392861100099567e-19
    ),
    "scaled_modified_bessel_k1": (
        4.811276588171025, 1.243165873552553, 0.6371497987781355, 0.4711940069873715, 0.20000996725443349
    ),
    "i0": (1.015686141223608, 1.646723189772891, 17.481171855609276, 338.5137537472759, 1.48947747934199e16),
    "i1e": (0.09811262869736824, 0.21903938742092569, 0.17095882229749212, 0.1360511000803391, 0.062482229074442064),
    "airy_ai": (
        -0.04593392343795725, 0.017781541276574976, -0.37881429367765806, 0.2911639543485452, 0.07174949700810541,
        9.947694360252889e-06,
    ),
}  # fmt: skip


@pytest.fixture(params=[False, True], ids=["arrays", "loops"])
def by_loops(request, monkeypatch):
    if request.param and not LOOPS.available:
        pytest.skip("compiled kernels need the extra `fast`")
    monkeypatch.setattr(LOOPS, "every_size", request.param)
    monkeypatch.setattr(LOOPS, "_enabled", request.param)


def every_way(function, *arrays):
    """Call a function with large arrays, so that compiled loops compute it if they are enabled."""
    size = arrays[0].size
    return function(*[numpy.tile(item, 1 + (1 << 14) // size) for item in arrays])[:size]


@pytest.mark.parametrize("name", BESSEL)
@pytest.mark.long_cases
def test_bessel_functions_have_their_known_values(name, by_loops):
    x = numpy.array(PLACES.get(name, (0.25, 1.5, 4.5, 7.75, 40)))
    expected = numpy.array(BESSEL[name])
    found = every_way(getattr(special, name), x)
    near_zeros = name.startswith("bessel") | ((x < 0) & (name == "airy_ai"))
    assert (abs(found - expected) <= 6e-15 * abs(expected) + 2e-15 * near_zeros).all()
    single = every_way(getattr(special, name), x.astype("f4"))
    assert single.dtype == numpy.float32
    numpy.testing.assert_array_equal(single, expected.astype("f4"))


def test_bessel_functions_at_the_edges(by_loops):
    x = numpy.array([0.0, -0.0, -1.0, math.inf, -math.inf, math.nan])
    for name, expected in {
        "bessel_j0": [1, 1, 0.7651976865579666, math.nan, math.nan, math.nan],
        "bessel_y1": [-math.inf, -math.inf, math.nan, math.nan, math.nan, math.nan],
        "modified_bessel_k0": [math.inf, math.inf, math.nan, 0, math.nan, math.nan],
        "modified_bessel_i0": [1, 1, 1.2660658777520084, math.nan, math.nan, math.nan],
        "i1e": [0, 0, -0.2079104153497085, 0, 0, math.nan],
        "airy_ai": [0.3550280538878172, 0.3550280538878172, 0.5355608832923521, math.nan, math.nan, math.nan],
    }.items():
        numpy.testing.assert_allclose(every_way(getattr(special, name), x), expected, rtol=1e-15, err_msg=name)
    assert numpy.signbit(every_way(special.i1e, x)).tolist()[:2] == [False, True]


@pytest.mark.thorough
def test_incomplete_gamma_functions_have_their_known_values(by_loops):
    a = numpy.array([0.125, 0.125, 2.5, 2.5, 30, 400, 700, 5000])
    x = numpy.array([0.25, 3, 2, 2.75, 33, 395, 690, 5100])
    lower = [0.8696646545502864, 0.9979569603486667, 0.4505840486472198, 0.6420541191490415]  # computed by mpmath
    lower += [0.7226986290685928, 0.40735111050738554, 0.35674791982937454, 0.9206711189223811]
    upper = [0.13033534544971365, 0.0020430396513333184, 0.5494159513527802, 0.35794588085095846]
    upper += [0.27730137093140717, 0.5926488894926145, 0.6432520801706254, 0.07932888107761897]
    rtol = numpy.where(a > 100, 2e-13, 2e-14)
    assert (abs(every_way(incomplete.igamma, a, x) - lower) <= rtol * lower).all()
    assert (abs(every_way(incomplete.igammac, a, x) - upper) <= rtol * upper).all()
    single = every_way(incomplete.igamma, a.astype("f4"), x.astype("f4"))
    numpy.testing.assert_allclose(single, lower, rtol=3e-7)


def test_incomplete_gamma_functions_at_the_edges(by_loops):
    inf, nan = math.inf, math.nan
    a = numpy.array([1.0, 0, 0, inf, inf, 2, -1, nan, 1e16, 1e300, 1e-300])
    x = numpy.array([0.0, 1, 0, 1, inf, inf, 1, 1, 1e16, 1e299, 1e-10])
    lower = every_way(incomplete.igamma, a, x)
    numpy.testing.assert_allclose(lower, [0, 1, nan, 0, nan, 1, nan, nan, 0.5, 0, 1], atol=1e-8)
    upper = every_way(incomplete.igammac, a, x)
    numpy.testing.assert_allclose(upper, [1, 0, nan, 1, nan, 0, nan, nan, 0.5, 1, 0], atol=1e-8)
    assert (upper[~numpy.isnan(upper)] >= 0).all()


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u4"])
@pytest.mark.long_cases
def test_divisors_and_multiples_are_those_of_python(dtype, by_loops):
    limits = numpy.iinfo(dtype)
    random = numpy.random.default_rng(1)
    edges = (
        [0, 0, limits.max, limits.max, limits.min + 1, 6, 1],
        [0, 5, limits.max, limits.max - 1, 3, 4, limits.min + 1],
    )
    x, y = (
        numpy.concatenate(
            [numpy.array(edge, dtype), *[random.integers(0, top, 500).astype(dtype) for top in (100, limits.max)]]
        )
        for edge in edges
    )
    divisors = [math.gcd(*pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
    assert every_way(arithmetic.gcd, x, y).tolist() == divisors
    multiples = [math.lcm(*pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
    fitting = numpy.array([value <= limits.max for value in multiples])
    found = every_way(arithmetic.lcm, x, y)
    assert found[fitting].tolist() == [value for value, fits in zip(multiples, fitting, strict=True) if fits]
    if dtype[0] == "i":
        smallest = numpy.array([limits.min, limits.min, limits.min], dtype)
        others = numpy.array([0, limits.min, 12], dtype)
        assert every_way(arithmetic.gcd, smallest, others).tolist() == [limits.min, limits.min, 4]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_of_two_scale_with_one_rounding(dtype, by_loops):
    x = numpy.array([1.1, -0.0, math.inf, math.nan, 5e-324, 1.7e308, -3.3, 0.7], dtype)
    for exponent in (0, 3, -140, -1060, 200, 2000, 1 << 62, -(1 << 62)):
        exponents = numpy.full(x.size, exponent)
        found = every_way(arithmetic.ldexp, x, exponents)
        assert found.dtype == dtype
        numpy.testing.assert_array_equal(found, numpy.ldexp(x, exponents))
        assert (numpy.signbit(found) == numpy.signbit(x)).all()


def test_products_with_logarithms():
    x, y = numpy.array([0.0, 0.0, 0.0, 2.0, 2.0]), numpy.array([0.0, math.inf, math.nan, 0.0, math.e])
    result = special.xlogy(x, y)
    assert numpy.isnan(result[2])
    numpy.testing.assert_allclose(numpy.delete(result, 2), [0, 0, -math.inf, 2])
    assert special.xlog1py(x, y - 1)[0] == 0


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4", "f8"], ids=str)
def test_types_and_shapes(name, dtype):
    function = getattr(special, name)
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

"""Elementary functions of compiled kernels: errors in units of the last place, special values, arguments of any size."""

from __future__ import annotations

import math

import numpy
import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

from adjoint.codegen import elementary
from adjoint.codegen.llvm import elementary_bessel, elementary_polynomials
from adjoint.codegen.llvm.expressions import FUNCTIONS
from adjoint.codegen.llvm.host import HOST
from adjoint.codegen.llvm.language import Int, Pointer, Static, T, address, f32, f64, load, loops, store
from adjoint.kernels.math import special as _special  # this import and the next import declare the functions  # noqa: F401
from adjoint.operators.math import special_families as _special_families  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of overflow and nan

SPECIAL = [
    0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 5e-324, -5e-324, 1e-45,
    1e-40, 2.2250738585072014e-308, 1e-20, -1e-20, 3.4e38, 1.7976931348623157e308, -1.7976931348623157e308,
]  # fmt: skip


@loops(noalias=False, explicit=True)
def of_one(out: Pointer[T], x: Pointer[T], n: Int, W: Static, F: Static) -> None:
    i = 0
    while i < n:
        store(out + i, F(load(x + i, W)))
        i += W


@loops(noalias=False, explicit=True)
def of_two(out: Pointer[T], x: Pointer[T], y: Pointer[T], n: Int, W: Static, F: Static) -> None:
    i = 0
    while i < n:
        store(out + i, F(load(x + i, W), load(y + i, W)))
        i += W


def computed(name, *arrays):
    """Return a function that pads its arguments to a multiple of the widest vector."""
    width = HOST.vector_bytes // arrays[0].itemsize
    assert arrays[0].size % width == 0
    out = numpy.empty_like(arrays[0])
    kernel = of_one if len(arrays) == 1 else of_two
    function = kernel.compiled(T=f32 if arrays[0].itemsize == 4 else f64, W=width, F=FUNCTIONS[name])
    function(address(out), *map(address, arrays), out.size)
    return out


def ulps(found, exact):
    """Return errors in units of the last place, or inf if only one of two values is NaN or infinite."""
    info = numpy.finfo(found.dtype)
    rounded = exact.astype(found.dtype)
    exponent = numpy.frexp(numpy.abs(exact))[1]
    unit = numpy.ldexp(numpy.ones_like(exact), numpy.maximum(exponent - info.nmant - 1, info.minexp - info.nmant))
    error = numpy.abs(found.astype(exact.dtype) - exact) / unit
    same = (found == rounded) | (numpy.isnan(found) & numpy.isnan(rounded))
    edge = numpy.isinf(found) ^ numpy.isinf(rounded)
    error = numpy.where(edge & (numpy.abs(exact) > float(info.max) * (1 - 1e-6)), 1, error)
    return numpy.nan_to_num(numpy.where(same, 0, error), nan=math.inf)


def exact_erf(x):
    return numpy.array([math.erf(item) for item in x.tolist()])


def exact_erfc(x):
    return numpy.array([math.erfc(item) for item in x.tolist()])


NUMPY = {name: getattr(numpy, name) for name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt".split()
)}  # fmt: skip

DOUBLE_BOUNDS = {"tan": 2.5, "arccosh": 3.0}
"""Where it is not 2."""


@pytest.mark.parametrize("name", [*NUMPY, "erf", "erfc"])
def test_errors_in_float32_are_below_two_units_over_all_magnitudes(name):
    x = numpy.arange(0, 1 << 32, 32771, dtype=numpy.uint64).astype(numpy.uint32).view(numpy.float32)
    x = x[: x.size // 16 * 16]
    with numpy.errstate(all="ignore"):
        exact = {"erf": exact_erf, "erfc": exact_erfc}.get(name, NUMPY.get(name))(x.astype(numpy.float64))
        worst = ulps(computed(name, x), exact)
    assert worst.max() <= 2, (x[worst.argmax()], worst.max())


@pytest.mark.parametrize("name", NUMPY)
def test_errors_in_float64_are_about_two_units(name):
    random = numpy.random.default_rng(5)
    n = 1 << 14
    parts = [
        random.integers(0, 1 << 64, n, dtype=numpy.uint64).view(numpy.float64),
        random.standard_normal(n) * 10.0 ** random.uniform(-3, 3, n),
        random.uniform(-2, 2, n),
        random.uniform(-750, 750, n),
        1 + random.uniform(-1e-3, 1e-3, n),
    ]
    x = numpy.concatenate(parts)
    if name in ("sin", "cos", "tan"):  # another test covers larger arguments
        x = numpy.where(numpy.abs(x) > 1e4, numpy.fmod(x, 1e4), x)
    with numpy.errstate(all="ignore"):
        exact = NUMPY[name](x.astype(numpy.longdouble))
        worst = ulps(computed(name, x), exact)
    assert worst.max() <= DOUBLE_BOUNDS.get(name, 2), (x[worst.argmax()], worst.max())


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_of_float64_agree_with_the_c_library(name):
    x = numpy.concatenate([numpy.linspace(-6, 6, 8000), numpy.linspace(6, 26, 800)])
    exact = {"erf": exact_erf, "erfc": exact_erfc}[name](x)
    numpy.testing.assert_allclose(computed(name, x), exact, rtol=8e-16, atol=0)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "ndtri", "erfinv"])
@pytest.mark.long_cases
def test_special_functions_agree_with_those_of_numpys_arrays(name):
    random = numpy.random.default_rng(6)
    special = numpy.array(
        [0.0, -0.0, math.inf, -math.inf, math.nan, 1, 2, -1, -2, -0.5, 0.5, -5e-324, 1e308, -1e308, 6.5, -1e-300]
    )
    x = numpy.concatenate(
        [special, random.uniform(-1, 1, 4096), random.uniform(-30, 30, 4096), 10.0 ** random.uniform(-300, 300, 4096)]
    )
    with numpy.errstate(all="ignore"):
        expected = elementary.FUNCTIONS[name](x)
        numpy.testing.assert_allclose(computed(name, x), expected, rtol=3e-13, atol=3e-14)
        single = x.astype("f4")
        numpy.testing.assert_allclose(computed(name, single), elementary.FUNCTIONS[name](single), rtol=2e-7)


@pytest.mark.parametrize("name", elementary_bessel.FUNCTIONS)
def test_bessel_functions_agree_with_the_same_source_on_arrays(name):
    random = numpy.random.default_rng(7)
    parts = [random.uniform(-9, 9, 4096), random.uniform(-700, 700, 512), 10.0 ** random.uniform(-300, 30, 488)]
    x = numpy.concatenate([SPECIAL[:19], [0.0] * 5, *parts])
    with numpy.errstate(all="ignore"):
        expected = elementary.FUNCTIONS[name](x)
        numpy.testing.assert_allclose(computed(name, x), expected, rtol=2e-13, atol=1e-14)
        single = x.astype("f4")
        numpy.testing.assert_allclose(computed(name, single), elementary.FUNCTIONS[name](single), rtol=2e-7, atol=1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", elementary_polynomials.FUNCTIONS)
def test_polynomials_agree_with_the_same_source_on_arrays(name, dtype):
    degrees = [-1, -0.5, 0, 1, 1.7, 2, 3, 5, 8, 31, 128, 129, 513, math.nan, math.inf, 1e19]
    x, n = (
        item.ravel().astype(dtype)
        for item in numpy.meshgrid([*SPECIAL[:16], 0.1, 0.7, -0.9, 1.3, 1e30, 9, -4, 2], degrees)
    )
    with numpy.errstate(all="ignore"):
        found, expected = computed(name, x, n), elementary.FUNCTIONS[name](x, n)
    assert expected.dtype == dtype
    by_angle = (n >= 7) & (abs(x) < 1) & name.startswith("chebyshev")
    numpy.testing.assert_array_equal(found[~by_angle], expected[~by_angle])
    rounding = 4 * numpy.finfo(dtype).eps * abs(n[by_angle]) ** 2  # the sine of the angle divided by the sine of one
    assert (abs(found - expected)[by_angle] <= rounding).all()
    assert numpy.isnan(found).any()
    assert (found[n < -0.9] == 0).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", NUMPY)
def test_special_values_are_those_of_ieee(name, dtype):
    x = numpy.resize(numpy.array(SPECIAL), 64).astype(dtype)
    if name in ("sin", "cos", "tan"):
        x = numpy.where(numpy.abs(x) > 1e30, numpy.inf, x).astype(dtype)
    with numpy.errstate(all="ignore"):
        found, expected = computed(name, x), NUMPY[name](x.astype("f8")).astype(dtype)
    numpy.testing.assert_allclose(found, expected, rtol=1e-6)
    numbers = ~numpy.isnan(expected)
    assert (numpy.signbit(found) == numpy.signbit(expected))[numbers].all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["power", "arctan2", "hypot", "fmod"])
def test_special_values_of_two_arguments_are_those_of_ieee(name, dtype):
    x, y = (item.ravel() for item in numpy.meshgrid(SPECIAL, SPECIAL))
    size = x.size // 16 * 16
    x, y = x[:size].astype(dtype), y[:size].astype(dtype)
    with numpy.errstate(all="ignore"):
        found, expected = computed(name, x, y), getattr(numpy, name)(x, y)
    numpy.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-44)
    numbers = ~numpy.isnan(expected)
    assert (numpy.signbit(found) == numpy.signbit(expected))[numbers].all()


@pytest.mark.parametrize("name", ["exp", "exp2", "expm1", "sinh", "cosh"])
@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
def test_exponentials_are_infinite_from_where_they_overflow(name, dtype):
    largest = numpy.log(numpy.finfo(dtype).max) / (numpy.log(dtype(2)) if name == "exp2" else 1)
    x = numpy.linspace(largest + dtype(1), largest + dtype(4), 1024, dtype=dtype)
    numpy.testing.assert_array_equal(computed(name, x), numpy.inf)


@pytest.mark.parametrize(("dtype", "bound"), [("f4", 0.6), ("f8", 1.5)])
def test_powers_are_exact_to_a_unit(dtype, bound):
    random = numpy.random.default_rng(3)
    x = numpy.exp(random.uniform(-20, 20, 1 << 14)).astype(dtype)
    y = random.uniform(-30, 30, x.size).astype(dtype)
    wide = numpy.float64 if dtype == "f4" else numpy.longdouble
    with numpy.errstate(all="ignore"):
        worst = ulps(computed("power", x, y), numpy.power(x.astype(wide), y.astype(wide)))
    assert worst.max() <= max(bound, 1), (x[worst.argmax()], y[worst.argmax()])


def test_the_sine_of_large_numbers_is_reduced_with_all_bits_that_it_needs():
    # Reference values that were computed with 1300 bits of pi. The first argument is the float64 that is nearest to a multiple of
    # pi/2.
    x = numpy.resize(
        numpy.array([6381956970095103.0 * 2.0**797, 1e22, 1e300, -1e15, 2.0**1023, 355.0, 1e5, 12345678.9]), 64
    )
    known = {1e22: -0.8522008497671888, 1e300: -0.8178819121159085, 355.0: -3.014435335948845e-05}
    sine, cosine = computed("sin", x), computed("cos", x)
    numpy.testing.assert_allclose(sine**2 + cosine**2, 1, rtol=4e-16)
    for value, expected in known.items():
        assert abs(sine[list(x).index(value)] - expected) <= 2e-16 * abs(expected)
    assert abs(cosine[0]) == pytest.approx(4.6871659242546277e-19, rel=1e-15)


@pytest.mark.parametrize("vector_bytes", [16, 32])
def test_shorter_vectors_compute_the_same(vector_bytes, monkeypatch):
    x = numpy.linspace(-104, 89, 4096, dtype=numpy.float32)
    expected = {name: computed(name, x) for name in ("exp", "tanh", "sin", "erf")}
    monkeypatch.setattr(HOST, "vector_bytes", vector_bytes)
    for name, values in expected.items():
        found = computed(name, x)
        assert ulps(found, values.astype(numpy.float64)).max() <= 1

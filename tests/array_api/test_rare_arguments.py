"""Statements of the array API standard about special values, casts and `__dlpack__`."""

import inspect
import itertools

import numpy
import pytest

import adjoint as torch
from adjoint import array_api as xp

INF, NAN = float("inf"), float("nan")

# The special cases that the standard lists: the operands, the floored quotient and the remainder.
DIVISIONS = [
    (INF, 2.0, INF, NAN),
    (INF, -2.0, -INF, NAN),
    (-INF, 2.0, -INF, NAN),
    (-INF, -2.0, INF, NAN),
    (INF, INF, NAN, NAN),
    (1.0, INF, 0.0, 1.0),
    (-1.0, INF, -1.0, INF),
    (1.0, -INF, -1.0, -INF),
    (-1.0, -INF, 0.0, -1.0),
    (0.0, 2.0, 0.0, 0.0),
    (-0.0, 2.0, -0.0, 0.0),
    (0.0, -2.0, -0.0, -0.0),
    (-0.0, -2.0, 0.0, -0.0),
    (1.0, 0.0, INF, NAN),
    (1.0, -0.0, -INF, NAN),
    (0.0, 0.0, NAN, NAN),
    (4.0, -2.0, -2.0, -0.0),
    (-4.0, 2.0, -2.0, 0.0),
]


@pytest.mark.parametrize(("first", "second", "quotient", "rest"), DIVISIONS)
def test_special_cases_of_division(first, second, quotient, rest):
    operands = xp.asarray(first, dtype=xp.float64), xp.asarray(second, dtype=xp.float64)
    assert repr(xp.floor_divide(*operands).item()) == repr(quotient)
    assert repr(xp.remainder(*operands).item()) == repr(rest)


DTYPES = [
    getattr(xp, name) for names in ("bool", "numeric") for name in xp.__array_namespace_info__().dtypes(kind=names)
]


@pytest.mark.parametrize("first", DTYPES, ids=str)
def test_any_dtype_casts_or_not(first):
    """A dtype is promoted to dtypes of the same kind and of higher kinds."""
    order = ["bool", "integral", "real floating", "complex floating"]
    kind = next(place for place, name in enumerate(order) if xp.isdtype(first, name))
    for second in DTYPES:
        other = next(place for place, name in enumerate(order) if xp.isdtype(second, name))
        answer = xp.can_cast(first, second)
        if kind != other and {kind, other} != {2, 3}:
            assert answer is (kind < other)
        elif {kind, other} != {2, 3}:
            assert answer is numpy.can_cast(first.numpy, second.numpy)


def test_the_signature_of_dlpack():
    assert (
        list(inspect.signature(torch.Tensor.__dlpack__).parameters) == "self stream max_version dl_device copy".split()
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (complex(INF, 0), 1),
        (complex(-INF, 5), -1),
        (complex(0, INF), 1j),
        (complex(2, -INF), -1j),
        (complex(INF, -INF), complex(0.5**0.5, -(0.5**0.5))),
        (3 + 4j, 0.6 + 0.8j),
        (0j, 0),
    ],
)
def test_the_sign_of_a_complex_number_has_its_direction(number, expected):
    assert xp.sign(xp.asarray(number, dtype=xp.complex128)).item() == pytest.approx(expected)


@pytest.mark.parametrize("number", [complex(NAN, 0), complex(0, NAN), complex(INF, NAN), complex(NAN, -INF)])
def test_the_sign_of_nan_is_nan_in_both_parts(number):
    sign = xp.sign(xp.asarray(number, dtype=xp.complex64))
    assert xp.isnan(sign.real) and xp.isnan(sign.imag) and sign.dtype is xp.complex64


SETS = [xp.asarray([1, 5], dtype=xp.int64), xp.asarray([], dtype=xp.uint8), xp.asarray(5)]
ELEMENTS = [xp.asarray([[1, 2], [3, 5]], dtype=xp.int8), xp.asarray(5)]


@pytest.mark.parametrize(
    ("first", "second"), [*itertools.product(ELEMENTS, [*SETS, 2, 2.0]), *itertools.product([1, 5], SETS)]
)
def test_which_elements_are_among_others(first, second):
    expected = numpy.isin(numpy.asarray(first), numpy.asarray(second))
    assert xp.isin(first, second).tolist() == expected.tolist()
    assert xp.isin(first, second, invert=True).tolist() == (~expected).tolist()


@pytest.mark.parametrize("shapes", [(), ((),), ((2, 1), (3,)), ((0, 1), (1, 4), ()), ((5, 1, 3), (2, 1))])
def test_the_common_shape(shapes):
    assert xp.broadcast_shapes(*shapes) == numpy.broadcast_shapes(*shapes)


def test_shapes_without_a_common_shape_are_refused():
    with pytest.raises(ValueError, match="broadcast"):
        xp.broadcast_shapes((2,), (3,))


def test_a_new_axis_has_no_default_place():
    with pytest.raises(TypeError, match="axis"):
        xp.expand_dims(xp.ones(2))


@pytest.mark.parametrize("name", ["uint8", "uint64", "int64", "float32", "float64"])
def test_a_range_that_leads_away_is_empty_in_any_dtype(name):
    for bounds in ((1.0, 5.0, -1.0), (5, 1), (2, 2)):
        values = xp.arange(*bounds, dtype=getattr(xp, name))
        assert values.shape == (0,) and values.dtype is getattr(xp, name)


def test_differences_promote_what_is_joined():
    narrow, wide = xp.asarray([3, 1], dtype=xp.uint16), xp.asarray([70000], dtype=xp.uint32)
    found = xp.diff(wide, prepend=narrow, append=wide)
    assert found.dtype is xp.uint32 and found.tolist() == [2**32 - 2, 69999, 0]


SPECIAL = numpy.array([INF, -INF, numpy.nan, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -2.5, 3, 1e-310, 1.7e308])
UNARY = """
    abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p log2 logical_not
    negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
""".split()
BINARY = """
    add atan2 copysign divide equal greater hypot less_equal logaddexp logical_and logical_xor maximum minimum multiply nextafter
    pow remainder subtract
""".split()


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_special_values(name):
    """For these functions, NumPy follows the special cases of the standard."""
    operands = [SPECIAL] if name in UNARY else [each.copy() for each in numpy.meshgrid(SPECIAL, SPECIAL)]
    with numpy.errstate(all="ignore"):
        expected = getattr(numpy, name)(*operands)
    found = numpy.asarray(getattr(xp, name)(*map(xp.asarray, operands)))
    assert found.dtype == expected.dtype
    numpy.testing.assert_allclose(found, expected, 4e-15)
    if found.dtype.kind == "f":
        known = ~numpy.isnan(expected)
        assert (numpy.signbit(found) == numpy.signbit(expected))[known].all()

"""What the array API standard's text says of special values, of casts, and of `__dlpack__`."""

import inspect

import numpy
import pytest

import adjoint as torch
from adjoint import array_api as xp

INF, NAN = float("inf"), float("nan")

# The special cases of the standard's text: the operands, the floored quotient and the remainder.
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
    """Of different kinds, a dtype promotes to those of higher kinds and to no others."""
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

"""Named tuples and data classes among the arguments: a program reads the fields of the object of each call."""

import dataclasses
from collections import namedtuple
from typing import Any

import pytest

import adjoint as torch

from .comparison import assert_alike

Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass
class Batch:
    x: Any
    y: Any = None
    scale: float = 2.0


def computed(given):
    result = given.x * 3
    return result if given.y is None else result + given.y


def returned(given):
    return given, given.x * 2


def of_parts(given):
    return given.x.x + given.y[0].x * 2


def changed(given):
    given.x.add_(1)
    return given.x.sum()


def pairs(number):
    return Pair(torch.randn(3, requires_grad=number == 3), torch.randn(3))


CALLS = {
    "a named tuple": (computed, pairs, 2),
    "a named tuple that is returned": (returned, pairs, 2),
    "a named tuple in another": (of_parts, lambda number: Pair(pairs(0), [pairs(0)]), 3),
    "a named tuple whose tensor is changed": (changed, lambda number: pairs(0), 3),
    "a data class": (computed, lambda number: Batch(*pairs(0)), 2),
    "a data class that is returned": (returned, lambda number: Batch(torch.randn(3)), 2),
    "a data class in another": (of_parts, lambda number: Batch(Batch(torch.randn(3)), [Batch(torch.randn(3))]), 1),
    "fields that differ": (computed, lambda number: Batch(torch.randn(3), torch.randn(3) if number % 2 else None), 1),
}


@pytest.mark.parametrize("case", CALLS)
def test_fields_are_read_in_each_call(case):
    function, make, least = CALLS[case]
    compiled = torch.compile(function)
    for number in range(4):
        outcomes = []
        for each in (compiled, function):
            torch.manual_seed(number)
            given = make(number)
            result = each(given)
            if function is returned:
                assert result[0] is given
                result = result[1]
            outcomes.append((result, given.x if isinstance(given.x, torch.Tensor) else given.x.x))
        assert_alike(*outcomes)
    assert sum(each.calls for each in compiled.compiled.variants) >= least


def test_the_identity_of_an_argument_is_that_of_each_call():
    one = Batch(torch.ones(3))

    def function(given):
        return given.x * 2 if given is one else given.x

    compiled = torch.compile(function)
    for given in (Batch(torch.zeros(3)), Batch(torch.ones(3)), one, Batch(torch.ones(3))):
        assert_alike(compiled(given), function(given))


def test_fields_that_a_function_sets_belong_to_the_argument_of_each_call():
    def function(given):
        given.y = given.x * 2
        return given.y + 1

    compiled = torch.compile(function)
    for _ in range(4):
        x = torch.randn(3)
        one, other = Batch(x), Batch(x)
        assert_alike(compiled(one), function(other))
        assert_alike(one.y, other.y)

"""Gradients of one call of every operator within `vmap`.

The gradients are correct even if `vmap` applies the operator element by element.
"""

import re
from pathlib import Path

import pytest

import adjoint as torch
from adjoint.operators import OPERATORS

from .test_every_operator import DIFFERENTIABLE, as_list, is_sparse, of_tensors

FIRST = {case.values[0]: case for case in reversed(DIFFERENTIABLE)}

RANDOM = "vmap: called random operation while in randomness error mode"


@pytest.mark.parametrize("name", [name for name in FIRST if not is_sparse(OPERATORS[name])])
def test_gradients_within_vmap_are_those_of_one_call(name):
    call = FIRST[name].values[1]
    args, kwargs, tensors = call.build(call.complex_numbers == "only")
    function = of_tensors(name, call, args, kwargs)

    def total(*tensors):
        parts = [part for part in as_list(function(*tensors)) if part.is_floating_point() or part.is_complex()]
        return sum(part.abs().square().sum() if part.is_complex() else part.square().sum() for part in parts)

    places = tuple(range(len(tensors)))
    given = tuple(tensor.detach() for tensor in tensors)
    expected = torch.autograd.grad(total(*tensors), tensors, allow_unused=True)
    try:
        found = torch.vmap(torch.func.grad(total, places))(*(torch.stack([tensor, tensor]) for tensor in given))
    except RuntimeError as error:
        assert str(error).startswith(RANDOM), error  # noqa: PT017
        return
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one[1], torch.zeros_like(one[1]) if other is None else other)


# Functions that `vmap` applies element by element below the recording level, each with an example call.
WITHOUT_GRADIENTS = {
    "_repeated_positions": lambda x: torch.repeat_interleave(x.detach().long()),
    "view_dtype": lambda x: x.view(torch.int64),
    "linspace": lambda x: torch.linspace(x[0], x[1], 3),
    "logspace": lambda x: torch.logspace(x[0], x[1], 3),
    "isclose": lambda x: torch.isclose(x, x),
    "argwhere": torch.argwhere,
    "_in_one_dimension": lambda x: torch.histogram(x, 3).hist,
}


def test_only_functions_without_gradients_are_applied_one_element_after_another():
    found = set()
    for path in Path(torch.__file__).parent.rglob("*.py"):
        found |= set(re.findall(r"@sequential_fallback\n(?:@.*\n)*def (\w+)", path.read_text(encoding="utf-8")))
    assert found == set(WITHOUT_GRADIENTS)


@pytest.mark.parametrize("name", WITHOUT_GRADIENTS)
def test_what_is_applied_one_element_after_another_is_not_recorded(name):
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert not WITHOUT_GRADIENTS[name](x).requires_grad

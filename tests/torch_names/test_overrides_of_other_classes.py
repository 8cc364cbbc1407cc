"""Classes that do not derive from `Tensor` but define `__torch_function__` work without an import of `adjoint.overrides`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DUCKS = Path(__file__).parent / "overrides_of_other_classes.py"


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each case runs in a copy of one process")
@pytest.mark.thorough
def test_functions_hand_their_calls_over_whenever_the_class_is_defined():
    assert run("-W", "ignore", "-c", DUCKS.read_text(encoding="utf-8"), "adjoint") == ["checked 126"]


@pytest.mark.thorough
def test_assignment_to_elements_is_handed_over_and_returns_nothing():
    program = """
import adjoint as torch
x = torch.ones(3)
x[0] = 2
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(func.__name__, len(args))
print(x.__setitem__(0, Duck()))
x[Duck()] = 1
"""
    assert run("-c", program) == ["__setitem__ 3", "None", "__setitem__ 3"]


@pytest.mark.thorough
def test_an_object_in_a_call_within_a_call_is_seen():
    program = """
import adjoint as torch
class Duck(dict):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
for _ in range(2):
    torch.add(torch.ones(2), 1), torch.nn.functional.linear(torch.ones(2, 2), torch.ones(2, 2))
print(list(map(torch.sin, [Duck()])), torch.nn.functional.linear(*[torch.ones(2, 2), Duck()]))
"""
    assert run("-c", program) == ["['sin'] linear"]


@pytest.mark.thorough
def test_a_class_that_overrides_nothing_needs_no_wrappers():
    program = """
import sys
import adjoint as torch
class Plain:
    __torch_function__ = torch._C._disabled_torch_function_impl
torch.sin(torch.ones(2)), torch.nn.functional.relu(torch.ones(2))
print("adjoint.overrides" in sys.modules)
try:
    torch.sin(Plain())
except TypeError as error:
    print(error)
print("adjoint.overrides" in sys.modules)
"""
    assert run("-c", program) == ["False", "sin(): argument 'input' (position 1) must be Tensor, not Plain", "False"]


@pytest.mark.thorough
def test_warnings_are_given_at_the_line_of_the_user_from_the_first_call_on():
    program = """
import warnings
import adjoint as torch
from adjoint.nn import functional
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        functional.softmax(torch.ones(2))
        torch.meshgrid(torch.ones(2))
        torch.range(0, 1)
print({warning.filename for warning in caught}, [warning.lineno for warning in caught])
"""
    assert run("-c", program) == ["{'<string>'} [8, 9, 10, 8, 9, 10]"]


@pytest.mark.thorough
def test_signatures_are_seen_before_the_first_call():
    program = """
import inspect
import adjoint as torch
print(inspect.signature(torch.nn.functional.linear), inspect.signature(torch.nn.functional.relu).parameters["inplace"])
torch.nn.functional.relu(torch.ones(1))
print(inspect.signature(torch.nn.functional.relu).parameters["inplace"])
"""
    inplace = "inplace: 'bool' = False"
    assert run("-c", program) == [f"(input, weight, bias=None, *, out=None) {inplace}", inplace]

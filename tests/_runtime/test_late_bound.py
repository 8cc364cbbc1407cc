"""The late-bound functions. The first use of a function imports the layer that implements it."""

import importlib
import subprocess
import sys

import pytest

import adjoint as torch
from adjoint._runtime.late_bound import FUNCTIONS, LateBound
from adjoint.dispatch.registry import HOOKS, OTHER_METHODS


def run(program):
    """Run a program in a new interpreter, and return the words that it prints."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return finished.stdout.split()


def test_few_functions_are_late_bound():
    assert len(FUNCTIONS) <= 10


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_late_bound_function_is_that_of_its_module(name):
    module, _, function = f"adjoint.{FUNCTIONS[name]}".rpartition(".")
    defined = getattr(importlib.import_module(module), function)
    record = LateBound()
    assert getattr(record, name) is defined and vars(record) == {name: defined}


@pytest.mark.thorough
def test_the_first_use_imports_the_module():
    module = f"adjoint.{FUNCTIONS['vmap']}".rpartition(".")[0]
    program = f"import sys, adjoint; there = lambda: {module!r} in sys.modules; "
    program += "from adjoint._runtime.late_bound import LATE; print(there(), callable(LATE.vmap(len)), there())"
    assert run(program) == ["False", "True", "True"]


@pytest.mark.thorough
def test_idle_functions_import_nothing():
    program = "import sys, adjoint; from adjoint._runtime.late_bound import IDLE, LATE; "
    program += "print(*[getattr(LATE, name)(adjoint.ones(2)) for name in IDLE], vars(LATE).keys() & IDLE, "
    program += "any(name.startswith('adjoint.transforms') for name in sys.modules))"
    assert run(program) == ["None", "None", "set()", "False"]


@pytest.mark.parametrize("module", OTHER_METHODS)
@pytest.mark.thorough
def test_a_module_defines_the_methods_that_are_awaited_of_it(module):
    program = "import adjoint; from adjoint.dispatch.registry import Awaited; before = {name for name, value in "
    program += (
        f"vars(adjoint.Tensor).items() if type(value) is Awaited and value.module == '{module}'}}; import {module}; "
    )
    program += "print(*sorted(before & {n for n, value in vars(adjoint.Tensor).items() if type(value) is not Awaited}))"
    private = " ".join(names for owner, each, names in HOOKS if owner is torch.Tensor and each == module)
    assert run(program) == sorted([*OTHER_METHODS[module].split(), *private.split()])


@pytest.mark.parametrize(("owner", "module", "names"), HOOKS, ids=lambda part: getattr(part, "__name__", part))
@pytest.mark.thorough
def test_a_module_defines_the_private_methods_that_are_awaited_of_it(owner, module, names):
    program = f"import adjoint, {module}; from adjoint.dispatch.registry import Awaited, HOOKS; "
    program += "found = {name for owner, module, names in HOOKS if "
    program += f"(owner.__name__, module) == ('{owner.__name__}', '{module}') for name in names.split() "
    program += "if type(vars(owner)[name]) is not Awaited}; print(*sorted(found))"
    assert run(program) == sorted(names.split())


@pytest.mark.thorough
def test_no_tensor_method_is_defined_at_import_by_a_module_that_is_not_awaited():
    program = "import adjoint; before = set(vars(adjoint.Tensor)); import adjoint.autograd, adjoint.nn, adjoint.func; "
    program += "print(*sorted(set(vars(adjoint.Tensor)) - before))"
    assert run(program) == []


def test_an_awaited_method_is_that_of_tensors_also_for_a_class_that_has_its_own():
    program = """
import adjoint as torch
class Loud(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    def register_hook(self, hook):
        return "loud", super().register_hook(hook)
x = torch.ones(2, requires_grad=True).as_subclass(Loud).requires_grad_()
print(type(x.register_hook(print)[1]).__name__)
"""
    assert run(program) == ["RemovableHandle"]


def test_awaited_attributes_are_read_set_and_deleted():
    program = """
import adjoint as torch
x = torch.ones(2, requires_grad=True)
x.grad_dtype = torch.float64
y = torch.ones(2)
try:
    del y._backward_hooks
except RuntimeError as error:
    print(x.grad_dtype, "not" in str(error))
"""
    assert run(program) == ["torch.float64", "True"]


def test_there_are_no_other_functions():
    with pytest.raises(AttributeError, match="vmaps"):
        LateBound().vmaps

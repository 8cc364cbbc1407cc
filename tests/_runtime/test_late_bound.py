"""The record of late-bound functions. The layer that implements a function sets the function only once."""

import subprocess
import sys

import pytest

import adjoint as torch
from adjoint._runtime.late_bound import LATE, MODULES, LateBound, Unfilled
from adjoint.dispatch.registry import HOOKS, OTHER_METHODS

ABSENT_UNTIL_IMPORTED = {"forward_tangent", "text_within_transforms"}


def run(program):
    """Run a program in a new interpreter, and return the words that it prints."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return finished.stdout.split()


def test_each_field_has_a_type_and_no_other_has():
    assert set(LateBound.__slots__) == set(LateBound.__annotations__)


def test_few_functions_are_late_bound():
    assert len(LateBound.__slots__) <= 10


def test_what_can_be_called_before_it_is_filled_has_its_module_listed():
    assert MODULES.keys() == set(LateBound.__slots__) - ABSENT_UNTIL_IMPORTED


@pytest.mark.parametrize("module", sorted(set(MODULES.values())))
@pytest.mark.thorough
def test_a_module_fills_its_fields_when_it_is_imported(module):
    program = (
        f"import adjoint.{module}; from adjoint._runtime.late_bound import LATE, Unfilled; print(*[name for name in "
    )
    program += "LATE.__slots__ if isinstance(getattr(LATE, name), Unfilled)])"
    assert not {name for name, each in MODULES.items() if each == module} & set(run(program))


@pytest.mark.thorough
def test_a_call_of_a_field_imports_its_module():
    module = MODULES["vmap"]
    program = f"import sys, adjoint; there = lambda: 'adjoint.{module}' in sys.modules; "
    program += "from adjoint._runtime.late_bound import LATE; print(there(), callable(LATE.vmap(len)), there())"
    assert run(program) == ["False", "True", "True"]


def test_a_module_that_does_not_fill_its_field_is_an_error(monkeypatch):
    monkeypatch.setitem(MODULES, "vmap", "_runtime.late_bound")
    monkeypatch.setattr("adjoint._runtime.late_bound.LATE", LateBound())
    with pytest.raises(RuntimeError, match=r"adjoint\._runtime\.late_bound does not fill the late-bound 'vmap'"):
        Unfilled("vmap")()


def test_transforms_fill_theirs():
    torch.func.grad(torch.sum)(torch.ones(2))
    from adjoint.transforms import forward_mode  # noqa: F401

    assert not any(isinstance(getattr(LATE, name), Unfilled) for name in ABSENT_UNTIL_IMPORTED)


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


def test_a_field_is_filled_once():
    record = LateBound()
    record.vmap = len
    assert record.vmap is len
    with pytest.raises(AttributeError, match="'vmap' is filled already"):
        record.vmap = len


def test_there_are_no_other_fields():
    with pytest.raises(AttributeError, match="vmaps"):
        LateBound().vmaps = len


@pytest.mark.parametrize("name", sorted(ABSENT_UNTIL_IMPORTED))
def test_names_do_not_exist_before_the_import(name):
    record = LateBound()
    assert type(getattr(record, name)) is Unfilled and getattr(record, name)(torch.ones(2)) is None
    setattr(record, name, len)
    assert getattr(record, name) is len

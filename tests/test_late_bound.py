"""The record of late-bound functions: filled once each, by the layers that implement them."""

import subprocess
import sys

import pytest

import adjoint as torch
from adjoint.late_bound import LATE, Absent, LateBound, Unfilled, importing, on_first_use

UNTIL_THERE_ARE_TRANSFORMS = {"forward_tangent", "text_within_transforms"}


def test_each_field_has_a_type_and_no_other_has():
    assert set(LateBound.__slots__) == set(LateBound.__annotations__)


def test_importing_the_package_fills_every_field_that_needs_filling():
    program = (
        "from adjoint.late_bound import LATE, Unfilled; import adjoint; print(*[name for name in LATE.__slots__ if "
    )
    program += "isinstance(getattr(LATE, name), Unfilled)])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(finished.stdout.split()) == UNTIL_THERE_ARE_TRANSFORMS


def test_transforms_fill_theirs():
    torch.func.grad(torch.sum)(torch.ones(2))
    from adjoint.transforms import forward_mode  # noqa: F401

    assert not any(isinstance(getattr(LATE, name), Unfilled) for name in LateBound.__slots__)


def test_a_field_is_filled_once():
    record = LateBound()
    record.replay = len
    assert record.replay is len
    with pytest.raises(AttributeError, match="'replay' is filled already"):
        record.replay = len


def test_there_are_no_other_fields():
    with pytest.raises(AttributeError, match="replays"):
        LateBound().replays = len


def test_what_is_not_filled_cannot_be_called():
    with pytest.raises(RuntimeError, match="the late-bound 'vmap' is not filled"):
        LateBound().vmap(len)


@pytest.mark.parametrize("name", sorted(UNTIL_THERE_ARE_TRANSFORMS))
def test_without_transforms_no_tensor_has_what_they_give(name):
    record = LateBound()
    assert type(getattr(record, name)) is Absent and getattr(record, name)(torch.ones(2)) is None
    setattr(record, name, len)
    assert getattr(record, name) is len


def test_functions_are_imported_when_they_are_first_called():
    program = "import sys; from adjoint.late_bound import importing, on_first_use; call = on_first_use('colorsys', 'rgb_to_hsv')"
    program += "; load = importing('this_module_is_not_there'); before = 'colorsys' in sys.modules; call(1, 0, b=0)"
    program += "; print(before, 'colorsys' in sys.modules)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == ["False", "True"]
    assert on_first_use("colorsys", "rgb_to_hsv")(1, 0, b=0) == (0.0, 1.0, 1)
    assert importing("colorsys")() is None

"""Every case of the benchmarks runs without errors."""

from importlib import import_module

import pytest

import adjoint
from benchmarks.__main__ import GROUPS

CASES = [
    pytest.param(case, id=f"{name}: {case.name}")
    for name in GROUPS
    if name != "startup"
    for case in import_module(f"benchmarks.{name}").GROUP.cases
]


@pytest.mark.parametrize("case", CASES)
def test_case_runs(case):
    adjoint.manual_seed(0)
    timed = case.prepare(adjoint)
    first, second = timed(), timed()
    if isinstance(first, float):
        first, second = adjoint.tensor(first), adjoint.tensor(second)
    assert first.shape == second.shape
    assert adjoint.isfinite(second).all()


def test_names_are_unique():
    names = [parameter.id for parameter in CASES]
    assert len(set(names)) == len(names)

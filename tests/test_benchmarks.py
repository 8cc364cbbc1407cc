"""Every case of the benchmarks runs without errors.

Only every twentieth case of the survey runs, because these cases are similar.
"""

from importlib import import_module
from pathlib import Path

import pytest

import adjoint
from benchmarks import memory, shapes, survey
from benchmarks.__main__ import GROUPS, RUNNERS

CASES = [
    pytest.param(case, id=f"{name}: {case.name}")
    for name in GROUPS
    if name not in RUNNERS
    for case in import_module(f"benchmarks.{name}").GROUP.cases[:: 20 if name == "survey" else 1]
]


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_case_runs(case):
    adjoint.manual_seed(0)
    timed = case.prepare(adjoint)
    first, second = timed(), timed()
    if isinstance(first, float):
        first, second = adjoint.tensor(first), adjoint.tensor(second)
    assert first.shape == second.shape
    assert adjoint.isfinite(second).all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("table", "operands", "shape"),
    [
        (shapes.ARRAYS, shapes.operands, (20, 12)),
        (shapes.LAYERS, shapes.image_operands, (4, 6, 16, 20)),
        (shapes.ALGEBRA, shapes.matrix_operands, (5, 4, 4)),
    ],
)
def test_most_calls_of_shapes_run(table, operands, shape):
    adjoint.manual_seed(0)
    names = operands(adjoint, shape)
    calls = list(survey.expressions(table))
    refused = []
    for call in calls:
        try:
            survey.forward(call, names)()
        except (RuntimeError, IndexError, TypeError, ValueError):
            refused.append(call)
    assert len(refused) < len(calls) / 15, refused


def test_least_times_are_those_of_the_calls():
    shortest, longest = shapes.least_times(lambda: None, lambda: sum(range(10_000)), 0.001)
    assert 0 < shortest < longest


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the process's memory from /proc")
def test_peak_of_memory_is_that_of_the_process():
    found = memory.peak("adjoint", "LeNet, SGD with momentum, batch 64")
    assert 20e6 < found.training < found.process < 1e9


def test_names_are_unique():
    names = [parameter.id for parameter in CASES] + [case.name for case in survey.GROUP.cases]
    assert len(set(names)) == len(names)

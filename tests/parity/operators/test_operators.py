"""Every operator against PyTorch's own sample inputs, aspect by aspect."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's table of operators imports it")

from tests.parity import samples
from tests.parity.aspects import ALL, Outcome, aspects
from tests.parity.conftest import known_differences
from tests.parity.exceptions import KNOWN, unexcused


@cache
def checks(name: str) -> dict[str, Callable[..., Outcome]]:
    """Return the checks of the operator of this name."""
    return aspects(samples.operators()[name])


FIRST, OTHERS = slice(0, None, 2), slice(1, None, 2)
"""Every second sample, which the quick tier may have, and the others."""

WHOLE = set(KNOWN) | {listed.partition("[")[2].removesuffix("]").replace("-", " ") for listed in known_differences()}
"""The cases that are known to differ from PyTorch for some of the samples: they are not divided."""


@cache
def cases() -> list[Any]:
    """Return operators, aspects, and the part of the samples to test.

    The quick tier tests two dtypes in each aspect: the first dtype, and another dtype that depends on the operator.
    """
    found = []
    for number, name in enumerate(samples.operators()):
        by_kind = defaultdict(list)
        for aspect in checks(name):
            by_kind[aspect.partition("[")[0]].append(aspect)
        for first, *others in by_kind.values():
            quick = {first, *others[number % len(others) :][:1]} if others else {first}
            for aspect in (first, *others):
                if aspect in quick and f"{name} {aspect}" in WHOLE:
                    found.append(case(name, aspect, ALL))
                elif aspect in quick:
                    found += [case(name, aspect, FIRST), case(name, aspect, OTHERS, "-others", pytest.mark.thorough)]
                else:
                    found.append(case(name, aspect, ALL, "", pytest.mark.thorough))
    return found


COMPUTED = {"value", "grad", "gradgrad", "inplace", "out", "strides"}
"""The aspects that depend on which kernel computes."""


def case(name: str, aspect: str, part: slice, suffix: str = "", *marks: pytest.MarkDecorator) -> Any:
    if aspect.partition("[")[0] in COMPUTED:
        marks = (*marks, pytest.mark.computed)
    return pytest.param(name, aspect, part, id=f"{name}-{aspect}{suffix}", marks=marks)


@pytest.mark.parametrize(("name", "aspect", "part"), cases())
def test_operator_agrees_with_pytorch(name: str, aspect: str, part: slice) -> None:
    outcome = checks(name)[aspect](part)
    failures = unexcused(f"{name} {aspect}", outcome.failures)
    assert not failures, f"{len(failures)} of {outcome.total} samples differ:\n" + "\n".join(failures[:5])


def test_every_operator_is_covered() -> None:
    listed = {op.name for op in samples.operators().values()}
    assert not [name for name in samples.NAMES if name not in listed]


def test_known_differences_are_of_cases_that_are_compared() -> None:
    of_operators = {case for case in KNOWN if case.rpartition(" ")[0] in samples.operators()}
    assert of_operators - {f"{name} {aspect}" for name in samples.operators() for aspect in checks(name)} == set()
    ids = {f"operators/test_operators.py::test_operator_agrees_with_pytorch[{case.id}]" for case in cases()}
    assert set(known_differences()) - ids == set()

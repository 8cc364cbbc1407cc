"""Every operator against PyTorch's own sample inputs, aspect by aspect."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's table of operators imports it")

from . import samples
from .aspects import Outcome, aspects
from .exceptions import unexcused


@cache
def checks(name: str) -> dict[str, Callable[[], Outcome]]:
    """What is compared for the operator of this name."""
    return aspects(samples.operators()[name])


def cases() -> list[Any]:
    """Operators and their aspects. Of an aspect in several dtypes the quick tier has the first and one other, which differs
    from operator to operator.
    """
    found = []
    for number, name in enumerate(samples.operators()):
        by_kind = defaultdict(list)
        for aspect in checks(name):
            by_kind[aspect.partition("[")[0]].append(aspect)
        for first, *others in by_kind.values():
            quick = {first, *others[number % len(others) :][:1]} if others else {first}
            found += [case(name, aspect, aspect in quick) for aspect in (first, *others)]
    return found


COMPUTED = {"value", "grad", "gradgrad", "inplace", "out", "strides"}
"""The aspects that depend on which kernel computes."""


def case(name: str, aspect: str, quick: bool) -> Any:
    marks = [] if quick else [pytest.mark.thorough]
    if aspect.partition("[")[0] in COMPUTED:
        marks.append(pytest.mark.computed)
    return pytest.param(name, aspect, id=f"{name}-{aspect}", marks=marks)


@pytest.mark.parametrize(("name", "aspect"), cases())
def test_operator_agrees_with_pytorch(name: str, aspect: str) -> None:
    outcome = checks(name)[aspect]()
    failures = unexcused(f"{name} {aspect}", outcome.failures)
    assert not failures, f"{len(failures)} of {outcome.total} samples differ:\n" + "\n".join(failures[:5])


def test_every_operator_is_covered() -> None:
    listed = {op.name for op in samples.operators().values()}
    assert not [name for name in samples.NAMES if name not in listed]

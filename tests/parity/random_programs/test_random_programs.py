"""Random programs of operators, views, in-place changes, hooks, modes and backwards, run line by line by both libraries.

`ADJOINT_FUZZ_EXAMPLES` sets the number of programs. With this variable, each run draws different programs. `comparison.py`
defines the compared properties and the explained differences.
"""

import os
import time
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.parity.random_programs import comparison
from tests.parity.random_programs.comparison import EXPLAINED, LEFT_OUT, PROGRAMS, Program, differences, explained
from tests.parity.random_programs.search import smallest_difference

_EXAMPLES = os.environ.get("ADJOINT_FUZZ_EXAMPLES")


@pytest.mark.thorough
@settings(
    max_examples=int(_EXAMPLES or 100),
    derandomize=_EXAMPLES is None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_random_programs_agree(data: st.DataObject) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = data.draw(st.integers(1, 20))
            for program, difference in differences(lambda options: data.draw(st.sampled_from(options)), steps):
                pytest.fail(f"{program.text()}\n{difference}")
    finally:
        torch.set_num_threads(threads)


def test_the_comparison_sees_a_difference() -> None:
    program = Program(lambda options: options[0])
    program.actual.names["torch"] = _Wrong(program.actual.names["torch"])
    assert program.run("a = torch.ones(2)") is None
    assert "expected [1.0, 1.0]" in str(program.run("b = torch.exp(torch.zeros(2))"))


@pytest.mark.thorough
def test_a_search_finds_a_small_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "candidate", _Wrong(comparison.candidate))
    program, count = smallest_difference(seed=0, end=time.monotonic() + 300)
    assert program is not None and "exp(" in program
    assert program.count("\n") <= 9  # four leaves, few lines, the difference
    assert count > 1
    assert smallest_difference(seed=0, end=time.monotonic()) == (None, 0)


class _Wrong:
    """A copy of the library in which one function is wrong."""

    def __init__(self, module: object) -> None:
        self.module = module

    def __getattr__(self, name: str) -> object:
        return self.module.zeros_like if name == "exp" else getattr(self.module, name)  # type: ignore[attr-defined]


@pytest.mark.thorough
def test_each_explanation_is_needed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {program: explained(program) for program in PROGRAMS}
    assert [program for program, each in found.items() if len(each) != 1] == []
    needed = [each for (each,) in found.values()]
    assert [each for each in EXPLAINED if needed.count(each) != 1] == []


def test_what_is_explained_or_left_out_is_narrow() -> None:
    assert all(each.reason and (each.line or each.difference or each.error) for each in EXPLAINED)
    assert all(each.reason and each.line and each.condition for each in LEFT_OUT)

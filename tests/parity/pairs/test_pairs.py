"""Pairs of features around one operator: `tests/parity/pairs` describes the comparison."""

import pytest

torch = pytest.importorskip("torch")

from tests.parity.pairs import cells
from tests.parity.pairs.cells import Cell, judge, sample
from tests.parity.pairs.excuses import EXCUSES, Excuse, excuse

CELLS = [cell for cell in sample(0, 400) if "another process" not in cell and "large" not in cell]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_pairs_of_features_agree(cell: Cell) -> None:
    _, difference = judge(cell)
    assert difference is None or excuse(cell, difference), difference


def test_the_comparison_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "candidate", _Wrong(cells.candidate))
    _, difference = judge(Cell("checkpoint", "no grad", "exp"))
    assert difference is not None and "result 0: 12 of 12 numbers" in difference


class _Wrong:
    """A copy of the library in which one function is wrong."""

    def __init__(self, module: object) -> None:
        self.module = module

    def __getattr__(self, name: str) -> object:
        return self.module.tan if name == "exp" else getattr(self.module, name)  # type: ignore[attr-defined]


@pytest.mark.thorough
@pytest.mark.parametrize("each", EXCUSES, ids=[each.example for each in EXCUSES])
def test_each_excuse_is_needed(each: Excuse) -> None:
    (cell,) = (cell for cell in sample(0) if str(cell) == each.example)
    _, difference = judge(cell)
    if difference is None and "on all processors" in each.reason:
        pytest.skip(each.reason)
    assert difference is not None, f"take the excuse off the list: {each.reason}"
    assert excuse(cell, difference) is each

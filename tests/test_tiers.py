"""The tiers of the tests: what the quick tier leaves out, the days of the whole suite make up for."""

from types import SimpleNamespace

import pytest

from tests import tiers


class Case:
    """As much of a test as the tiers look at."""

    def __init__(self, function: str, number: int, *marks: str) -> None:
        self.nodeid, self.parent, self.originalname = f"test_file.py::{function}[{number}]", "test_file.py", function
        self.function, self.callspec = function, SimpleNamespace(params={"name": number // 3})
        self.marks = [getattr(pytest.mark, mark) for mark in marks]

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark)

    def iter_markers(self, name: str) -> list[pytest.MarkDecorator]:
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.MarkDecorator | None:
        return next(iter(self.iter_markers(name)), None)


def marked(cases):
    tiers.mark_thorough(cases)
    return [case for case in cases if not case.iter_markers("thorough")]


def test_the_quick_tier_has_all_cases_of_few_and_a_part_of_many():
    few, many = [Case("few", n) for n in range(tiers.MANY)], [Case("many", n) for n in range(2000)]
    quick = marked(few + many)
    assert quick[: len(few)] == few
    assert 0.5 < (len(quick) - len(few)) * tiers.PART / len(many) < 2


def test_the_quick_tier_has_one_case_of_each():
    cases = [Case("each", n) for n in range(12)]
    for case in cases:
        case.marks.append(pytest.mark.one_each("name"))
    assert marked(cases) == cases[::3]


def test_each_thorough_test_has_its_day():
    cases = [Case("many", n) for n in range(500)] + [Case("slow", n, "thorough") for n in range(3)]
    quick = set(marked(cases))
    seen = []
    for day in range(100, 100 + tiers.WHOLE):
        items, left = [*cases], []
        config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items, left=left: left.extend(items)))
        tiers.keep_share(config, items, tiers.WHOLE, day)
        assert quick < set(items) and set(items) | set(left) == set(cases)
        seen += [case for case in items if case not in quick]
    assert len(seen) == len(set(seen)) == len(cases) - len(quick)

"""The tiers of the tests: the daily shares together run all tests that the quick tier omits."""

from types import SimpleNamespace

import pytest

from tests import tiers


class Definition:
    """The attributes of a test function that the tiers need."""

    nodeid = "test_file.py::test"

    def __init__(self, *marks: pytest.MarkDecorator) -> None:
        self.marks = marks

    def iter_markers(self, name: str) -> list[pytest.MarkDecorator]:
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.MarkDecorator | None:
        return next(iter(self.iter_markers(name)), None)


def chosen(count: int, *marks: pytest.MarkDecorator, **options: object) -> list[str]:
    """Return the cases of a function that a run contains."""
    cases = [SimpleNamespace(id=str(n), params={"name": n // 3}, marks=[]) for n in range(count)]
    option = SimpleNamespace(**{"markexpr": "", "share": None, "day": 0, "family": None, **options})
    tiers.choose_cases(
        SimpleNamespace(definition=Definition(*marks), _calls=cases, config=SimpleNamespace(option=option))
    )
    return [case.id for case in cases]


def test_the_quick_tier_has_all_cases_of_few_and_a_part_of_many():
    assert len(chosen(tiers.MANY, markexpr="not thorough")) == tiers.MANY
    assert len(chosen(tiers.MANY + 1, markexpr="not thorough")) == tiers.LEAST
    assert len(chosen(2000, markexpr="not thorough")) == 2000 // tiers.PART
    assert len(chosen(2000)) == len(chosen(2000, share=1)) == 2000


def test_the_quick_tier_has_one_case_of_each():
    assert chosen(12, pytest.mark.one_each("name"), markexpr="not thorough") == ["0", "3", "6", "9"]


def test_the_quick_tier_has_two_of_long_cases():
    assert len(chosen(6, pytest.mark.long_cases, markexpr="not thorough")) == tiers.LONG


@pytest.mark.parametrize("marks", [(), (pytest.mark.thorough,)], ids=["many cases", "thorough"])
def test_each_thorough_case_has_its_day(marks):
    days = [chosen(500, *marks, share=tiers.WHOLE, day=100 + day) for day in range(tiers.WHOLE)]
    quick = set() if marks else set(chosen(500, markexpr="not thorough"))
    assert all(quick < set(day) for day in days) or not quick
    assert sorted(case for day in days for case in day if case not in quick) == sorted(set(chosen(500)) - quick)


def test_a_function_without_a_case_of_this_run_keeps_one_that_its_mark_leaves_out():
    assert chosen(500, pytest.mark.thorough, markexpr="not thorough") == ["0"]


def test_a_family_has_the_cases_of_its_names():
    names = ["softmax", "cumsum", "log_softmax"]
    cases = [SimpleNamespace(id=name, params={"name": name}, marks=[]) for name in names]
    option = SimpleNamespace(markexpr="", share=None, day=0, family="softmax")
    tiers.choose_cases(SimpleNamespace(definition=Definition(), _calls=cases, config=SimpleNamespace(option=option)))
    assert [case.id for case in cases] == ["softmax", "log_softmax"]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ('@pytest.mark.parametrize("name", NAMES)', False),
        ('@pytest.mark.parametrize(("name", "dtype"), CASES)', False),
        ('@pytest.mark.parametrize("name, dtype", CASES)', False),
        ('pytestmark = pytest.mark.family("reduce")', False),
        ("def test_sum(): ...", True),
    ],
)
def test_modules_without_tests_of_names_are_not_imported_for_a_family(tmp_path, text, left_out):
    module = tmp_path / "test_module.py"
    module.write_text(text, encoding="utf-8")
    assert tiers.is_left_out(module, "reduce") is left_out
    assert not tiers.is_left_out(module, None)

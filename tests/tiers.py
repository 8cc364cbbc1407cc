"""The tiers of the tests, and single families of operators.

The *quick tier*, `pytest -m "not thorough"`, is the same in each run. It omits tests marked `thorough`, which take about a third
of a second or more. Of tests marked `one_each("name")`, it runs the first case for each value of that parameter. Of test
functions with many cases it runs a part of the cases, and of tests marked `long_cases` two cases. The *whole* suite, `pytest`
without arguments, runs the quick tier and an eighth of the thorough tests, with a different eighth each day. `--share DAYS` sets
another fraction, and `--day NUMBER` another day. `--share 1` is the *nightly* tier, which runs all tests. If files, tests (`-k`),
marks (`-m`) or families are named, all of their tests run. `pytest --family reduce` (or `--family sorting`, a module of that
folder) runs the tests of one family: tests whose parameter `name` is an operator or a public function of the family, and test
modules with `pytestmark = pytest.mark.family("reduce")`.
"""

import importlib
import re
import zlib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import adjoint
from adjoint.dispatch.operator_index import FAMILIES

MANY, PART, LEAST, LONG = 4, 48, 2, 2
"""Of a test function with more than `MANY` cases, the quick tier has one case in `PART`, and no fewer than `LEAST`. Of a test
function marked `long_cases`, it has `LONG` cases.
"""
WHOLE = 8
"""The whole suite has one thorough test in this many."""


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--family", metavar="NAME", help="run the tests of one family of operators, such as reduce or softmax"
    )
    parser.addoption(
        "--share", metavar="DAYS", type=int, help="run one in DAYS of the thorough tests, others each day; 1: all tests"
    )
    parser.addoption(
        "--day", metavar="NUMBER", type=int, default=date.today().toordinal(), help="repeat the share of this day"
    )


def choose_share(config: pytest.Config) -> None:
    """Set the share of thorough tests: without arguments, the whole suite runs. Processes of pytest-xdist receive the options."""
    option = config.option
    named = option.keyword or option.markexpr or option.family
    if option.share is None and not named and config.args_source is not config.ArgsSource.ARGS:
        option.share = WHOLE


def report(config: pytest.Config) -> str:
    """Return a description of the run for the header of the report."""
    share = config.option.share
    return f"thorough tests: {'all' if share in (None, 1) else f'one in {share}, --day {config.option.day}'}"


def choose_cases(function: pytest.Metafunc) -> None:
    """Mark the thorough cases of a test function, and leave out the cases of other tiers and days.

    Creating a test for each case and dropping most tests would take longer than the quick tier. The function uses a private list
    of pytest, because pytest has no public list.
    """
    cases, option = function._calls, function.config.option
    if function.definition.get_closest_marker("thorough") is not None:
        thorough = {id(case) for case in cases}
    else:
        thorough = mark_thorough(function.definition, cases)
    kept = cases
    if option.family and function.definition.get_closest_marker("family") is None:
        kept = [case for case in kept if is_name_of(option.family, case.params.get("name"))]
    if option.markexpr == "not thorough":
        kept = [case for case in kept if id(case) not in thorough]
    elif option.share:
        kept = [
            case for case in cases if id(case) not in thorough or is_of_day(name_of(function.definition, case), option)
        ]
    cases[:] = kept or cases[:1]  # without cases, pytest would call the function without arguments


def mark_thorough(definition: pytest.Item, cases: list[Any]) -> set[int]:
    """Mark the cases of a function that the quick tier omits, according to `one_each` and to the names of the tests.

    Return the identities of all thorough cases.
    """
    thorough = {id(case) for case in cases if any(mark.name == "thorough" for mark in case.marks)}
    chosen = set()
    for marker in definition.iter_markers("one_each"):
        seen = set()
        for case in cases:
            values = tuple(case.params[name] for name in marker.args)
            if values in seen:
                chosen.add(id(case))
            seen.add(values)
    chosen -= thorough
    plain = [case for case in cases if id(case) not in thorough and id(case) not in chosen]
    if definition.get_closest_marker("long_cases") is not None:
        kept = LONG
    else:
        kept = max(LEAST, len(plain) // PART) if len(plain) > MANY else len(plain)
    if len(plain) > kept:
        chosen |= {id(case) for case in sorted(plain, key=lambda case: number(name_of(definition, case)))[kept:]}
    for case in cases:
        if id(case) in chosen:
            case.marks.append(pytest.mark.thorough.mark)
    return thorough | chosen


def name_of(definition: pytest.Item, case: Any) -> str:
    """Return the name of the test of a case."""
    return f"{definition.nodeid}[{case.id}]"


def number(name: str) -> int:
    """Return a number that depends only on the name of a test, so it is the same in all processes."""
    return zlib.crc32(name.encode())


def is_of_day(name: str, option: Any) -> bool:
    """Return whether a thorough test is in this day's share."""
    return bool(number(name) % option.share == option.day % option.share)


@cache
def declaring() -> dict[str, set[str]]:
    """Return the families that declare each name, as `reduce.sorting`."""
    found: dict[str, set[str]] = {}
    for family, parts in FAMILIES.items():
        for names in parts.values():
            for name in names.split():
                found.setdefault(name, set()).add(family)
    return found


@cache
def families_of(name: str) -> frozenset[str]:
    """Return the folders and modules that declare the operator or public function of this name, or its handwritten module.

    Examples of names are `sum_dim` and `nn.functional.softmax.with_dtype`.
    """
    modules = set()
    parts = name.removeprefix("Tensor.").split(".")
    for length in range(len(parts), 0, -1):  # in PyTorch's table, a suffix of the name is a variant of the samples
        modules = set(declaring().get(parts[length - 1], ()))
        found = adjoint
        for part in parts[:length]:
            found = getattr(found, part, None)
        module = getattr(found, "__module__", None) or ""
        if module.startswith("adjoint."):
            modules.add(module.removeprefix("adjoint."))
        if modules:
            break
    return frozenset(part for module in modules for part in module.split("."))


def known_families() -> list[str]:
    return sorted({part for family in FAMILIES for part in family.split(".")})


def belongs(item: pytest.Item, family: str) -> bool:
    """Return whether a test belongs to the family."""
    if any(family in marker.args for marker in item.iter_markers("family")):
        return True
    return is_name_of(family, getattr(item, "callspec", None) and item.callspec.params.get("name"))


def is_name_of(family: str, name: Any) -> bool:
    """Return whether this is the name of an operator or a public function of the family."""
    return isinstance(name, str) and family in families_of(name)


def is_left_out(module: Path, family: str | None) -> bool:
    """Return whether no test of a module can belong to the family, because the module has no parameter `name` and no mark.

    Such a module is not imported.
    """
    if family is None or module.suffix != ".py" or not module.name.startswith("test_"):
        return False
    return re.search(r'"name\b|\bname"|mark\.family', module.read_text(encoding="utf-8")) is None


def keep_family(config: pytest.Config, items: list[pytest.Item], family: str) -> None:
    """Deselect the tests of other families."""
    importlib.import_module("adjoint.operators").load_all()
    chosen = [item for item in items if belongs(item, family)]
    if not chosen:
        raise pytest.UsageError(f"no tests of the family {family!r}; families are {', '.join(known_families())}")
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def keep_share(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the thorough tests of other days."""
    todays = [
        item for item in items if item.get_closest_marker("thorough") is None or is_of_day(item.nodeid, config.option)
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(todays)])
    items[:] = todays

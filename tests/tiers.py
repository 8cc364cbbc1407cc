"""The tiers of the tests, and single families of operators.

The *quick tier*, `pytest -m "not thorough"`, is the same in each run. It leaves out tests marked `thorough`, which take
about a second or more. Of tests marked `one_each("name")` it has the first case of each value of that parameter, and of a
test function with many cases a part of the cases.
The *whole* suite, `pytest` without arguments, has the quick tier and an eighth of the thorough tests, another eighth each
day. `--share DAYS` sets another part and `--day NUMBER` another day; `--share 1` is the *nightly* tier, all tests. Named
files, tests (`-k`), marks (`-m`) and families run all of their tests.
`pytest --family reduce` (or `--family sorting`, a module of that folder) runs tests that are parametrized by the `name`
of an operator, or of a public function, of that family, and the test modules with `pytestmark =
pytest.mark.family("reduce")`.
"""

import importlib
import zlib
from collections import Counter
from datetime import date
from functools import cache

import pytest

import adjoint
from adjoint.dispatch.operator_index import FAMILIES

MANY, PART = 16, 16
"""Of a test function with more than so many cases, the quick tier has one case in so many."""
WHOLE = 8
"""The whole suite has one thorough test in so many."""


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
    """Without arguments, the whole suite runs. (The processes of pytest-xdist are told of the options.)"""
    option = config.option
    named = option.keyword or option.markexpr or option.family
    if option.share is None and not named and config.args_source is not config.ArgsSource.ARGS:
        option.share = WHOLE


def report(config: pytest.Config) -> str:
    """What runs, for the head of a report."""
    share = config.option.share
    return f"thorough tests: {'all' if share in (None, 1) else f'one in {share}, --day {config.option.day}'}"


def mark_thorough(items: list[pytest.Item]) -> None:
    """Mark what the quick tier leaves out of functions with many cases: by `one_each`, and by the names of the tests."""
    seen = set()
    for item in items:
        for marker in item.iter_markers("one_each"):
            case = (item.parent, item.function, *(item.callspec.params[name] for name in marker.args))
            if case in seen:
                item.add_marker(pytest.mark.thorough)
            seen.add(case)
    plain = [item for item in items if hasattr(item, "callspec") and item.get_closest_marker("thorough") is None]
    cases = Counter((item.parent, item.originalname) for item in plain)
    for item in plain:
        if cases[item.parent, item.originalname] > MANY and number(item) % PART:
            item.add_marker(pytest.mark.thorough)


def number(item: pytest.Item) -> int:
    """A number that depends on the name of the test alone: processes that share the tests agree."""
    return zlib.crc32(item.nodeid.encode())


@cache
def declaring() -> dict[str, set[str]]:
    """The families that declare each name, as `reduce.sorting`."""
    found: dict[str, set[str]] = {}
    for family, parts in FAMILIES.items():
        for names in parts.values():
            for name in names.split():
                found.setdefault(name, set()).add(family)
    return found


@cache
def families_of(name: str) -> frozenset[str]:
    """The folders and modules of the operator or public function of this name (`sum_dim`, `nn.functional.softmax.with_dtype`):
    those that declare it and, if it is written by hand on top of operators, that in which it stands.
    """
    modules = set()
    parts = name.removeprefix("Tensor.").split(".")
    for length in range(len(parts), 0, -1):  # what follows the name, in PyTorch's table, is a variant of its samples
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
    """Whether a test is one of the family's."""
    if any(family in marker.args for marker in item.iter_markers("family")):
        return True
    name = getattr(item, "callspec", None) and item.callspec.params.get("name")
    return isinstance(name, str) and family in families_of(name)


def keep_family(config: pytest.Config, items: list[pytest.Item], family: str) -> None:
    """Leave out the tests of others."""
    importlib.import_module("adjoint.operators").load_all()
    chosen = [item for item in items if belongs(item, family)]
    if not chosen:
        raise pytest.UsageError(f"no tests of the family {family!r}; families are {', '.join(known_families())}")
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def keep_share(config: pytest.Config, items: list[pytest.Item], days: int, day: int) -> None:
    """Leave out the thorough tests of other days."""
    todays = [
        item
        for item in items
        if number(item) // PART % days == day % days or item.get_closest_marker("thorough") is None
    ]
    kept = set(todays)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = todays

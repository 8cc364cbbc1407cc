"""Subsets of the tests: the quick tier, and single families of operators.

`pytest -m "not thorough"` is the quick tier: every test except those marked `thorough`, which take seconds, and, of
tests marked `one_each("name")`, the first case of each value of that parameter. It is the same in each run, and
contains every operator.
`pytest --family reduce` (or `--family sorting`, a module of that folder) runs tests that are parametrized by the `name`
of an operator, or of a public function, of that family, and the test modules with `pytestmark =
pytest.mark.family("reduce")`.
`pytest -m thorough --share 30` runs a thirtieth of the tests that the quick tier leaves out, another one each day.
"""

import importlib
import zlib
from functools import cache

import pytest

import adjoint
from adjoint.dispatch.operator_index import FAMILIES


def mark_thorough(items: list[pytest.Item]) -> None:
    """Mark what `one_each` leaves out of the quick tier."""
    seen = set()
    for item in items:
        for marker in item.iter_markers("one_each"):
            case = (item.parent, item.function, *(item.callspec.params[name] for name in marker.args))
            if case in seen:
                item.add_marker(pytest.mark.thorough)
            seen.add(case)


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
    """Leave out the tests of other days. A test's day depends on its name alone: processes that share the tests agree."""
    todays = [item for item in items if zlib.crc32(item.nodeid.encode()) % days == day % days]
    kept = set(todays)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = todays

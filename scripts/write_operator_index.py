"""Write the index of the names that each family of operators declares: `python scripts/write_operator_index.py`.

A program imports a family when it first uses one of the family's names. This script imports all families, and writes the names
that each family declares to `adjoint/dispatch/operator_index.txt`.
"""

import sys
from collections import defaultdict
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "adjoint.operators"
DISPATCH = "adjoint.dispatch"
ROOT = Path(str(find_spec("adjoint").origin)).parent  # type: ignore[union-attr]


def declared() -> dict[tuple[str, str], Any]:
    """Return the existing declarations, by part of the index and by name."""
    build = sys.modules.get(f"{DISPATCH}.decorators")
    if not hasattr(build, "operator"):
        return {}
    registry, tensor = import_module(f"{DISPATCH}.registry"), import_module("adjoint.tensor")
    hooks = {name for _, _, names in registry.HOOKS for name in names.split()}
    parts = {
        **build.PUBLIC,
        registry.METHODS: {name: value for name, value in vars(tensor.Tensor).items() if name not in hooks},
        registry.OPERATORS: {
            **import_module(f"{DISPATCH}.declaration").OPERATORS,
            **vars(build.tensors),
            **vars(build.arrays),
        },
    }
    return {
        (part, name): value
        for part, values in parts.items()
        for name, value in values.items()
        if type(value) is not registry.Awaited and name != "_families"
    }


class Watch:
    """A recorder of the names that each module declares while it runs, without the names that imported modules declare."""

    def __init__(self) -> None:
        self.found: dict[str, dict[tuple[str, str], Any]] = defaultdict(dict)
        self.run = SourceFileLoader.exec_module

    def __enter__(self) -> "Watch":
        def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
            before = declared()
            self.run(loader, module)
            if module.__name__.startswith((f"{PACKAGE}.", f"{DISPATCH}.")):
                by_others = {key for found in self.found.values() for key in found}
                new = {key: value for key, value in declared().items() if key not in before and key not in by_others}
                self.found[module.__name__].update(new)

        SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, *exception: object) -> None:
        SourceFileLoader.exec_module = self.run  # type: ignore[method-assign]


def index() -> dict[str, dict[str, set[str]]]:
    """Return the parts of the index by family and name.

    The part for operators contains only names that no other part contains.
    """
    sys.modules[f"{DISPATCH}.operator_index"] = nothing = ModuleType(
        "index"
    )  # the result must not depend on the existing index
    nothing.FAMILIES = {}  # type: ignore[attr-defined]
    with Watch() as watch:
        import_module(PACKAGE)
        for path in sorted((ROOT / "operators").glob("*/[!_]*.py")):
            import_module(f"{PACKAGE}.{path.parent.name}.{path.stem}")
    families: dict[str, dict[str, set[str]]] = {}
    for family, found in sorted(watch.found.items()):
        for part, name in sorted(found):
            if family.startswith(f"{PACKAGE}."):
                families.setdefault(family.removeprefix(f"{PACKAGE}."), {}).setdefault(name, set()).add(part)
    for names in families.values():
        for parts in names.values():
            if parts & {"torch", "Tensor"}:
                parts.discard("operators")
    return families


def text() -> str:
    """Return the text of the file, with names grouped by the parts that contain them."""
    lines = []
    for family, names in index().items():
        together: dict[str, list[str]] = {}
        for name, parts in sorted(names.items()):
            together.setdefault(" ".join(sorted(parts)), []).append(name)
        lines += [f"{family} > {parts}: {' '.join(group)}\n" for parts, group in sorted(together.items())]
    return "".join(lines)


if __name__ == "__main__":
    (ROOT / "dispatch" / "operator_index.txt").write_text(text(), encoding="ascii")

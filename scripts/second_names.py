"""The stubs that let type checkers find modules such as `adjoint.cuda` (`adjoint/torch_names/cuda/__init__.py`).

Python finds these modules through `adjoint/_runtime/places.py`, but type checkers find only files. The wheel therefore contains a
stub for each such module, which lists the names of the module. A checkout has no such stubs. In a checkout, type checkers
understand `torch.cuda`, but not `import adjoint.cuda`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ONE_FILE = {"absent_devices": ("mps", "mtia", "xpu")}
"""The file that implements several modules, with these modules. `ONE_FILE` of `places.py` is the inverse mapping."""

ANYTHING = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


def stubs(root: Path) -> dict[str, str]:
    """Return the text of each stub, by its path, for the checkout `root`."""
    folder, found = root / "adjoint" / "torch_names", {}
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).with_suffix("").as_posix()
        if place == "__init__" or "search_path" in place:
            continue
        typed = path.with_suffix(".pyi")
        own = typed if typed.exists() else path
        names = set(_names(ast.parse(own.read_text(encoding="utf-8")), own is path))
        module = f"adjoint.torch_names.{place.replace('/', '.')}".removesuffix(".__init__")
        lines = [f"from {module} import {name} as {name}\n" for name in sorted(names - {"__getattr__"})]
        text = "".join([*lines, ANYTHING * ("__getattr__" in names)])
        found.update({f"adjoint/{each}.pyi": text for each in ONE_FILE.get(place, (place,))})
    return found


def _names(module: ast.Module, imports: bool) -> Iterator[str]:
    """Yield the names that a module defines and, with `imports`, the names that it imports from the package."""
    for statement in module.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.ImportFrom(module=source, names=names, level=level) if imports and (
                level or str(source).startswith("adjoint")
            ):
                yield from (each.asname or each.name for each in names)
            case ast.Assign(targets=[ast.Tuple(elts=targets)]) | ast.Assign(targets=targets):
                yield from (each.id for each in targets if isinstance(each, ast.Name))

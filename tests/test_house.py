"""The shape of the package: imports point downward only, rooms stay small, no drawers."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import adjoint

PACKAGE = Path(adjoint.__file__).parent

# From the top layer down; a module may import from layers below its own and from its own package. A name stands for the
# package and all in it, but for what is listed by a longer name.
LAYERS = [
    {"adjoint.__main__"},
    {"adjoint"},
    {"adjoint.inspect"},
    {"adjoint.overrides"},
    {"adjoint.distributions"},
    {"adjoint.func", "adjoint.nn", "adjoint.optim", "adjoint.testing", "adjoint.utils", "adjoint.serialization"},
    {
        "adjoint.fft",
        "adjoint.linalg",
        "adjoint.special",
        "adjoint.types",
        "adjoint._C",
        "adjoint.ops",
        "adjoint.profiler",
        "adjoint.version",
    },
    {"adjoint.backends", "adjoint.cuda"},
    {"adjoint.autograd.__init__"},
    {"adjoint.autograd.forward_ad", "adjoint.autograd.functional", "adjoint.autograd.gradcheck"},
    {"adjoint.autograd.check"},
    {"adjoint.transforms"},
    {"adjoint.autograd"},
    {"adjoint.operators"},
    {"adjoint.dispatch"},
    {"adjoint.tape"},
    {"adjoint.random"},
    {"adjoint.tensor"},
    {"adjoint.printing"},
    {"adjoint.kernels"},
    {"adjoint.codegen"},
    {"adjoint.kernels.runtime"},
    {"adjoint.dtypes", "adjoint.device", "adjoint.extra", "adjoint.notices", "adjoint.settings", "adjoint._version"},
]

# Built like a user's program: `import adjoint as torch` and its public names, nothing private from below.
ON_THE_PUBLIC_API = {f"adjoint.{room}" for room in ("distributions", "func", "nn", "optim", "testing", "utils")}

# Imports that point upward, made inside a function when it first runs: a tensor is pickled as a checkpoint holds it, and the
# first class that may take over calls has all of them asked.
LATE = {
    ("adjoint.tensor", "adjoint.serialization"),
    ("adjoint.tape", "adjoint.overrides"),
    ("adjoint.autograd", "adjoint.transforms"),
}

# `utils` is a name of PyTorch's for two public packages and two modules, and for nothing else.
NOT_DRAWERS = {"adjoint.utils", "adjoint.nn.utils", "adjoint.nn.modules.utils", "adjoint.distributions.utils"}
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
LONGEST = 700


@dataclass(frozen=True)
class Import:
    """One import statement: in which module, of which module, and whether it runs only when a function is called."""

    source: str
    target: str
    late: bool
    line: int

    def __str__(self) -> str:
        return f"{self.source} line {self.line} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


PACKAGES = {package: number for number, packages in enumerate(LAYERS) for package in packages}


def room(module: str) -> str:
    """`adjoint.nn.modules.linear` is in the package `adjoint.nn`; `adjoint` itself is a package."""
    if f"{module}.__init__" in PACKAGES:
        return f"{module}.__init__"
    name = module
    while name not in PACKAGES and "." in name:
        name = name.rpartition(".")[0]
    return name if name != "adjoint" else ".".join(module.split(".")[:2])


class Imports(ast.NodeVisitor):
    """Collects what a module imports; what is imported for type annotations only does not count."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.package = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
        self.depth = 0
        self.found: list[Import] = []

    def visit_If(self, node: ast.If) -> None:
        for_types_only = ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        for child in node.orelse if for_types_only else [*node.body, *node.orelse]:
            self.visit(child)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parents = self.package.split(".")
            base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
        for alias in node.names:
            self.add(f"{base}.{alias.name}" if f"{base}.{alias.name}" in FILES else base, node)

    def add(self, target: str, node: ast.stmt) -> None:
        self.found.append(Import(self.module, target, self.depth > 0, node.lineno))


@cache
def imports_of(module: str) -> list[Import]:
    visitor = Imports(module)
    visitor.visit(ast.parse(FILES[module].read_text(encoding="utf-8")))
    return visitor.found


def imports_within() -> Iterator[Import]:
    for module in FILES:
        for found in imports_of(module):
            if found.target.split(".")[0] == "adjoint":
                yield found


def is_allowed(found: Import) -> bool:
    source, target = room(found.source), room(found.target)
    if source == target or source == "adjoint":
        return True
    if found.late and (source, target) in LATE:
        return True
    if (source, target) == ("adjoint.func", "adjoint.transforms"):  # for which it is PyTorch's name
        return True
    if source in ON_THE_PUBLIC_API:
        return target == "adjoint" or target in ON_THE_PUBLIC_API
    return PACKAGES[source] < PACKAGES[target]


def test_every_module_has_a_floor():
    assert {room(module) for module in FILES} <= PACKAGES.keys()


def test_imports_point_downward_only():
    assert [str(found) for found in imports_within() if not is_allowed(found)] == []


def test_late_imports_that_are_listed_exist():
    made = {(room(found.source), room(found.target)) for found in imports_within() if found.late}
    assert made >= LATE


@pytest.mark.parametrize("package", ["torch", "tensorflow", "jax"])
def test_no_other_tensor_library_is_imported(package):
    guilty = [str(found) for module in FILES for found in imports_of(module) if found.target.split(".")[0] == package]
    assert guilty == []


def test_optional_packages_are_imported_where_they_are_used():
    always = {"numpy", "ml_dtypes", "adjoint"}
    import sys

    outside = [
        str(found)
        for module in FILES
        for found in imports_of(module)
        if not found.late and found.target.split(".")[0] not in always | sys.stdlib_module_names
    ]
    assert outside == []


def test_there_is_no_drawer():
    drawers = [
        module for module in FILES if module.rpartition(".")[2].lstrip("_") in DRAWERS and module not in NOT_DRAWERS
    ]
    assert drawers == []


def test_no_file_is_two_rooms():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in FILES.items()}
    assert {module: length for module, length in lengths.items() if length > LONGEST} == {}


def test_every_module_says_what_it_is_for():
    silent = [
        module for module, path in FILES.items() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


# ---------------------------------------------------------------- the rule itself


def test_the_rule_catches_what_it_is_there_to_catch():
    assert not is_allowed(Import("adjoint.kernels.math.pointwise", "adjoint.tensor", late=False, line=1))
    assert not is_allowed(Import("adjoint.kernels.math.pointwise", "adjoint", late=True, line=1))
    assert not is_allowed(Import("adjoint.nn.modules.linear", "adjoint.tape.nodes", late=False, line=1))
    assert not is_allowed(Import("adjoint.tensor", "adjoint.random", late=False, line=1))
    assert is_allowed(Import("adjoint.operators.shape.view", "adjoint.tape.nodes", late=False, line=1))
    assert is_allowed(Import("adjoint.nn.modules.linear", "adjoint", late=False, line=1))

"""The structure of the package: modules import only from lower layers, modules are small, and each module has a subject."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import adjoint

PACKAGE = Path(adjoint.__file__).parent

# The layers of docs/architecture.md, from the top down. A module may import from lower layers and from its own package. A name
# covers a package and its modules, except modules that are listed by longer names.
LAYERS = [
    {"adjoint.__main__", "adjoint.distributed.runner", "adjoint.fx"},
    {"adjoint.torch_names"},
    {"adjoint.amp", "adjoint.compiler", "adjoint.distributed", "adjoint.onnx"},
    {
        "adjoint.array_api",
        "adjoint.multiprocessing",
        "adjoint.inspect",
        "adjoint.distributions",
        "adjoint.func",
        "adjoint.masked",
        "adjoint.nn",
        "adjoint.optim",
        "adjoint.testing",
        "adjoint.utils",
        "adjoint.serialization",
        "adjoint.signal",
    },
    {"adjoint", "adjoint.autograd.__init__", "adjoint.linalg", "adjoint.special", "adjoint.fft", "adjoint.sparse"},
    {
        "adjoint.autograd.functional",
        "adjoint.autograd.forward_ad",
        "adjoint.autograd.gradcheck",
        "adjoint.autograd.profiler",
    },
    {"adjoint.checks"},
    {"adjoint.transforms"},
    {"adjoint.autograd", "adjoint.operators", "adjoint.profiler"},
    {"adjoint.aten"},
    {"adjoint.dispatch"},
    {"adjoint.tape", "adjoint.random"},
    {"adjoint.tensor"},
    {"adjoint.interchange", "adjoint.printing"},
    {"adjoint.array_attributes"},
    {"adjoint.kernels"},
    {"adjoint.codegen"},
    {"adjoint.kernels.runtime"},
    {"adjoint.dtypes", "adjoint.device"},
    {"adjoint.tape.modes"},
    {"adjoint._runtime"},
]

# These modules use the public API like a user's program: `import adjoint as torch`. `_runtime` is the only private module that
# they import.
ON_THE_PUBLIC_API = {
    f"adjoint.{name}" for name in ("distributions", "func", "masked", "nn", "optim", "signal", "testing", "utils")
}

# Only PyTorch's two public packages and three modules may be named `utils`.
NOT_DRAWERS = {
    "adjoint.torch_names._functorch.utils",
    "adjoint.torch_names._utils",
    "adjoint.utils.data._utils",
    "adjoint.utils",
    "adjoint.nn.utils",
    "adjoint.nn.modules.utils",
    "adjoint.distributions.utils",
}
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
LONGEST = 600


@dataclass(frozen=True)
class Import:
    """One import statement: its module, the imported module, and whether it is within a function."""

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


def package_of(module: str) -> str:
    """Return the package of a module: `adjoint.nn` for `adjoint.nn.modules.linear`, and `adjoint` for `adjoint`."""
    if f"{module}.__init__" in PACKAGES:
        return f"{module}.__init__"
    name = module
    while name not in PACKAGES and "." in name:
        name = name.rpartition(".")[0]
    return name if name != "adjoint" else ".".join(module.split(".")[:2])


def is_for_types(node: ast.If) -> bool:
    """Return whether a condition is true for type checkers only."""
    names = isinstance(node.test, ast.Name | ast.Attribute)  # no other conditions need `ast.unparse`
    return names and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


class Imports(ast.NodeVisitor):
    """A visitor that collects the imports of a module, and separately the imports for type annotations."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.package = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
        self.depth = 0
        self.found: list[Import] = []
        self.for_types: list[Import] = []

    def generic_visit(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # expressions contain no imports
                self.visit(child)

    def visit_If(self, node: ast.If) -> None:
        if is_for_types(node):
            self.found, others = self.for_types, self.found
            for child in node.body:
                self.visit(child)
            self.found = others
        for child in node.orelse if is_for_types(node) else [*node.body, *node.orelse]:
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


def tree_of(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


@cache
def read(module: str) -> tuple[Imports, str | None]:
    """Return the imports of a module, and its docstring.

    The syntax tree is not kept, because it would slow down the garbage collector.
    """
    tree, imports = tree_of(module), Imports(module)
    imports.visit(tree)
    return imports, ast.get_docstring(tree)


def imports_of(module: str) -> list[Import]:
    return read(module)[0].found


def imports_for_types(module: str) -> list[str]:
    """Return the imports of a module for type annotations only."""
    return [found.target for found in read(module)[0].for_types]


def imports_within() -> Iterator[Import]:
    for module in FILES:
        for found in imports_of(module):
            if found.target.split(".")[0] == "adjoint":
                yield found


def is_allowed(found: Import) -> bool:
    source, target = package_of(found.source), package_of(found.target)
    if source == target:
        return True
    if (source, target) == ("adjoint.func", "adjoint.transforms"):  # `func` is PyTorch's name for `transforms`
        return True
    if source in ON_THE_PUBLIC_API:
        return target in ("adjoint", "adjoint._runtime") or target in ON_THE_PUBLIC_API
    return PACKAGES[source] < PACKAGES[target]


# Imports inside functions that would close a cycle of modules, with their reasons.
CLOSING = {
    # If an operator has no tangent rule, forward mode transposes reverse mode.
    ("adjoint.transforms.forward_mode", "adjoint.transforms.reverse"),
    # If a custom `Function` generates its batching rule, `vmap` maps the function by another `Function`, which uses the batching
    # interpreter.
    ("adjoint.transforms.vmap_interpreter", "adjoint.transforms.mapped_function"),
    # `gradcheck` declares the error that these checks raise, and imports the checks.
    ("adjoint.checks.gradcheck", "adjoint.checks.derivative_checks"),
    ("adjoint.checks.jacobians", "adjoint.checks.gradcheck"),
}


def cycles(found: Iterable[Import]) -> list[list[str]]:
    """Return groups of modules that import each other directly or indirectly."""
    targets: dict[str, set[str]] = {}
    for each in found:
        if each.source != each.target and each.target in FILES:
            targets.setdefault(each.source, set()).add(each.target)
    reached = {}
    for module in targets:
        seen, waiting = set(), [module]
        while waiting:
            for target in targets.get(waiting.pop(), set()) - seen:
                seen.add(target)
                waiting.append(target)
        reached[module] = seen
    groups = {
        tuple(sorted(other for other in seen if module in reached.get(other, ())))
        for module, seen in reached.items()
        if module in seen
    }
    return [list(group) for group in sorted(groups)]


def test_no_modules_import_one_another():
    assert cycles(found for found in imports_within() if not found.late) == []


def test_no_modules_import_one_another_when_functions_run():
    assert cycles(found for found in imports_within() if (found.source, found.target) not in CLOSING) == []


LARGEST_CIRCLE = 5


def test_few_modules_name_one_another_when_types_count():
    """The import cycles are small, because readers of one file must read all files of its cycle.

    The test does not count stubs, which a script writes.
    """
    for_types = [Import(module, target, late=True, line=0) for module in FILES for target in imports_for_types(module)]
    assert [each for each in cycles([*imports_within(), *for_types]) if len(each) > LARGEST_CIRCLE] == []


@pytest.mark.parametrize("pair", sorted(CLOSING), ids=" to ".join)
def test_imports_that_close_a_cycle_are_needed_in_the_list(pair):
    assert cycles(found for found in imports_within() if (found.source, found.target) not in CLOSING - {pair}) != []


def test_no_modules_of_nn_name_one_another_in_annotations():
    in_nn = [
        Import(module, target, late=True, line=0)
        for module in FILES
        if module.startswith("adjoint.nn")
        for target in (*imports_for_types(module), *(found.target for found in imports_of(module)))
        if target.startswith("adjoint.nn")
    ]
    assert cycles(in_nn) == []


def test_every_module_has_a_layer():
    assert {package_of(module) for module in FILES} <= PACKAGES.keys()


def test_imports_point_downward_only():
    assert [str(found) for found in imports_within() if not is_allowed(found)] == []


def test_no_two_layers_could_be_one():
    """Each layer imports names from the next layer, so the imports determine the order of the layers."""
    between = {(PACKAGES[package_of(found.source)], PACKAGES[package_of(found.target)]) for found in imports_within()}
    assert [number for number in range(len(LAYERS) - 1) if (number, number + 1) not in between] == []


ARCHITECTURE = PACKAGE.parent / "docs" / "architecture.md"


def drawn(page: str) -> list[set[str]]:
    """Return the layers of the picture in `page`, from the top: the text in the left column of each box."""
    boxes: list[set[str]] = []
    for line in page[page.index("┌") : page.index("┘")].splitlines():
        if line.startswith("│"):
            boxes[-1] |= set(line.split("│")[1].split())
        else:
            boxes.append(set())
    return boxes[:-1]


def as_module(path: str) -> str:
    """Return the module of a file: `adjoint.nn` for `nn/`, `adjoint.random` for `random.py`, `adjoint` for `__init__.py`."""
    name = path.removesuffix(".py").strip("/").replace("/", ".")
    return "adjoint" if name == "__init__" else f"adjoint.{name}"


@pytest.mark.skipif(
    not ARCHITECTURE.exists(), reason="the tests of an installed package, without its pages beside them"
)
def test_the_picture_of_the_layers_is_what_the_imports_draw():
    boxes = drawn(ARCHITECTURE.read_text(encoding="utf-8"))
    assert [{as_module(path) for path in box} for box in boxes] == LAYERS
    there = {path: "file" if (PACKAGE / path).is_file() else "folder" for box in boxes for path in box}
    assert there == {path: "folder" if path.endswith("/") else "file" for path in there}


def test_a_picture_is_read_box_by_box():
    lines = ["text", "┌────┬────┐", "│ __init__.py │ names │", "├────┼────┤"]
    lines += ["│ a/b/ c.py │ and │", "│ d/__init__.py │ more/ │", "└────┴────┘", "│ no box │"]
    assert drawn("\n".join(lines)) == [{"__init__.py"}, {"a/b/", "c.py", "d/__init__.py"}]
    assert list(map(as_module, ["__init__.py", "a/b/", "d/__init__.py"])) == [
        "adjoint",
        "adjoint.a.b",
        "adjoint.d.__init__",
    ]


def assigned_from_outside(module: str) -> Iterator[str]:
    """Return the assignments in `module` to globals of other modules of the package."""
    tree = tree_of(module)
    package = module if FILES[module].name == "__init__.py" else module.rpartition(".")[0]
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            modules |= {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for node in ast.walk(tree):
        is_set = (
            isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        )
        if is_set and modules.get(node.value.id) in FILES:
            yield f"{module} line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.thorough
def test_no_module_sets_the_globals_of_another():
    """Lower layers find functions of higher layers with `adjoint._runtime.late_bound`, and no module sets them."""
    assert [found for module in FILES for found in assigned_from_outside(module)] == []


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


def test_no_file_is_too_long():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in FILES.items()}
    assert {module: length for module, length in lengths.items() if length > LONGEST} == {}


def test_every_module_has_a_docstring_about_its_purpose():
    assert [module for module in FILES if not read(module)[1]] == []


FOLDERS = sorted({path.parent for path in FILES.values()})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE.parent).as_posix())
def test_every_folder_has_one_line_about_its_contents(folder):
    first, *rest = (read(module_name(folder / "__init__.py"))[1] or "").splitlines()
    assert first.endswith(".")
    assert rest[:1] in ([], [""])


def test_no_two_folders_say_the_same():
    lines = [read(module_name(folder / "__init__.py"))[1].splitlines()[0] for folder in FOLDERS]
    assert len(set(lines)) == len(lines)


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


# ---------------------------------------------------------------- the rule itself


def test_the_rule_finds_violations():
    assert not is_allowed(Import("adjoint.kernels.math.pointwise", "adjoint.tensor", late=False, line=1))
    assert not is_allowed(Import("adjoint.kernels.math.pointwise", "adjoint", late=True, line=1))
    assert not is_allowed(Import("adjoint.nn.modules.linear", "adjoint.tape.nodes", late=False, line=1))
    assert not is_allowed(Import("adjoint.tensor", "adjoint.random", late=False, line=1))
    assert not is_allowed(Import("adjoint.tensor", "adjoint.serialization.rebuild", late=True, line=1))
    assert is_allowed(Import("adjoint.operators.shape.view", "adjoint.tape.nodes", late=False, line=1))
    assert is_allowed(Import("adjoint.nn.modules.linear", "adjoint", late=False, line=1))


def test_cycles_are_found():
    names = ["adjoint.nn.init", "adjoint.nn.parameter", "adjoint.nn.modules.call", "adjoint.nn.modules.linear"]
    around = [Import(a, b, late=False, line=1) for a, b in zip(names, [*names[1:3], names[0]], strict=False)]
    assert cycles(around) == [sorted(names[:3])]
    assert cycles(around[:2]) == []

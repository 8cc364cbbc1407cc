"""Write the types of the operators for type checkers and editors: `python scripts/write_type_stubs.py`.

The package creates operators from declarations at import time, but type checkers do not run these declarations. The
functions and other exports of namespaces are written to `__init__.pyi` of `adjoint` and `adjoint.nn.functional`, and to
`linalg.pyi`, `special.pyi`, `fft.pyi` and `sparse.pyi`. The methods that operators install on `Tensor` are written to
`TensorMethods` in `operators/tensor_methods.pyi`, and the classes of named results to `torch_names/return_types.pyi`.

Types come from the dispatcher's schemas (`schema_types.py`), or from `handwritten_types.pyi` if Python's arguments
differ.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import adjoint
from adjoint._runtime.places import ONE_FILE
from adjoint.aten import schemas
from adjoint.dispatch.declaration import Operator
from adjoint.dispatch.registry import HOOKS
from adjoint.dispatch.return_types import BY_NAME
from adjoint.operators import PUBLIC, load_all

sys.path.insert(0, str(Path(__file__).parent))
from schema_types import signatures

PACKAGE = Path(adjoint.__file__).parent

HEAD = '"""Types of functions of tensors. Written by scripts/write_type_stubs.py; do not edit."""\n'

SOURCES = {
    "_bool": "builtins", "_complex": "builtins", "_float": "builtins", "_int": "builtins", "_slice": "builtins",
    "_type": "builtins", "_Callable": "collections.abc", "Sequence": "collections.abc", "EllipsisType": "types",
    "Any": "typing", "_Literal": "typing", "TypeAlias": "typing", "_TypeGuard": "typing", "TypeVar": "typing",
    "overload": "typing", "_final": "typing", "numpy": "", "return_types": "adjoint.torch_names", "_Size": "adjoint.device",
    "_device": "adjoint.device", "_layout": "adjoint.device", "_memory_format": "adjoint.device", "_dtype": "adjoint.dtypes",
    "Generator": "adjoint.random", "UntypedStorage": "adjoint.kernels.memory.storages", "Tensor": "adjoint.tensor",
}  # fmt: skip
"""The modules of the names that annotations use. Names with an underscore are not exported."""

ALIASES = {
    "_Number": "_bool | _int | _float | _complex",
    "_Dims": "_int | Sequence[_int]",
    "_Device": "_device | str | _int",
    "_Index": "_int | _slice | EllipsisType | Tensor | numpy.ndarray[Any, Any] | Sequence[_Part | Sequence[_int]] | None",
    "_Part": "_int | _slice | EllipsisType | Tensor | numpy.ndarray[Any, Any] | None",
}

OF_OPERATORS = """from adjoint import *
from adjoint.dispatch.decorators import PUBLIC as PUBLIC
from adjoint.dispatch.declaration import OPERATORS as OPERATORS
from adjoint.dispatch.registry import load_all as load_all
from adjoint.dispatch.source import SOURCES as SOURCES
from adjoint.operators.tensor_methods import TensorMethods as TensorMethods
"""

OF_METHODS = """from adjoint.tape.hook_handles import RemovableHandle as _RemovableHandle

_T = TypeVar("_T", bound=Tensor)

class TensorMethods:"""
OF_SPARSE = (
    "from adjoint.torch_names.settings import check_sparse_tensor_invariants as check_sparse_tensor_invariants\n"
)
OF_LINALG = "from adjoint.kernels.linalg import LinAlgError as LinAlgError\n"

UNARY = "__abs__ __invert__ __neg__ __pos__".split()
BINARY = "self, other: Tensor | _Number"

PREFIXES = {
    "torch": "",
    "linalg": "linalg_",
    "fft": "fft_",
    "special": "special_",
    "sparse": "sparse_",
    "functional": "",
}
"""The prefix of the dispatcher's names for the functions of a namespace."""

PROPERTIES = {"retains_grad": "_bool", "_backward_hooks": "dict[_int, object] | None"}

LISTS = frozenset("size sizes shape dims dim repeats".split())
"""Lists of numbers that may also be given as separate arguments."""


def handwritten() -> dict[str, dict[str, list[str]]]:
    """Return the lines of each function and method of `handwritten_types.pyi`, by namespace and name."""
    text = (Path(__file__).parent / "handwritten_types.pyi").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[str]]] = {}
    for namespace in ast.parse(text).body:
        if isinstance(namespace, ast.ClassDef):
            names = found.setdefault(namespace.name, {})
            for statement in namespace.body:
                assert isinstance(statement, ast.FunctionDef)
                first = min([statement.lineno, *(each.lineno for each in statement.decorator_list)])
                lines = text.splitlines()[first - 1 : statement.end_lineno]
                names.setdefault(statement.name, []).extend(line.removeprefix("    ") for line in lines)
    return found


HANDWRITTEN = handwritten()


def accepted(function: Any) -> set[str] | None:
    """Return the names of the parameters of a function, or None if it accepts further arguments."""
    operator: Operator | None = getattr(function, "operator", None)
    if operator is not None:
        return {*operator.names, "self", "input", "out"}
    parameters = inspect.signature(function).parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    open_ended = kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    return None if open_ended else {"self", "input", *(parameter.name for parameter in parameters)}


def takes_list_as_arguments(function: Any) -> bool:
    """Return whether the function accepts the numbers of a list, such as a shape, as separate arguments."""
    return getattr(function, "operator", None) is None and any(
        parameter.kind is inspect.Parameter.VAR_POSITIONAL and parameter.name in LISTS
        for parameter in inspect.signature(function).parameters.values()
    )


def lines_of(namespace: str, name: str, function: Any) -> list[str]:
    """Return the types of a function in a namespace or of a method of `Tensor`: one line, or two lines for each overload."""
    if (lines := HANDWRITTEN.get(namespace, {}).get(name)) is not None:
        return lines
    packet = PREFIXES.get(namespace, "") + name
    packet = packet if packet in schemas.packets() else name
    known = accepted(function)
    texts = []
    for found in signatures(packet):
        of_python = found.as_method() if namespace == "Tensor" else found.as_function()
        signature = of_python and of_python.with_names_in(known)
        if signature is not None and signature.text() not in texts:
            texts.append(signature.text())
            if takes_list_as_arguments(function) and (variadic := signature.variadic()) is not None:
                texts.append(variadic)
    if not texts:
        raise LookupError(f"no schema says what types {namespace}.{name} has: write them in handwritten_types.pyi")
    overload = ["@overload"] if len(texts) > 1 else []
    return [line for text in texts for line in (*overload, f"def {name}{text}: ...")]


def functions(namespace: str) -> Iterator[str]:
    """Return the public functions of a namespace."""
    for name, function in sorted(PUBLIC[namespace].items()):
        if inspect.isclass(function):
            yield "@_final"
            yield f"class {name}(Tensor): ..."
        else:
            yield from lines_of(namespace, name, function)


def methods() -> Iterator[str]:
    """Return the methods and properties that operators install on `Tensor`."""
    for name, member in sorted(vars(adjoint.Tensor).items()):
        if any(name in names.split() for _, _, names in HOOKS):
            yield f"    {name}: Any"
            continue
        getter = member.fget if isinstance(member, property) else member
        function = getter.__func__ if isinstance(getter, staticmethod) else getter
        package = str(getattr(inspect.unwrap(function), "__globals__", {}).get("__package__"))
        if not package.startswith(("adjoint.operators", "adjoint.autograd", "adjoint.dispatch")):
            continue
        if isinstance(member, property):
            lines = ["@property", f"def {name}(self) -> {PROPERTIES.get(name, 'Tensor')}: ..."]
        elif name.startswith("__") and name not in HANDWRITTEN["Tensor"]:
            lines = [f"def {name}({'self' if name in UNARY else BINARY}) -> Tensor: ..."]
        else:
            lines = lines_of("Tensor", name, member)
        yield from (f"    {line}" for line in lines)


def named_results() -> Iterator[str]:
    """Return the classes of named results, which are tuples with named items."""
    for name, kind in sorted(BY_NAME.items()):
        fields = kind.__match_args__
        yield f"class {name}(tuple[{', '.join(['Tensor'] * len(fields))}]):"
        for field in fields:
            yield "    @property"
            yield f"    def {field}(self) -> Tensor: ..."


def exports(package: ModuleType) -> Iterator[str]:
    """Return the exports of a package: the names that it imports, and the names that it defines (mostly operators)."""
    for statement in ast.parse(inspect.getsource(package)).body:
        if isinstance(statement, ast.ImportFrom):
            source = package.__name__ if statement.level else ""
            source = ".".join(part for part in (source, statement.module) if part)
            names = ", ".join(f"{alias.name} as {alias.asname or alias.name}" for alias in statement.names)
            yield f"from {source} import {names}"
        elif isinstance(statement, ast.AnnAssign):
            yield f"{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)}"
        elif isinstance(statement, ast.Assign):
            name, value = ast.unparse(statement.targets[0]).lstrip("("), ast.unparse(statement.value)
            if name == "_OPERATORS":
                for each in package._OPERATORS:
                    if each in PUBLIC["torch"]:
                        yield f"from adjoint import {each} as {each}"
                    else:
                        yield from lines_of("functional", each, getattr(package, each))
            elif not name.startswith("_"):
                yield f"{name}: {'None' if value == 'None' else type(getattr(package, name)).__name__}"


def package_of(module: str) -> str:
    """Return the name of the package in which type checkers find a module of `adjoint`."""
    first = module.partition(".")[0]
    found = (PACKAGE / "torch_names").glob(f"{ONE_FILE.get(first, first)}*")
    return "adjoint.torch_names" if any(each.stem == ONE_FILE.get(first, first) for each in found) else "adjoint"


def late_exports() -> Iterator[str]:
    """Return the other exports of `adjoint`, which are imported on first use."""
    for package, modules in groupby(sorted(adjoint._MODULES, key=package_of), package_of):
        yield f"from {package} import {', '.join(f'{ONE_FILE.get(name, name)} as {name}' for name in modules)}"
    for module, names in groupby(sorted(adjoint._PLACES, key=adjoint._PLACES.get), adjoint._PLACES.get):
        yield f"from {package_of(module)}.{module} import {', '.join(f'{name} as {name}' for name in names)}"


def headed(lines: list[str]) -> str:
    """Return the text of a file: imports of the names that the lines use, and then the lines."""
    body = "\n".join([*lines, ""])
    written = body + "\n".join([text for name, text in ALIASES.items() if is_in(name, body)])
    aliases = [f"{name}: TypeAlias = {text}" for name, text in ALIASES.items() if is_in(name, written)]
    used = "\n".join([*aliases, "", body])
    imports = []
    for source, names in groupby((name for name in SOURCES if is_in(name, used)), SOURCES.get):
        written = [f"{name[1:]} as {name}" if name.startswith("_") else name for name in names]
        imports.append(f"from {source} import {', '.join(written)}" if source else f"import {written[0]}")
    return "\n".join([HEAD, *imports, "", used])


def is_in(name: str, text: str) -> bool:
    """Return whether a text uses a name without exporting it."""
    return re.search(rf"(?<![\w.]){name}\b", text) is not None and f"{name} as {name}" not in text


def stubs() -> dict[Path, str]:
    """Return the text of each file."""
    load_all()
    files = {
        "__init__.pyi": [*exports(adjoint), *late_exports(), *functions("torch")],
        "nn/functional/__init__.pyi": [*exports(adjoint.nn.functional)],
        "operators/__init__.pyi": [OF_OPERATORS],
        "operators/tensor_methods.pyi": [OF_METHODS, *methods()],
        "linalg.pyi": [OF_LINALG, *functions("linalg")],
        "fft.pyi": [*functions("fft")],
        "special.pyi": [*functions("special")],
        "sparse.pyi": [OF_SPARSE, *functions("sparse")],
        "torch_names/return_types.pyi": [*named_results()],
    }
    return {PACKAGE / name: headed(lines) for name, lines in files.items()}


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")

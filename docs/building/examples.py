"""The example of each public name comes from its docstring, from the declared examples, or from the example of its function.

A declared example is a line `names: statements` in a file of `docs/reference/examples`, followed by lines that are indented by
four spaces. `{}` stands for the name. The output is computed when the site is built and when the tests run, so it cannot become
wrong. If an example ends in `# raises KIND`, its last statement raises such an error, and the error is shown. If it ends in
`# warns`, its last statement warns, and the warning is shown.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import adjoint as torch

from .public_names import PublicName, public_names

FOLDER = Path(__file__).parents[1] / "reference" / "examples"

WITHOUT_EFFECT = """
    torch.accelerator torch.ao.quantization torch.backends.cuda torch.backends.mkl torch.backends.mps torch.backends.nnpack
    torch.backends.openmp torch.cuda torch.cuda.amp torch.cuda.nvtx torch.mps torch.mtia torch.xpu
""".split()
"""Modules that exist for compatibility only. An example would show nothing, so their names need none."""

PRELUDE = """\
import math, numpy
import adjoint as torch
from adjoint import nn
from adjoint.nn import functional as F"""
"""What every declared example may use."""


@cache
def declared() -> dict[str, str]:
    """The declared examples, by the whole name: `torch.acos`."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        text = re.sub("^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for entry in re.split(r"\n(?=\S)", text.strip()):
            names, colon, statements = entry.partition(": ")
            if not colon:
                raise ValueError(f"{path.name}: {entry!r} is not of the form `names: statements`")
            first, *rest = statements.splitlines()
            statements = "\n".join([first, *(line.removeprefix("    ") for line in rest)])
            for name in names.split():
                whole = f"{path.stem}.{name}"
                if whole in found:
                    raise ValueError(f"{path.name}: {whole} has two examples")
                found[whole] = statements.replace("{}", name)
    return found


@cache
def needs() -> dict[str, str]:
    """The package that the declared examples of a module need, by module: the first line of its file says `# needs NAME`."""
    first = {path.stem: path.read_text(encoding="utf-8").partition("\n")[0] for path in FOLDER.glob("*.txt")}
    return {module: line.split()[2] for module, line in first.items() if line.startswith("# needs ")}


def can_run(public: PublicName) -> bool:
    """Whether what the example needs is installed."""
    package = needs().get(public.module)
    return package is None or find_spec(package) is not None


def example_of(public: PublicName) -> str | None:
    """The statements of the example that the docstring lacks; None if there is none."""
    examples = declared()
    if public.path in examples:
        return examples[public.path]
    name = public.name
    function = name.removesuffix("_")
    if public.module == "torch.Tensor" or name.endswith("_"):
        modules = ["torch", "torch.nn.functional"] if public.module == "torch.Tensor" else [public.module, "torch"]
        for module in modules:
            if f"{module}.{name}" in examples and public.module == "torch.Tensor":
                return as_method(examples[f"{module}.{name}"], name, name)
            statements = examples.get(f"{module}.{function}")
            if statements is not None:
                return as_method(statements, function, name, public.module != "torch.Tensor" and public.module)
    return _same_elsewhere().get(id(public.value))


@cache
def _same_elsewhere() -> dict[int, str]:
    """The declared examples by the identity of the object, for objects that have several names."""
    examples = declared()
    return {id(public.value): examples[public.path] for public in public_names() if public.path in examples}


def as_method(statements: str, function: str, name: str, module: str | bool = False) -> str | None:
    """The example of a function as that of the method, or of the in-place variant, with the call rewritten."""
    tree = ast.parse(statements)
    calls = [
        call
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == function
        and call.args
    ]
    if not calls:
        return None
    if not name.endswith("_"):
        for call in calls:
            call.func = ast.Attribute(call.args.pop(0), name, ast.Load())
        return "\n".join(map(ast.unparse, tree.body))
    call = calls[0]
    given = call.args[0]
    if isinstance(given, ast.Name):
        target, before = given, []
    else:
        target = ast.Name("x", ast.Load())
        before = [ast.Assign([ast.Name("x", ast.Store())], given, lineno=1)]
    if module:
        call.func = ast.Attribute(ast.parse(str(module), mode="eval").body, name, ast.Load())
        call.args[0] = target
    else:
        call.args.pop(0)
        call.func = ast.Attribute(target, name, ast.Load())
    return "\n".join(map(ast.unparse, [*tree.body[:-1], *before, ast.Expr(call)]))


def session(statements: str, title: str) -> str:
    """The statements as an interactive session with what they print; an exception that is not announced is raised."""
    announced, warns = re.search(r"# raises (\w+)$", statements), statements.endswith("# warns")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(PRELUDE, names)
    lines = []
    torch.manual_seed(0)
    for statement in ast.parse(statements).body:
        source = ast.get_source_segment(statements, statement) or ast.unparse(statement)
        first, *rest = source.splitlines()
        lines += [f">>> {first}", *(f"... {line}" for line in rest)]
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always" if warns else "ignore")
                exec(compile(ast.Interactive([statement]), title, "single"), names)
            output.writelines(f"{each.category.__name__}: {each.message}\n" for each in warned)
        except Exception as error:
            if announced is None or announced[1] != type(error).__name__:
                raise
            output.write(f"Traceback (most recent call last):\n  ...\n{announced[1]}: {error}")
            announced = None
        lines += output.getvalue().rstrip("\n").splitlines()
    if announced is not None or (warns and not warned):
        raise AssertionError(f"{title}: no {announced[1] if announced else 'warning'} came")
    return "\n".join(re.sub(r" at 0x[0-9a-f]+", " at 0x...", line) for line in lines)


def has_example(public: PublicName) -> bool:
    """Whether the docstring has an example, there is a declared one, or the name needs none."""
    return (
        not public.is_described
        or public.module in WITHOUT_EFFECT
        or ">>>" in public.docstring
        or example_of(public) is not None
    )

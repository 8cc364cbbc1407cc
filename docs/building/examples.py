"""The example of each public name: from its docstring, from the declared examples, or derived from that of its function.

A declared example is a line `names: statements` in a file of `docs/reference/examples`; `{}` stands for the name in each of the
names' examples. What the statements print is computed when the site is built and when the tests run: it cannot become wrong.
Where a line ends in `# raises KIND`, the last statement raises such an error, which is shown.
"""

from __future__ import annotations

import ast
import contextlib
import io
import math
import re
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy

import adjoint as torch
from adjoint import nn

from .public_names import PublicName, public_names

FOLDER = Path(__file__).parents[1] / "reference" / "examples"

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
        module = path.stem
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            names, colon, statements = line.partition(": ")
            if not colon:
                raise ValueError(f"{path.name}, line {number}: not of the form `names: statements`")
            for name in names.split():
                whole = f"{module}.{name}"
                if whole in found:
                    raise ValueError(f"{path.name}, line {number}: {whole} has two examples")
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
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != function:
            continue
        if not call.args:
            continue
        if not name.endswith("_"):
            call.func = ast.Attribute(call.args.pop(0), name, ast.Load())
            return "; ".join(map(ast.unparse, tree.body))
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
        body = [*tree.body[:-1], *before, ast.Expr(call)]
        return "; ".join(map(ast.unparse, body))
    return None


def session(statements: str, title: str) -> str:
    """The statements as an interactive session with what they print; an exception that is not announced is raised."""
    announced = re.search(r"# raises (\w+)$", statements)
    names: dict[str, Any] = {
        "torch": torch,
        "nn": nn,
        "F": nn.functional,
        "math": math,
        "numpy": numpy,
        "__name__": "__main__",
    }
    lines = []
    torch.manual_seed(0)
    for statement in ast.parse(statements).body:
        source = ast.get_source_segment(statements, statement) or ast.unparse(statement)
        first, *rest = source.splitlines()
        lines += [f">>> {first}", *(f"... {line}" for line in rest)]
        output = io.StringIO()
        shown = sys.displayhook
        sys.displayhook = lambda value: None if value is None else print(repr(value))
        try:
            with contextlib.redirect_stdout(output), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(ast.Interactive([statement]), title, "single"), names)
        except Exception as error:
            if announced is None or announced[1] != type(error).__name__:
                raise
            output.write(f"Traceback (most recent call last):\n  ...\n{announced[1]}: {error}")
            announced = None
        finally:
            sys.displayhook = shown
        lines += output.getvalue().rstrip("\n").splitlines()
    if announced is not None:
        raise AssertionError(f"{title}: no {announced[1]} was raised")
    return "\n".join(re.sub(r" at 0x[0-9a-f]+", " at 0x...", line) for line in lines)


def has_example(public: PublicName) -> bool:
    """Whether the docstring shows an example, or there is a declared one."""
    return not public.is_described or ">>>" in public.docstring or example_of(public) is not None

"""Find the example of each public name: in its docstring, in the declared examples, or in the example of its function.

A declared example is a line `names: statements` in a file of `docs/reference/examples`, followed by lines that are indented by
four spaces. `{}` stands for the name. The output is computed when the site is built and when the tests run, so it is
always correct. If an example ends in `# raises KIND`, its last statement raises an error of this class, and the error
is shown. If an example ends in `# warns`, its last statement warns, and the warning is shown.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import warnings
from functools import cache
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import adjoint as torch

from .public_names import PublicName, public_names

FOLDER = Path(__file__).parents[1] / "reference" / "examples"

PRELUDE = """\
import math, numpy
import adjoint as torch
from adjoint import nn
from adjoint.nn import functional as F"""
"""The imports of every declared example."""


@cache
def declared() -> dict[str, str]:
    """Return the declared examples by full name, such as `torch.acos`."""
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


def can_run(public: PublicName) -> bool:
    """Return whether the package that the module's examples need is installed.

    The line `# needs NAME` in the file of examples names the package.
    """
    path = FOLDER / f"{public.module}.txt"
    needed = re.match(r"# needs (\w+)", path.read_text(encoding="utf-8")) if path.exists() else None
    return needed is None or find_spec(needed[1]) is not None


def example_of(public: PublicName) -> str | None:
    """Return the statements of the declared example of a name, or None if there is no such example.

    A method or an in-place variant may have the example of its function. A name may also have the example of another name for the
    same object.
    """
    examples, name, modules = declared(), public.name, [public.module]
    if public.module == "torch.Tensor" or name.endswith("_"):
        modules += ["torch", "torch.nn.functional"]
    places = [f"{module}.{each}" for module in modules for each in (name, name.removesuffix("_"))]
    return next((examples[place] for place in places if place in examples), _same_elsewhere().get(id(public.value)))


@cache
def _same_elsewhere() -> dict[int, str]:
    """Return the declared examples by the identity of the object, for objects that have several names."""
    examples = declared()
    return {id(public.value): examples[public.path] for public in public_names() if public.path in examples}


def session(statements: str, title: str) -> str:
    """Run the statements, and return them as an interactive session with their output. Raise unexpected exceptions."""
    raises, warns = re.search(r"# raises (\w+)$", statements), statements.endswith("# warns")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(PRELUDE, names)
    torch.manual_seed(0)
    lines, came = [], ""
    for statement in ast.parse(statements).body:
        source = ast.get_source_segment(statements, statement) or ""
        lines += [
            f"{prompt} {line}" for prompt, line in zip(chain([">>>"], repeat("...")), source.splitlines(), strict=False)
        ]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always" if warns else "ignore")
            try:
                exec(compile(ast.Interactive([statement]), title, "single"), names)
            except Exception as error:
                came = type(error).__name__
                if raises is None or raises[1] != came:
                    raise
                print(f"Traceback (most recent call last):\n  ...\n{came}: {error}")
            print(*(f"{each.category.__name__}: {each.message}" for each in warned), sep="\n")
        lines += output.getvalue().rstrip("\n").splitlines()
    if (raises and not came) or (warns and not warned):
        raise AssertionError(f"{title}: no {raises[1] if raises else 'warning'} came")
    return re.sub(r" at 0x[0-9a-f]+", " at 0x...", "\n".join(lines))

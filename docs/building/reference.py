"""The pages of the API reference, written from docstrings, type stubs and examples before Sphinx reads the sources."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from functools import cache
from itertools import groupby
from pathlib import Path

from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.rst import escape

from . import examples
from .public_names import PublicName, owner_of, public_names
from .signatures import declaration, signatures

BY_FAMILY = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")
"""The namespaces whose operators are described on one page for each family of operators."""

INTRODUCTION = """\
The examples on this page start with `import adjoint as torch`, `from adjoint import nn`,
`from adjoint.nn import functional as F`, and the seed 0.
"""

NAPOLEON = Config(napoleon_use_param=True, napoleon_use_ivar=True)


def described(public: PublicName) -> list[str]:
    """Return the entry of one name."""
    directive = f".. py:{public.kind}:: "
    calls = [public.path + signature for signature in signatures(public)]
    docstring = public.docstring
    body = GoogleDocstring(docstring, NAPOLEON).lines()
    if ">>>" not in docstring:
        statements = examples.example_of(public)
        if statements is not None and examples.can_run(public):
            session = examples.session(statements, public.path)
            body += ["", ".. code-block:: pycon", "", *(f"   {line}" for line in session.splitlines())]
    if place := declaration(public):
        path, line = place
        link = f"../../../source/{path}.html#line-{line}"
        body += ["", ".. rst-class:: declaration", "", f"`Declared in {path}, line {line} <{link}>`__"]
    options = ["   :no-index:"] if is_alias(public) else []
    more = [" " * len(directive) + call for call in calls[1:]]
    return [directive + calls[0], *more, *options, "", *(f"   {line}" for line in body), ""]


@cache
def first_places() -> dict[tuple[int, str], str]:
    """Return a dictionary from each object and name to the module with the shortest name that contains both."""
    places: dict[tuple[int, str], str] = {}
    for public in sorted(public_names(), key=lambda each: (len(each.module), each.module)):
        places.setdefault((id(public.value), public.name), public.module)
    return places


def is_alias(public: PublicName) -> bool:
    """Return whether a module with a shorter name contains the same object under the same name. Links lead to that module."""
    return first_places()[id(public.value), public.name] != public.module


def section(title: str, character: str, *lines: str) -> list[str]:
    """Return a heading and its text."""
    return [escape(title), character * (len(escape(title)) + 1), "", *lines, ""]


def contents(pages: list[str]) -> list[str]:
    """Return a table of contents."""
    return [".. toctree::", "   :maxdepth: 1", "", *(f"   {page}" for page in pages), ""]


def values(names: list[PublicName]) -> list[str]:
    """Return a table of the public names that are not functions or classes."""
    rows = [f"   `{public.path}`\t`{repr(public.value)[:90].replace('`', '')}`" for public in names]
    table = [".. csv-table::", "   :delim: tab", "   :header-rows: 1", "", "   name\tvalue", *rows, ""]
    return section("Values", "-", *table) if names else []


def title_of(family: str, ends: str = r"[.;] ") -> str:
    """Return the beginning of the docstring of a family of operators, or of a folder of families."""
    text = str(importlib.import_module(f"adjoint.operators.{family}").__doc__).strip()
    return re.split(ends, text.splitlines()[0])[0].rstrip(".")


def family_page(family: str, names: list[PublicName]) -> list[str]:
    """Return the page with the functions, methods and in-place variants of a family of operators."""
    lines = section(title_of(family), "=", INTRODUCTION)
    for title in dict.fromkeys(public.name.rstrip("_") for public in names):
        same = [public for public in names if public.name.rstrip("_") == title]
        lines += section(title, "-", *(line for public in same for line in described(public)))
    return lines


def module_page(module: str, names: list[PublicName]) -> list[str]:
    """Return the page with the names of a module or class."""
    first = (owner_of(module).__doc__ or "").strip().split("\n\n")[0]
    lines = section(module, "=", first, "", INTRODUCTION)
    lines += values([public for public in names if not public.is_described])
    for public in names:
        if public.is_described:
            lines += section(public.name, "-", *described(public))
    return lines


def pages() -> dict[str, list[str]]:
    """Return the lines of each page, by the name of the page without extension."""
    families: dict[str, list[PublicName]] = defaultdict(list)
    modules: dict[str, list[PublicName]] = defaultdict(list)
    for public in public_names():
        in_family = public.is_described and public.module in BY_FAMILY and public.family
        (families[public.family] if in_family else modules[public.module]).append(public)
    made = {}
    for group, write_page, group_of in (("operators", family_page, families), ("modules", module_page, modules)):
        for name, names in group_of.items():
            names.sort(key=lambda each: (each.name.rstrip("_").lower(), each.module == "torch.Tensor", each.path))
            made[f"{group}/{name}"] = write_page(name, names)
    about = "By subject. Each entry has the function, the method and the in-place variant."
    made["operators/index"] = section("Functions and methods of tensors", "=", about)
    for area, members in groupby(sorted(families), lambda family: family.partition(".")[0]):
        made["operators/index"] += section(title_of(area, "[:;] "), "-", *contents([*members]))
    made["modules/index"] = section("Modules", "=", *contents(sorted(modules)))
    return made


def write(folder: Path) -> None:
    """Write the pages that have changed, and remove pages that no longer belong to the reference."""
    made = {folder / f"{name}.rst": "\n".join(lines) + "\n" for name, lines in pages().items()}
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in {*folder.rglob("*.rst"), *folder.rglob("*.md")} - set(made):
        path.unlink()

"""The pages of the API reference, written from docstrings, type stubs and examples before Sphinx reads the sources."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from . import examples
from .public_names import PublicName, owner_of, public_names

BY_FAMILY = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")
"""The namespaces whose operators are described together, a page for each family of operators."""

AREAS = {
    "math": "Arithmetic and functions of elements",
    "reduce": "Reductions, sorting, statistics",
    "shape": "Shapes, views, joining",
    "index": "Indexing, gathering, masking",
    "linalg": "Linear algebra",
    "nn": "Operators of neural networks",
    "create": "Creation and random numbers",
    "memory": "Copies, conversion, storage",
    "sparse": "Sparse tensors",
}

SECTION = re.compile(
    r"^(Args|Arguments|Keyword Args|Raises|Returns|Yields|Attributes|Shape|Shapes|Note|Notes|Warns):\s*$"
)
CODE = re.compile(r"(`+)(?:.+?)\1", re.DOTALL)
FENCE = ":" * 6


def markdown(text: str) -> str:
    """Prose of a docstring as MyST: what is in backticks stays, other characters that mean something are escaped."""
    parts, position = [], 0
    for match in CODE.finditer(text):
        parts += [_escaped(text[position : match.start()]), " ".join(match.group().split())]
        position = match.end()
    return "".join([*parts, _escaped(text[position:])])


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<>\[\]$|#{}~])", r"\\\1", text)


def body(docstring: str) -> list[str]:
    """A docstring as lines of MyST."""
    lines = docstring.expandtabs().splitlines()
    result: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.lstrip().startswith(">>>"):
            block = []
            indent = len(line) - len(line.lstrip())
            while number < len(lines) and lines[number].strip():
                block.append(lines[number][indent:])
                number += 1
            result += ["", "```pycon", *block, "```", ""]
            continue
        heading = SECTION.match(line)
        if heading:
            number += 1
            items = []
            while number < len(lines) and (not lines[number].strip() or lines[number].startswith(" ")):
                items.append(lines[number])
                number += 1
            result += ["", f"**{heading.group(1)}**", "", *_items(items), ""]
            continue
        if line.startswith("    "):
            block = []
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number].strip()):
                block.append(lines[number])
                number += 1
            while block and not block[-1].strip():
                block.pop()
            result += ["", "```text", *block, "```", ""]
            continue
        paragraph = []
        while (
            number < len(lines)
            and lines[number].strip()
            and not lines[number].lstrip().startswith(">>>")
            and not SECTION.match(lines[number])
            and not lines[number].startswith("    ")
        ):
            paragraph.append(lines[number].strip())
            number += 1
        if paragraph:
            listed = all(entry.startswith(("- ", "  ")) for entry in paragraph[:1])
            result += [""] + [
                ("- " + markdown(entry[2:]) if entry.startswith("- ") and listed else markdown(entry))
                for entry in _joined(paragraph, listed)
            ]
        else:
            result.append("")
            number += 1
    return result


def _joined(paragraph: list[str], listed: bool) -> list[str]:
    """The lines as one string, or one for each point of a list, so that backticks that span lines stay together."""
    if not listed:
        return [" ".join(paragraph)]
    entries: list[str] = []
    for line in paragraph:
        if line.startswith("- "):
            entries.append(line)
        else:
            entries[-1] += " " + line
    return entries


def _items(lines: list[str]) -> list[str]:
    """The entries `name: text` of a section as a list."""
    written = [line for line in lines if line.strip()]
    if not written:
        return []
    least = min(len(line) - len(line.lstrip()) for line in written)
    entries: list[str] = []
    for line in written:
        if len(line) - len(line.lstrip()) == least or not entries:
            entries.append(line.strip())
        else:
            entries[-1] += " " + line.strip()
    result = []
    for entry in entries:
        name, colon, text = entry.partition(": ")
        if colon and len(name) < 60:
            result.append(f"- **{markdown(name)}**: {markdown(text)}")
        else:
            result.append(f"- {markdown(entry)}")
    return result


def described(public: PublicName, page: str) -> list[str]:
    """The entry of one name."""
    kind = public.kind
    directive = {"attribute": "attribute", "exception": "exception", "class": "class", "method": "method"}.get(
        kind, "function"
    )
    signatures = [public.path + signature for signature in public.signatures]
    lines = [f"{FENCE}{{py:{directive}}} {signatures[0]}", *signatures[1:], ""]
    if len(signatures) > 1:
        lines = [
            f"{FENCE}{{py:{directive}}} {signatures[0]}",
            *[f"  {' ' * len(directive)}   {more}" for more in signatures[1:]],
            "",
        ]
    if is_alias(public):
        lines.insert(-1, ":no-index:")
    docstring = public.docstring
    lines += body(docstring)
    if ">>>" not in docstring:
        statements = examples.example_of(public)
        if statements is not None and examples.can_run(public):
            lines += ["", "```pycon", examples.session(statements, public.path), "```"]
    place = public.declaration
    if place is not None:
        path, first, _ = place
        link = f"../../../source/{path}.html#line-{first}"
        lines += ["", f"<div class='declaration'><a href='{link}'>Declared in {path}, line {first}</a></div>"]
    return [*lines, "", FENCE, ""]


@cache
def first_places() -> dict[tuple[int, str], str]:
    """The first module, by the length of its name, in which an object has a name."""
    places: dict[tuple[int, str], str] = {}
    for public in sorted(public_names(), key=lambda each: (len(each.module), each.module)):
        places.setdefault((id(public.value), public.name), public.module)
    return places


def is_alias(public: PublicName) -> bool:
    """Whether the same object has the same name in another module, where links lead."""
    return first_places()[id(public.value), public.name] != public.module


def title_of(family: str) -> str:
    """What a family of operators is, from the docstring of its module."""
    text = (importlib.import_module(f"adjoint.operators.{family}").__doc__ or family).strip().splitlines()[0]
    return re.split(r"[.;] ", text)[0].rstrip(".")


def constants(names: list[PublicName]) -> list[str]:
    """A table of values that are no functions or classes."""
    if not names:
        return []
    rows = [f"| `{public.path}` | `{repr(public.value)[:90].replace('|', '/').replace('`', '')}` |" for public in names]
    return ["", "## Values", "", "| name | value |", "|---|---|", *rows, ""]


INTRODUCTION = (
    "The examples on this page start with `import adjoint as torch`, `from adjoint import nn`, "
    "`from adjoint.nn import functional as F`, and the seed 0."
)


def pages() -> dict[str, str]:
    """The text of each page, by its name without extension."""
    by_page: dict[str, list[PublicName]] = defaultdict(list)
    values: dict[str, list[PublicName]] = defaultdict(list)
    for public in public_names():
        if not public.is_described:
            values[public.module].append(public)
        elif public.module in BY_FAMILY and public.family:
            by_page[f"operators/{public.family}"].append(public)
        elif public.module == "torch":
            by_page["modules/torch"].append(public)
        else:
            by_page[f"modules/{public.module}"].append(public)
    texts = {}
    places: dict[str, str] = {}
    for page in sorted({*by_page, *(f"modules/{module}" for module in values)}):
        group, name = page.split("/")
        names = sorted(
            by_page[page],
            key=lambda public: (public.name.rstrip("_").lower(), public.module == "torch.Tensor", public.path),
        )
        if group == "operators":
            lines = [f"# {markdown(title_of(name))}", "", INTRODUCTION, ""]
            seen: dict[str, None] = dict.fromkeys(public.name.rstrip("_") for public in names)
            for heading in seen:
                lines += [f"## {markdown(heading)}", ""]
                for public in names:
                    if public.name.rstrip("_") == heading:
                        lines += described(public, page)
        else:
            owner = owner_of(name)
            first = ((owner.__doc__ or "").strip() if owner is not None else "").split("\n\n")[0]
            lines = [f"# {markdown(name)}", "", markdown(" ".join(first.split())), "", INTRODUCTION, ""]
            lines += constants(values.get(name, []))
            for public in names:
                lines += [f"## {markdown(public.name)}", "", *described(public, page)]
        texts[page] = "\n".join(lines) + "\n"
        places.update({public.path: page for public in names})
    texts["operators/index"] = _operators_index(by_page)
    texts["modules/index"] = _modules_index(by_page, values)
    return texts


def _operators_index(by_page: dict[str, list[PublicName]]) -> str:
    lines = [
        "# Functions and methods of tensors",
        "",
        "By subject. Each entry has the function, the method and the in-place variant.",
        "",
    ]
    for area, title in AREAS.items():
        families = sorted(page.removeprefix("operators/") for page in by_page if page.startswith(f"operators/{area}."))
        lines += [f"## {title}", "", "```{toctree}", ":maxdepth: 1", "", *families, "```", ""]
    return "\n".join(lines)


def _modules_index(by_page: dict[str, list[PublicName]], values: dict[str, list[PublicName]]) -> str:
    modules = sorted({page.removeprefix("modules/") for page in by_page if page.startswith("modules/")} | set(values))
    return "\n".join(["# Modules", "", "```{toctree}", ":maxdepth: 1", "", *modules, "```", ""])


def write(folder: Path) -> None:
    """Write the pages that changed, and remove those that are no longer made."""
    made = pages()
    for name, text in made.items():
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.md"):
        if str(path.relative_to(folder).with_suffix("")) not in made:
            path.unlink()

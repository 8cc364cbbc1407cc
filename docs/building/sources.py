"""Pages that show the source of the package, for the links from the reference and from other pages."""

from __future__ import annotations

import re
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from .public_names import PACKAGE

FORMAT = HtmlFormatter(linenos="inline", lineanchors="line")
PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>
<link rel="stylesheet" href="{up}_static/source.css">
<body><p><a href="{up}index.html">adjoint</a> / {name}</p>{code}</body></html>
"""

LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:adjoint|tests|benchmarks)/[^)#\s]*|tests|CONTRIBUTING\.md)\)")


def write(folder: Path) -> None:
    """Write the page of each module that has changed since its page was written."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE.parent))
        target = folder / f"{name}.html"
        if target.exists() and target.stat().st_mtime > path.stat().st_mtime:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        code = highlight(path.read_text(encoding="utf-8"), PythonLexer(), FORMAT)
        target.write_text(PAGE.format(name=name, up="../" * (name.count("/") + 1), code=code), encoding="utf-8")


def link_to_sources(text: str, depth: int) -> str:
    """Replace links to modules by links to the pages of their source. Replace links to other files by plain text."""

    def replaced(match: re.Match[str]) -> str:
        label, path = match.groups()
        if not (path.startswith("adjoint/") and path.endswith(".py")):
            return label
        code = re.sub(r"`([^`]+)`", r"<code>\1</code>", label)
        return f'<a href="{"../" * depth}source/{path}.html">{code}</a>'

    return LINK.sub(replaced, text)

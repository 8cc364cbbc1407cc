"""Pages that show the source of the package, for the links from the reference and from the page on the architecture."""

from __future__ import annotations

import re
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from .public_names import PACKAGE

STYLE = """\
body { margin: 0 auto; max-width: 70rem; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; background: #fff; color: #222; }
pre { font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; }
:target, .linenos { color: #888; } a { color: #0a7d91; }
@media (prefers-color-scheme: dark) { body { background: #14181e; color: #ced6dd; } }
"""


def page(relative: str, text: str) -> str:
    """The page of one file."""
    light = HtmlFormatter(
        style="a11y-high-contrast-light" if False else "default",
        linenos="inline",
        lineanchors="line",
        nobackground=True,
    )
    dark = HtmlFormatter(style="github-dark", nobackground=True)
    dark_rules = "\n".join(
        line for line in dark.get_style_defs(".highlight").splitlines() if line.startswith(".highlight")
    )
    up = "../" * relative.count("/") + "../"
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{relative}</title><style>{light.get_style_defs('.highlight')}\n{STYLE}"
        f"@media (prefers-color-scheme: dark) {{ {dark_rules} }}</style></head>"
        f"<body><p><a href='{up}index.html'>adjoint</a> / {relative}</p>{highlight(text, PythonLexer(), light)}</body></html>"
    )


def write(folder: Path) -> None:
    """Write a page for each module that is newer than its page."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = str(path.relative_to(PACKAGE.parent))
        target = folder / f"{relative}.html"
        if target.exists() and target.stat().st_mtime > path.stat().st_mtime:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(relative, path.read_text(encoding="utf-8")), encoding="utf-8")


LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)+((?:adjoint|tests|benchmarks)/[^)#\s]*|tests|CONTRIBUTING\.md)\)")


def link_to_sources(text: str, depth: int) -> str:
    """Links of a page to files of the repository, as links to the pages of their source; a folder's becomes plain text."""

    def replaced(match: re.Match[str]) -> str:
        label, path = match.groups()
        if path.startswith("adjoint/") and path.endswith(".py"):
            return f'<a href="{"../" * depth}source/{path}.html">{_code(label)}</a>'
        return label

    return LINK.sub(replaced, text)


def _code(label: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", label)

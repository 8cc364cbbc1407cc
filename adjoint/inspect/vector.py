"""Parts of SVG documents: coordinates, text, and the document around them with a style for each colour scheme."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from .display import part
from .palette import COLOURS

FONT = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'


def number_text(value: float) -> str:
    """Return a coordinate with one decimal."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def text_at(words: str, x: float, y: float, css: str) -> str:
    """Return text at a point."""
    return f'<text class="{css}" x="{number_text(x)}" y="{number_text(y)}">{escape(words, quote=False)}</text>'


def document(name: str, title: str, width: float, height: float, margin: float, body: Iterable[str]) -> str:
    """Return a document with `margin` around its origin. The rules in `name.css` apply to it alone."""
    measures = f'width="{number_text(width)}" height="{number_text(height)}"'
    size = f'viewBox="-{margin:g} -{margin:g} {number_text(width)} {number_text(height)}" {measures}'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="adjoint-{name}" {size} role="img" aria-label="{escape(title)}"'
    )
    return "\n".join(
        [
            f"{head} font-family='{FONT}'><title>{escape(title)}</title>",
            f"<style>{_style(name)}</style>",
            f'<rect class="page" x="-{margin:g}" y="-{margin:g}" width="100%" height="100%" rx="10"/>',
            *body,
            "</svg>\n",
        ]
    )


def _style(name: str) -> str:
    """Return the rules for the light scheme, and the rules with colours for the dark scheme."""
    rules = re.sub(r"(^|,)(?=[.a-z][^{}]*{)", rf"\1.adjoint-{name} ", part(f"{name}.css").strip(), flags=re.MULTILINE)
    coloured = "".join(rule for rule in rules.splitlines() if "$" in rule)
    light, dark = (_coloured(each, scheme) for scheme, each in enumerate((rules.replace("\n", ""), coloured)))
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


def _coloured(rules: str, scheme: int) -> str:
    return re.sub(r"\$([a-z-]+)", lambda name: COLOURS[name[1]][scheme], rules)

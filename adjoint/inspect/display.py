"""Results that a notebook displays, and that are saved in the format of a file name's extension. Their pages are in `page/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

PLACE = re.compile(r"\{\{([\w.]+)\}\}")
"""A placeholder in a template, for a value or for a file with styles or scripts."""


class Display:
    """A result that is displayed as its text in a terminal, and as its page in a notebook."""

    forms: ClassVar[Mapping[str, str]]
    """The method that returns the text of a file, by the extension of its name."""

    def __repr__(self) -> str:
        return str(self)

    def html(self) -> str:
        """Return a self-contained page."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        page = escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 640px; border: 1px solid #8884"></iframe>'

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the result to a file in the format of the file name's extension, and return the path.

        Raises:
            ValueError: if the extension is not supported.
        """
        target = Path(path)
        text: str = getattr(self, form_of(target, self.forms))()
        target.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        return target


def form_of(path: str | PathLike[str], forms: Mapping[str, str]) -> str:
    """Return the format for the extension of a file name."""
    form = forms.get(Path(path).suffix.lower())
    if form is None:
        raise ValueError(f"save(): expected a name that ends in {', '.join(forms)}, but got {Path(path).name!r}")
    return form


def filled(template: str, **values: Any) -> str:
    """Return a template with values, and with the files that it names, in place of its placeholders."""
    return PLACE.sub(lambda place: values.get(place[1]) or part(place[1]), part(template))


@cache
def part(name: str) -> str:
    """Return the content of a file in `page/`."""
    return (files("adjoint.inspect") / "page" / name).read_text(encoding="utf-8")

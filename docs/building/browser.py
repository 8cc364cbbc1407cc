"""The lessons as notebooks that run in a reader's browser, and the wheel that the notebooks install."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook

ROOT = Path(__file__).parents[2]
LESSONS = ("ten-pictures", "your-own-function", "explain", "transforms")


def notebook(text: str) -> Any:
    """Return a page as a notebook. The notebook contains links as plain text, and pictures as values of their cells."""
    made = read_myst_markdown_notebook(text)
    cells = [nbformat.v4.new_code_cell("%pip install -q adjoint-autograd")]
    for cell in made.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", cell.source)
        else:
            cell.source = re.sub(r'^show\((.+), "[\w-]+".*\)$', r"\1", cell.source, flags=re.MULTILINE)
        if "remove-cell" not in cell.metadata.get("tags", ()):
            cells.append(cell)
    made.cells = cells
    made.metadata = {"kernelspec": {"name": "python", "display_name": "Python"}, "language_info": {"name": "python"}}
    return made


def write(notebooks: Path, wheels: Path) -> Path:
    """Write the notebooks and the wheel to two folders. Return the path of the wheel."""
    for folder in (notebooks, wheels):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for name in LESSONS:
        page = ROOT / "docs" / "learn" / f"{name}.md"
        nbformat.write(notebook(page.read_text(encoding="utf-8")), notebooks / f"{name}.ipynb")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = wheels.glob("*.whl")
    return wheel

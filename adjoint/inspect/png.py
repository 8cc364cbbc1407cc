"""Conversion of SVG to PNG, by any suitable program or package on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .._runtime.installed import install
from .._runtime.platform import subprocess

SCALE = 2
"""The number of pixels of the image for each pixel of the drawing."""

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 60


def write(drawing: str, target: Path) -> None:
    """Write the SVG document `drawing` to the file `target`.

    Raises:
        RuntimeError: if no converter is installed, or if all converters have failed.
    """
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "drawing.svg"
        source.write_text(drawing, encoding="utf-8")
        for name, render in renderers(drawing):
            target.unlink(missing_ok=True)
            try:
                render(source, target.resolve())
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                failures.append(f"{name}: {error}")
            if target.exists() and target.stat().st_size:
                return
    if failures:
        raise RuntimeError("The picture could not be written as PNG.\n" + "\n".join(failures))
    raise RuntimeError(
        "A PNG needs a program that draws SVG: install Chromium, librsvg (`rsvg-convert`), Inkscape or CairoSVG "
        f"({install('inspect')}); or save the picture as .svg."
    )


def renderers(drawing: str) -> Iterator[tuple[str, Callable[[Path, Path], object]]]:
    """Return the available converters, the most faithful first."""
    chromium = next((program for name in CHROMIUMS if (program := shutil.which(name))), None)
    if chromium is not None:
        yield "chromium", partial(_by_chromium, chromium, drawing)
    rsvg = shutil.which("rsvg-convert")
    if rsvg is not None:
        zoom = rsvg, "--zoom", str(SCALE)
        yield "rsvg-convert", lambda source, target: _run(*zoom, "-o", str(target), str(source))
    inkscape = shutil.which("inkscape")
    if inkscape is not None:
        scale = f"--export-dpi={96 * SCALE}"
        yield "inkscape", lambda source, target: _run(inkscape, str(source), scale, f"--export-filename={target}")
    if importlib.util.find_spec("cairosvg") is not None:
        yield "cairosvg", _by_cairosvg


def _by_chromium(program: str, drawing: str, source: Path, target: Path) -> None:
    width, height = size(drawing)
    page = source.with_suffix(".html")
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><style>body {{ margin: 0 }} svg {{ display: block }}</style>{drawing}',
        "utf-8",
    )
    root = getattr(os, "geteuid", lambda: 1)() == 0  # root cannot use the sandbox
    _run(
        program, "--headless", *(["--no-sandbox"] if root else []), "--disable-gpu", "--hide-scrollbars",
        f"--user-data-dir={source.parent / 'profile'}", f"--force-device-scale-factor={SCALE}", f"--window-size={width},{height}",
        f"--screenshot={target}", page.as_uri(),
    )  # fmt: skip


def _by_cairosvg(source: Path, target: Path) -> None:
    import cairosvg

    cairosvg.svg2png(url=str(source), write_to=str(target), scale=SCALE)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)


def size(drawing: str) -> tuple[int, int]:
    """Return the width and height of an SVG document, in pixels."""
    found = re.search(r'viewBox="\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)', drawing)
    if found is None:
        raise ValueError("the drawing has no size")
    return int(float(found[1])) + 1, int(float(found[2])) + 1

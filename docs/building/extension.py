"""The extension of Sphinx: it writes the reference, the pages of the source and the players."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from . import reference, sources


def before_reading(app: Any) -> None:
    """Write the pages of the reference."""
    began = time.perf_counter()
    reference.write(Path(app.srcdir) / "reference" / "generated")
    print(f"reference written in {time.perf_counter() - began:.0f} s")


def on_source(app: Any, name: str, source: list[str]) -> None:
    """Point the links to files of the repository at the pages of their source."""
    source[0] = sources.link_to_sources(source[0], name.count("/"))


def after_writing(app: Any, exception: Exception | None) -> None:
    """Write the pages of the source."""
    if exception is None and app.builder.name == "html":
        sources.write(Path(app.outdir) / "source")


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    os.environ["ADJOINT_DOCS_PLAYERS"] = str(Path(app.outdir) / "players")
    app.connect("builder-inited", before_reading)
    app.connect("source-read", on_source)
    app.connect("build-finished", after_writing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

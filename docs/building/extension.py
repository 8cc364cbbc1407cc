"""The extension of Sphinx, which writes the reference, the pages of the source and the players."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager

from . import browser, reference, sources


def before_reading(app: Any) -> None:
    """Write the pages of the reference, and the files that the lessons in the browser need."""
    reference.write(Path(app.srcdir) / "reference" / "generated")
    if "jupyterlite_sphinx" in app.extensions:
        lessons = Path(app.config.jupyterlite_content_dir)
        wheel = browser.write(lessons, Path(app.config.jupyterlite_dir))
        app.config.jupyterlite_build_command_options = {"piplite-wheels": str(wheel)}


def on_source(app: Any, name: str, source: list[str]) -> None:
    """Replace links to files of the repository by links to the pages of their source."""
    source[0] = sources.link_to_sources(source[0], name.count("/"))


def without_edit_button(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Remove the edit button from pages of the reference, which have no source in the repository."""
    if page.startswith("reference/generated"):
        context["theme_use_edit_page_button"] = False
        context["theme_secondary_sidebar_items"] = ["page-toc"]


def after_writing(app: Any, exception: Exception | None) -> None:
    """Write the pages of the source."""
    if exception is None and app.builder.name == "html":
        sources.write(Path(app.outdir) / "source")


def quiet_kernels() -> None:
    """Make the kernels that run pages log errors only, regardless of the settings of Jupyter on the machine."""
    folder = Path(tempfile.mkdtemp(prefix="adjoint-docs-"))
    profile = folder / "profile_default"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n", encoding="utf-8")
    os.environ["IPYTHONDIR"] = str(folder)
    if os.name == "posix":
        talk_through_files(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def talk_through_files(folder: Path) -> None:
    """Make kernels use sockets in `folder`.

    Kernels of two processes that start simultaneously could choose the same port.
    """
    construct = AsyncKernelManager.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        self.transport, self.ip = "ipc", str(folder / f"kernel-{os.getpid()}-{id(self)}")

    AsyncKernelManager.__init__ = __init__


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    quiet_kernels()
    os.environ["ADJOINT_DOCS_PLAYERS"] = str(Path(app.outdir) / "players")
    app.connect("builder-inited", before_reading)
    app.connect("source-read", on_source)
    app.connect("html-page-context", without_edit_button, priority=400)
    app.connect("build-finished", after_writing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

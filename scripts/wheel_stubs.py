"""A build hook of hatchling that puts the stubs of `second_names.py` into a wheel. `pyproject.toml` names the hook."""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelStubs(BuildHookInterface):
    """The build hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stubs to a temporary folder, and add them to the wheel."""
        if version == "editable":  # an editable wheel uses the files of the checkout, and no other files
            return
        self.folder = tempfile.TemporaryDirectory()
        stubs = runpy.run_path(str(Path(self.root, "scripts", "second_names.py")))["stubs"]
        for name, text in stubs(Path(self.root)).items():
            path = Path(self.folder.name, name.replace("/", "."))
            path.write_text(text, encoding="utf-8")
            build_data["force_include"][str(path)] = name

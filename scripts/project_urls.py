"""Add links on the distribution's page to the repository that builds the distribution.

`pyproject.toml` names this metadata hook of hatchling. In a workflow, the environment contains the address of the repository. In
a clone, the address is the remote `origin`. Without an address, the distribution has no links.
"""

import os
import re
import subprocess
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def repository(root: str) -> str | None:
    """Return the address of the repository, such as `https://host/owner/name`."""
    if name := os.environ.get("GITHUB_REPOSITORY"):
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}"
    try:
        asked = subprocess.run(
            ["git", "-C", root, "remote", "get-url", "origin"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.fullmatch(r"(?:https://|git@|ssh://git@)([\w.-]+\.\w+)[:/](.+?)(?:\.git)?/?", asked.stdout.strip())
    return found and f"https://{found[1]}/{found[2]}"


class ProjectURLs(MetadataHookInterface):
    """The metadata hook."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the links if the address of the repository is known."""
        if source := repository(self.root):
            metadata["urls"] = {
                "Source": source,
                "Changelog": f"{source}/blob/main/CHANGELOG.md",
                "Issues": f"{source}/issues",
            }

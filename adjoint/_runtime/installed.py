"""The distribution that this package belongs to: its name, its version and its extras."""

from __future__ import annotations

DISTRIBUTION = "adjoint-autograd"
"""The name of the package `adjoint` in pip."""


def version() -> str:
    """Return the version of the installed distribution, which is the tag of its release, or "0+unknown"."""
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0+unknown"


def install(extra: str) -> str:
    """Return the command that installs an extra, for messages.

    >>> install("fast")
    "pip install 'adjoint-autograd[fast]'"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"

"""The mode in which PyTorch records operators while functions run; here there is none."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """None: no operators are recorded as a graph while a function runs."""

"""The printed form of a module: the modules in it, one a line, indented."""

from __future__ import annotations

from typing import Any


def printed(module: Any) -> str:
    """The printed form of `module`: its name, its `extra_repr`, and the modules in it."""
    extra = module.extra_repr()
    lines = extra.split("\n") if extra else []
    if not module._modules and len(lines) <= 1:
        return f"{module._get_name()}({extra})"
    for name, inner in module._modules.items():
        lines.append(f"({name}): {indented(repr(inner))}")
    return f"{module._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def indented(text: str) -> str:
    """`text` with all lines but the first indented by two spaces."""
    return text.replace("\n", "\n  ")

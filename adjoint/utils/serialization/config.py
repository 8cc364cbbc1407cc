"""The settings of `save` and `load` as attributes, and a context that changes settings temporarily.

`load.calculate_storage_offsets` and `save.use_pinned_memory_for_d2h` change nothing here.

>>> import adjoint as torch
>>> torch.utils.serialization.config.save.storage_alignment
64
>>> with torch.utils.serialization.config.patch("save.storage_alignment", 4096):
...     torch.utils.serialization.config.save.storage_alignment
4096
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import adjoint as torch

__all__ = ["load", "patch", "save"]

SETTINGS = torch.serialization.options.SETTINGS


def _known(name: str) -> str:
    if name not in SETTINGS:
        raise AttributeError(f"torch.utils.serialization.config.{name} does not exist")
    return name


class _Section:
    """The settings whose names begin with the name of the section."""

    def __init__(self, name: str) -> None:
        vars(self)["_name"] = name

    def _full(self, name: str) -> str:
        return _known(f"{self._name}.{name}")

    def __getattr__(self, name: str) -> Any:
        return SETTINGS[self._full(name)]

    def __setattr__(self, name: str, value: Any) -> None:
        SETTINGS[self._full(name)] = value


load, save = _Section("load"), _Section("save")


@contextmanager
def patch(name: str | dict[str, Any], value: Any = None) -> Iterator[None]:
    """Change one setting, such as `"save.compute_crc32"`, or several, and restore them at the end of the `with` block."""
    changes = name if isinstance(name, dict) else {name: value}
    before = {each: SETTINGS[_known(each)] for each in changes}
    SETTINGS.update(changes)
    try:
        yield
    finally:
        SETTINGS.update(before)

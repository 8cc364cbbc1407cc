"""These tests are about the code that NumPy runs; the compiled loops have their own."""

from __future__ import annotations

import pytest

from adjoint.codegen.acceleration import LOOPS


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    """Leave large arrays to NumPy."""
    monkeypatch.setattr(LOOPS, "_enabled", False)

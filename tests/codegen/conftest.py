"""These tests cover code that runs in NumPy. The folder `llvm/` tests compiled loops."""

from __future__ import annotations

import pytest

from adjoint.codegen.acceleration import LOOPS


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    """Compute large arrays with NumPy."""
    monkeypatch.setattr(LOOPS, "_enabled", False)

"""These tests cover compiled loops. The tests in the parent folder cover NumPy."""

import pytest

from adjoint.codegen.acceleration import LOOPS


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    """Use compiled loops for large arrays, even if the environment turns them off."""
    monkeypatch.setattr(LOOPS, "_enabled", LOOPS.available)

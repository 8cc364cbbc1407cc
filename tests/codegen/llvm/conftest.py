"""These tests cover compiled loops. The tests in the parent folder cover NumPy."""

import pytest


@pytest.fixture(autouse=True)
def numpy_alone():
    """Use compiled loops for large arrays."""

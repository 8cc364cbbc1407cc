"""These tests cover compiled loops, unlike the tests in the parent folder."""

import pytest


@pytest.fixture(autouse=True)
def numpy_alone():
    """Compiled loops compute large arrays."""

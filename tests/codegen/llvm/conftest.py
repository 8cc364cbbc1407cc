"""These tests are about compiled loops, unlike the tests of the folder above."""

import pytest


@pytest.fixture(autouse=True)
def numpy_alone():
    """Large arrays are left to compiled loops."""

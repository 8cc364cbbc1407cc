"""Tests of compiled code are skipped where it is off."""

import pytest

from adjoint.codegen.acceleration import LOOPS


@pytest.fixture(autouse=True)
def needs_compiled_code():
    if not LOOPS.enabled:
        pytest.skip("compiled code is off")

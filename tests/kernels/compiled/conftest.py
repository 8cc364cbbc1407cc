"""Skip tests of compiled code if compilation is disabled."""

import pytest

from adjoint.codegen.acceleration import LOOPS


@pytest.fixture(autouse=True)
def needs_compiled_code():
    if not LOOPS.enabled:
        pytest.skip("compiled code is off")

"""The process keeps freed memory, unless the user has chosen other settings."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import adjoint as torch
def step():
    kept = [torch.ones(1 << 20) for _ in range(4)]
    return sum(kept)
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(**environment):
    return int(
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


@pytest.mark.thorough
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_steps_reuse_the_memory_of_the_step_before():
    assert _faults() < 100
    assert _faults(MALLOC_TRIM_THRESHOLD_="131072") > 1000

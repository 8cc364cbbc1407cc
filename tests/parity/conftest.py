"""Tests with known differences from PyTorch. `known_differences.txt` lists these tests with the reasons.

A listed test that passes counts as a failure, so that entries of removed differences are removed too.
"""

import warnings
from pathlib import Path

import pytest

from tests import environment

try:
    import torch
except ImportError:
    pass  # without PyTorch, all these tests are skipped
else:
    if environment.PROCESSES > 1:
        torch.set_num_threads(environment.SHARE)
    with (
        warnings.catch_warnings()
    ):  # the first forward-mode call of PyTorch in a process imports this module, which warns
        warnings.simplefilter("ignore", DeprecationWarning)
        import torch._decomp.decompositions_for_jvp

LIST = Path(__file__).with_name("known_differences.txt")


def known_differences() -> dict[str, str]:
    """Return the reasons by test, `file::name`. A line that begins with `# ` is the reason for the tests below it."""
    reasons, reason = {}, ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.strip():
            reasons[line] = reason
    return reasons


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = known_differences()
    for item in items:
        name = item.nodeid.rpartition("tests/parity/")[2]
        if name in reasons:
            item.add_marker(pytest.mark.xfail(reason=reasons[name], strict=True))

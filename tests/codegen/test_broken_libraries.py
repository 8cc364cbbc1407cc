"""An optional library that is installed but cannot be imported counts as not available."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import adjoint as torch
x = torch.rand(300, 300, requires_grad=True)
for _ in range(3):
    (x.exp().lgamma().cumsum(1).softmax(1) * torch.special.i0(x)).sum().backward()
    x.half() @ x.half(), torch.optim.Adam([x]).step()
matrix = torch.eye(3).to_sparse_csr() @ torch.ones(3, 3)
print(torch.backends.llvm.is_available(), torch.backends.llvm.enabled, matrix.sum().item(), torch.backends.llvm.describe())
torch.backends.llvm.enabled = True
print(torch.backends.llvm.enabled, torch.backends.cpu.get_cpu_capability())
"""


@pytest.mark.parametrize("error", ["ImportError", "OSError"])
def test_a_library_that_cannot_be_imported(tmp_path, error):
    for name in ("llvmlite", "scipy"):
        (tmp_path / f"{name}.py").write_text(f"raise {error}('no shared object')")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PROGRAM), str(tmp_path)],
        env=os.environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"False False 9.0 llvmlite cannot be imported ({error}: no shared object)",
        "False DEFAULT",
    ]

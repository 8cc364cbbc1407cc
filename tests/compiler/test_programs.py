"""Programs that import names of PyTorch are also compiled."""

import subprocess
import sys

import pytest

PROGRAM = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())

@torch.compile(fullgraph=True)
def step(x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

for _ in range(5):
    step(torch.randn(5, 3), torch.randn(5, 1))
print([variant.calls for variant in step.compiled.variants])
"""


@pytest.mark.thorough
def test_a_program_that_imports_torch(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-m", "adjoint", "run", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "[4]\n"

"""The programs on the pages about several processes run on a real MPI."""

import re

import pytest

from tests.distributed.starting import ROOT, launched_text

pytestmark = pytest.mark.thorough

BLOCK = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)

BEFORE = """
import os
import adjoint as torch
from adjoint import nn

os.chdir({folder!r})
torch.distributed.init_process_group()
rank = torch.distributed.get_rank()
"""

REPLICATED = """
model = nn.parallel.DistributedDataParallel(nn.Linear(10, 1))
optimizer = torch.optim.Adam(model.parameters())
loss = model(torch.ones(4, 10)).sum()
"""

DIVIDED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])

model = Model()
"""


def blocks(page):
    return BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def test_the_programs_of_the_page_on_several_processes_run(tmp_path):
    _, communication, sharding = blocks("howto/scale-out.md")
    program = [
        BEFORE.format(folder=str(tmp_path)),
        REPLICATED,
        communication,
        DIVIDED,
        sharding,
        "print(sorted(whole))",
    ]
    finished = launched_text(tmp_path, 2, "\n".join(program))
    assert finished.returncode == 0, finished.stderr
    assert "all_reduce" in finished.stdout
    assert finished.stdout.count("['layers.0.bias', 'layers.0.weight', 'layers.1.bias', 'layers.1.weight']") == 2
    assert (tmp_path / "backward.svg").exists()
    assert (tmp_path / "folder" / ".metadata").exists()


def test_the_program_of_the_page_on_scaling_out_runs(tmp_path):
    program = blocks("howto/scale-out.md")[0]
    finished = launched_text(tmp_path, 2, program + "\nprint(type(model).__name__)")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("DistributedDataParallel") == 2

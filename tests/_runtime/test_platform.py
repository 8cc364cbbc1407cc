"""The package works without the modules that WebAssembly lacks: it trains and saves models, and reports missing modules."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import adjoint
from adjoint._runtime.platform import PARTS

MISSING = {
    "ctypes": ["ctypes", "_ctypes"],
    "half of ctypes": ["_ctypes"],
    "ml_dtypes": ["ml_dtypes"],
    "mmap": ["mmap"],
    "multiprocessing": ["multiprocessing", "_multiprocessing"],
    "half of multiprocessing": ["_multiprocessing"],
    "select": ["select"],
    "signal": ["signal", "_signal"],
    "socket": ["socket", "_socket"],
    "subprocess": ["subprocess", "_posixsubprocess", "_winapi"],
    "fcntl": ["fcntl"],
    "llvmlite": ["llvmlite"],
    "threads": [],
    "forks": [],
}
MISSING["all"] = sorted({module for modules in MISSING.values() for module in modules})

BLOCKED = """
import json, os, sys, threading

import numpy
sys.modules.update(dict.fromkeys({blocked!r}))  # an import of what is None there fails

if {missing!r} in ("threads", "all"):
    def start(self):
        raise RuntimeError("can't start new thread")
    threading.Thread.start = start
if {missing!r} in ("forks", "all"):
    for name in ("fork", "register_at_fork", "memfd_create", "sched_getaffinity", "pipe"):
        os.__dict__.pop(name, None)

import adjoint as torch
from adjoint import nn

def error(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
"""

TRAINS = """
import io, tempfile
from pathlib import Path

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 16), nn.GELU(),
                      nn.LayerNorm(16), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
x = torch.randn(512, 1, 8)
data = torch.utils.data.TensorDataset(x, x.sum((1, 2)).unsqueeze(1))
losses = []
for epoch in range(2):
    for inputs, targets in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
large = torch.randn(1200, 900, requires_grad=True)
(large.softmax(1).log() @ torch.randn(900, 4)).sum().backward()
saved = io.BytesIO()
torch.save(model.state_dict(), saved)
saved.seek(0)
loaded = torch.load(saved)
with tempfile.TemporaryDirectory() as folder:
    torch.save(loaded, Path(folder) / "model.pt")
    torch.load(Path(folder) / "model.pt")
equal = all(torch.equal(loaded[name], value) for name, value in model.state_dict().items())
print(json.dumps([sum(losses[:8]) / 8, sum(losses[-8:]) / 8, equal]))
"""


def run(missing, program):
    """Run a program on a Python without the modules in `missing`, and return its output."""
    text = BLOCKED.format(missing=missing, blocked=MISSING[missing]) + program
    finished = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


FIRST = ("all",)


@pytest.mark.parametrize(
    "missing", [name if name in FIRST else pytest.param(name, marks=pytest.mark.thorough) for name in MISSING]
)
def test_trains_and_saves_without(missing):
    first, last, equal = run(missing, TRAINS)
    assert last < first / 2
    assert equal


USES = {
    "ml_dtypes": """
        torch.zeros(2, dtype=torch.bfloat16)
        torch.tensor([1.0], dtype=torch.float8_e4m3fn)
        torch.ones(2).bfloat16()
        torch.ones(2).to(torch.float8_e5m2)
        torch.ones(2, dtype=torch.complex64).to(torch.complex32)
        nn.Linear(2, 2).to(torch.bfloat16)
        torch.rand(2, dtype=torch.bfloat16)
        torch.arange(3, dtype=torch.bfloat16)
        torch.empty(2, dtype=torch.int16).view(torch.bfloat16) + 1
        torch.empty(2, dtype=torch.int16).view(torch.bfloat16).float()
        torch.empty(2, dtype=torch.int16).view(torch.bfloat16).tolist()
        torch.finfo(torch.bfloat16)
        torch.eye(2, dtype=torch.bfloat16)
        torch.ones(2).sum(dtype=torch.bfloat16)
        torch.ones(2).softmax(0, dtype=torch.bfloat16)
        torch.full((2,), 1.5, dtype=torch.bfloat16)
        torch.linspace(0, 1, 3, dtype=torch.bfloat16)
        torch.ones(2).type(torch.bfloat16)
        torch.ones(2).type('torch.BFloat16Tensor')
        torch.autocast('cpu').__enter__() and torch.ones(2, 2) @ torch.ones(2, 2)
    """,
    "mmap": """
        torch.ones(2).share_memory_()
        torch.save(torch.ones(2), 'a.pt') or torch.load('a.pt', mmap=True)
        torch.serialization.get_default_mmap_options()
        torch.from_file('a', shared=True, size=1)
    """,
    "multiprocessing": """
        list(torch.utils.data.DataLoader([1], num_workers=1))
        torch.multiprocessing.Queue()
    """,
    "half of multiprocessing": """
        list(torch.utils.data.DataLoader([1], num_workers=1))
        torch.multiprocessing.Queue()
    """,
    "subprocess": """
        torch.utils.collect_env.get_pretty_env_info()
    """,
    "socket": """
        torch.distributed.TCPStore('localhost', 0, 1, True)
    """,
}


@pytest.mark.thorough
@pytest.mark.parametrize("missing", USES)
def test_says_what_is_missing(missing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uses = [use.strip() for use in USES[missing].strip().splitlines()]
    calls = "".join(f"lambda: {use}, " for use in uses)
    answers = dict(zip(uses, run(missing, f"print(json.dumps([error(call) for call in ({calls})]))"), strict=True))
    said = f"ModuleNotFoundError: .*{missing.removeprefix('half of ')}.*"
    assert {use: answer for use, answer in answers.items() if not re.fullmatch(said, answer or "")} == {}


def test_only_modules_of_processes_import_past_the_platform():
    package = Path(adjoint.__file__).parent
    direct = re.compile(rf"^(?:import|from) (?:{'|'.join(PARTS)})\b", re.MULTILINE)
    past = {path.relative_to(package) for path in package.rglob("*.py") if direct.search(path.read_text("utf-8"))}
    assert {path.parts[0] for path in past} == {"multiprocessing", "distributed"}

"""A family of operators is imported when a program first uses one of its names. The import has no visible effect."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def output(program):
    """Run a program in a new interpreter that has loaded no family, and return the output."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_the_index_is_current():
    program = (
        f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); "
        f"print(runpy.run_path({str(ROOT / 'scripts' / 'write_operator_index.py')!r})['text']())"
    )
    import adjoint.dispatch.operator_index

    assert Path(adjoint.dispatch.operator_index.__file__).with_suffix(".txt").read_text() == output(program) + "\n", (
        "run `python scripts/write_operator_index.py`"
    )


def test_importing_loads_few():
    loaded = output(
        "import adjoint, sys; print(*[name for name in sys.modules if name.startswith('adjoint.operators.')])"
    )
    assert not {f"adjoint.operators.{family}" for family in ("linalg", "fourier", "pooling", "sorting")} & set(
        loaded.split()
    )


@pytest.mark.parametrize(
    "asked",
    [
        "torch.linalg.svd",
        "torch.svd",
        "torch.Tensor.svd",
        "torch.ones(2, 2).svd",
        "torch.operators.linalg_svd",
        "torch.operators.OPERATORS['linalg_svd']",
        "torch.operators.PUBLIC['linalg']['svd']",
        "torch.nn.functional.max_pool2d",
        "torch.ops.aten.sort",
    ],
)
@pytest.mark.thorough
def test_an_attribute_loads_its_family(asked):
    assert output(f"import adjoint as torch; assert {asked} is not None; print('ok')") == "ok"


def test_missing_names_raise_attribute_error():
    program = """
import adjoint as torch
for owner in (torch, torch.linalg, torch.Tensor, torch.ones(1), torch.operators, torch.special, torch.fft):
    assert not hasattr(owner, "nothing_of_the_kind"), owner
for owner in (torch.operators.OPERATORS, *torch.operators.PUBLIC.values()):
    assert "nothing_of_the_kind" not in owner
    try:
        owner["nothing_of_the_kind"]
    except KeyError:
        continue
    raise AssertionError(owner)
"""
    assert output(program) == ""


@pytest.mark.thorough
def test_names_are_listed_before_they_are_loaded():
    program = """
import adjoint as torch
assert {"svd", "tensor", "nn", "float32"} <= set(dir(torch)) and {"svd", "LinAlgError"} <= set(dir(torch.linalg))
assert {"svd", "T", "__matmul__"} <= set(dir(torch.Tensor)) and "fft2" in dir(torch.fft)
from adjoint import *
from adjoint.linalg import *
print(tensor([1.0]).item(), callable(softmax), callable(eigh), "Tensor" in globals(), "linalg" in globals())
"""
    assert output(program) == "1.0 True True True False"


@pytest.mark.thorough
def test_attributes_of_subclasses_go_before_methods():
    program = """
import adjoint as torch

class Named(torch.Tensor):
    sort = "by name"

x = torch.ones(2).as_subclass(Named)
x.svd = "set"
print(x.svd, x.sort, callable(torch.ones(2).svd), callable(torch.ones(2).sort))
"""
    assert output(program) == "set by name True True"


def test_threads_that_ask_for_the_same_at_once():
    program = """
import sys, threading
import adjoint as torch
sys.setswitchinterval(1e-6)
x, start, results = torch.eye(3), threading.Barrier(8), []

def run(number):
    start.wait()
    calls = [lambda: x.svd()[1], lambda: torch.linalg.svdvals(x), lambda: torch.fft.ifft(torch.fft.fft(x)).real]
    results.append([call().sum().item() for call in calls[number % 3:] + calls[:number % 3]])

threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(results), {round(value, 4) for row in results for value in row})
"""
    assert output(program) == "8 {3.0}"

"""`import adjoint` is fast, and imports only the standard library, NumPy and ml_dtypes."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import adjoint

ROUNDS = 7
LARGEST_RATIO = 1.6
MOST_MODULES = 33


def run(program):
    """Run a program in a new interpreter, and return its output, parsed as JSON."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)


def import_time(module):
    """Return processor time in seconds, so that other programs on the machine do not count."""
    program = f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"
    return run(program)


@pytest.fixture(scope="module")
def imported():
    """Return the top-level packages that `import adjoint` loads in addition to `import numpy, ml_dtypes`."""
    program = "import json, sys, {}; print(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    return set(run(program.format("adjoint"))) - set(run(program.format("numpy, ml_dtypes")))


@pytest.mark.parametrize("package", ["torch", "scipy", "matplotlib", "sklearn", "tqdm", "numba", "pytest"])
def test_import_does_not_bring_along(imported, package):
    assert package not in imported


def test_import_brings_along_only_the_standard_library(imported):
    assert imported - set(sys.stdlib_module_names) == {"adjoint"}


def test_import_prints_and_warns_nothing():
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import adjoint"], capture_output=True, text=True, check=True
    )
    assert (finished.stdout, finished.stderr) == ("", "")


def test_import_runs_few_modules():
    program = (
        "import json, sys, adjoint; print(json.dumps([name for name in sys.modules if name.startswith('adjoint')]))"
    )
    assert len(run(program)) <= MOST_MODULES


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each part is used in a copy of one process")
def test_each_part_may_be_the_first_that_is_used():
    program = """
import json, os, adjoint
failed = []
for name in (*adjoint._MODULES, *adjoint._PLACES):
    child = os.fork()
    if not child:
        os._exit(not hasattr(adjoint, name))
    if os.waitpid(child, 0)[1]:
        failed.append(name)
print(json.dumps(failed))
"""
    assert run(program) == []


@pytest.mark.thorough
def test_parts_written_on_the_public_names_use_no_others():
    """Every name must exist after `import adjoint as torch` alone, without the imports of other tests."""
    package = Path(adjoint.__file__).parent
    parts = ("distributions", "func", "nn", "optim", "testing", "utils")
    used = {
        node.attr
        for part in parts
        for path in (package / part).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
    }
    assert used - set(run("import json, adjoint; print(json.dumps(dir(adjoint)))")) == set()


@pytest.mark.thorough
def test_import_takes_little_longer_than_that_of_numpy():
    """Compare the shortest times of several alternate imports."""
    times = {"numpy": [], "adjoint": []}
    for module in [*times] * (ROUNDS + 1):
        times[module].append(import_time(module))
    best = {module: min(values[1:]) for module, values in times.items()}
    ratio = best["adjoint"] / best["numpy"]
    print(
        f"import numpy {best['numpy'] * 1e3:.0f} ms, import adjoint {best['adjoint'] * 1e3:.0f} ms: {ratio:.2f} times"
    )
    assert ratio <= LARGEST_RATIO

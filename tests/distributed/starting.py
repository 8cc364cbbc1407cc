"""Start programs in several processes with a real MPI and a time limit. Tests are skipped only if no MPI can be installed."""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from adjoint.distributed.launcher import LaunchError, mpiexec_command

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"

if find_spec("mpi4py") is None:
    pytest.skip("mpi4py is not installed: pip install 'adjoint-autograd[mpich]'", allow_module_level=True)
try:
    mpiexec_command(2, None)
except LaunchError as error:
    pytest.skip(str(error), allow_module_level=True)


def environment(**more):
    ours = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default", **more}
    ours |= {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }  # containers usually run as the superuser
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PMI")}, **ours}


def launched(ranks, *program, timeout=60, **variables):
    """Run a program with `adjoint launch`."""
    command = [sys.executable, "-m", "adjoint", "launch", "-n", str(ranks), *map(str, program)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=environment(**variables)
    )


def launched_text(tmp_path, ranks, text, *arguments, **variables):
    script = tmp_path / "program.py"
    script.write_text(text, encoding="utf-8")
    return launched(ranks, script, *arguments, **variables)


def checks_of(program):
    tree = ast.parse((PROGRAMS / program).read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


def run_program(program, ranks, timeout=110):
    finished = launched(ranks, PROGRAMS / program, timeout=timeout)
    passed = [line.split()[1] for line in finished.stdout.splitlines() if line.startswith("passed")]
    assert finished.returncode == 0, finished.stderr
    assert passed == checks_of(program)

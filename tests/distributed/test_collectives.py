"""`adjoint.distributed` on a real MPI: collectives, messages, objects, groups."""

import ast

import pytest

from tests.distributed.starting import PROGRAMS, launched


def checks_of(program):
    tree = ast.parse((PROGRAMS / program).read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


def run_program(program, ranks, timeout=110):
    finished = launched(ranks, PROGRAMS / program, timeout=timeout)
    passed = [line.split()[1] for line in finished.stdout.splitlines() if line.startswith("passed")]
    assert finished.returncode == 0, finished.stderr
    assert passed == checks_of(program)


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives(ranks):
    run_program("collectives.py", ranks)

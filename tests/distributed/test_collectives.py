"""`adjoint.distributed` on a real MPI: collectives, messages, objects, groups."""

import pytest

from tests.distributed.starting import run_program


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.thorough)])
def test_collectives(ranks):
    run_program("collectives.py", ranks)

"""Sharded states, parameters and checkpoints, on a real MPI."""

import pytest

from tests.distributed.starting import PROGRAMS, launched, run_program

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("ranks", [2, 4])
def test_sharding(ranks):
    run_program("sharding.py", ranks)


@pytest.mark.parametrize(("saving", "loading"), [(4, 2), (1, 2)])
def test_a_checkpoint_is_read_by_another_number_of_ranks(tmp_path, saving, loading):
    for ranks, resume in ((saving, ""), (loading, "1")):
        finished = launched(
            ranks, PROGRAMS / "sharding.py", "check_checkpoint", CHECKPOINT=str(tmp_path), RESUME=resume, timeout=110
        )
        assert finished.returncode == 0, finished.stderr
        assert "passed check_checkpoint" in finished.stdout

"""`DistributedDataParallel` on a real MPI."""

import pytest

import adjoint as torch
from tests.distributed.starting import run_program


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [2, 4])
def test_data_parallel(ranks):
    run_program("data_parallel.py", ranks)


def test_what_join_takes_says_so():
    assert issubclass(torch.nn.parallel.DistributedDataParallel, torch.distributed.algorithms.join.Joinable)


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [2, 3])
def test_batch_normalization(ranks):
    run_program("batch_normalization.py", ranks)

"""`import adjoint` takes a small part of the time that `import torch` takes."""

import pytest

pytest.importorskip("torch")

from benchmarks.startup import import_times

LARGEST_RATIO = 0.2


@pytest.mark.thorough
def test_import_takes_a_fifth_of_the_time_of_pytorch_at_most():
    best = {module: min(times) for module, times in import_times(rounds=1).items()}
    assert best["adjoint"] / best["torch"] <= LARGEST_RATIO

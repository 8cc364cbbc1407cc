"""The short forms of the experiments of `tests.reliability` with interrupts, exceptions, threads and forks."""

import os

import pytest

from tests import reliability
from tests.reliability import alarms, exceptions, first_calls, forks, interrupts, soak

MODULES = (alarms, exceptions, first_calls, forks, interrupts, soak)
"""Those of files and of memory are in `test_reliability_files.py` and `test_reliability_memory.py`."""

NAMES = [name for name, each in reliability.EXPERIMENTS.items() if each.run.__module__ in {m.__name__ for m in MODULES}]


TORN = {"interrupts": 1}
"""The number of tries after which something other than a gradient may have changed, which is rare."""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="experiments run in forked children")
@pytest.mark.parametrize("name", NAMES)
def test_experiment_has_no_failures(name):
    experiment = reliability.EXPERIMENTS[name]
    outcome = experiment.run(experiment.short)
    assert outcome.tried >= experiment.short
    assert outcome.failures.total() <= TORN.get(name, 0), outcome.failures
    assert not any("gradient" in failure for failure in outcome.failures)

"""The short form of each experiment of `tests.reliability`."""

import importlib
import os
import pkgutil

import pytest

from tests import reliability

for module in pkgutil.iter_modules(reliability.__path__):
    if not module.name.startswith("_"):
        importlib.import_module(f"{reliability.__name__}.{module.name}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="experiments run in forked children")
@pytest.mark.parametrize("name", reliability.EXPERIMENTS)
def test_it_survives(name):
    experiment = reliability.EXPERIMENTS[name]
    outcome = experiment.run(experiment.short)
    assert outcome.tried >= experiment.short
    assert not outcome.failures

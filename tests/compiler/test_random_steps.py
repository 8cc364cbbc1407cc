"""Random programs that train a model compute the same when they are compiled: all state, gradients, errors and random numbers."""

import copy
import linecache
import warnings

import pytest

import adjoint as torch
from adjoint.utils.checkpoint import checkpoint

from .comparison import assert_alike
from .random_steps import program

SEEDS = range(40)


def run(seed, compiled, in_place):
    """Return what a program returns."""
    source, name = program(seed), f"<random program {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    nn = torch.nn
    names = {"torch": torch, "nn": nn, "F": nn.functional, "checkpoint": checkpoint, "copy": copy}
    exec(compile(source, name, "exec"), names)
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return names["program"](compiled, in_place)
    finally:
        torch.set_default_dtype(torch.float32)
        del linecache.cache[name]


def in_place(model, **options):
    model.compile(**options)
    return model


def compare(seed, **options):
    """Compare a program with its compiled form."""
    expected = run(seed, lambda function: function, lambda model: model)
    found = run(seed, lambda function: torch.compile(function, **options), lambda model: in_place(model, **options))
    assert_alike(found, expected, program(seed), strides=False)


@pytest.mark.long_cases
@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_programs(seed):
    compare(seed, dynamic=[None, None, True, False][seed % 4])


@pytest.mark.long_cases
@pytest.mark.parametrize("seed", SEEDS[::3])
def test_programs_with_a_backend(seed):
    compare(seed, backend="eager")

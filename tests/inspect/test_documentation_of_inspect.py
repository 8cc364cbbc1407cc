"""The examples in the docstrings of `adjoint.inspect` run and print the documented output."""

import doctest
import importlib
import pkgutil

import pytest

import adjoint.inspect

MODULES = [f"adjoint.inspect.{found.name}" for found in pkgutil.iter_modules(adjoint.inspect.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=flags).failed == 0

"""Run the same lines of code with both libraries, and compare results, errors and warnings.

A line is a string. Each library evaluates the line with its own `torch`, `nn`, `F`, `init` and `optim`, and with

    tensor(*shape, seed=0)        normally distributed float64
    uniform(*shape, seed=0)       uniformly distributed in (0, 1)
    classes(*shape, n=3, seed=0)  integers below n
"""

import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy
import pytest

from .candidate import candidate
from .comparison import is_tensor, results_differ

import torch  # isort: skip


@dataclass
class Outcome:
    """The outcome of a line: a result or an error, and the warnings before it."""

    result: Any = None
    error: tuple[str, str] | None = None
    warnings: list[tuple[str, str]] = field(default_factory=list)


def namespace(library: Any) -> dict[str, Any]:
    """Return the names that a line may use."""

    def tensor(*shape: int, seed: int = 0) -> Any:
        return library.from_numpy(numpy.asarray(numpy.random.RandomState(seed).randn(*shape)))

    def uniform(*shape: int, seed: int = 0) -> Any:
        return library.from_numpy(numpy.asarray(numpy.random.RandomState(seed).uniform(0.05, 0.95, shape)))

    def classes(*shape: int, n: int = 3, seed: int = 0) -> Any:
        return library.from_numpy(numpy.random.RandomState(seed).randint(0, n, shape))

    return {
        "torch": library,
        "nn": library.nn,
        "F": library.nn.functional,
        "init": library.nn.init,
        "optim": library.optim,
        "tensor": tensor,
        "uniform": uniform,
        "classes": classes,
    }


def plain(text: str) -> str:
    """Return a message without the library's name, addresses, and the place in PyTorch's source."""
    text = re.sub(r"\b(adjoint|torch)\.", "torch.", text)
    text = re.sub(r" \(Triggered internally at .*\)", "", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def as_value(result: Any) -> Any:
    """Convert a result for comparison.

    The comparison uses the text of results that are not tensors, numbers or collections of these.
    """
    if is_tensor(result) and type(result).__name__ != "Parameter":
        return result
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
        return type(result)(map(as_value, result)) if type(result) in (list, tuple) else list(map(as_value, result))
    if type(result) is dict:
        return {key: as_value(value) for key, value in result.items()}
    return result if isinstance(result, (bool, int, float, complex, str, type(None))) else plain(repr(result))


def observe(line: str, library: Any, **names: Any) -> Outcome:
    """Run one or more lines with one library. The value of the last line is the result."""
    outcome = Outcome()
    scope = namespace(library) | names
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            *before, last = line.strip().split("\n")
            exec("\n".join(before), scope)
            outcome.result = as_value(eval(last, scope))
        except Exception as error:
            outcome.error = (type(error).__name__, plain(str(error)))
    outcome.warnings = [(warning.category.__name__, plain(str(warning.message))) for warning in caught]
    return outcome


def assert_same(line: str, **names: Any) -> None:
    """Assert that both libraries have the same outcome."""
    actual, expected = observe(line, candidate, **names), observe(line, torch, **names)
    if actual.error != expected.error:
        pytest.fail(f"raised {actual.error}\nexpected {expected.error}", pytrace=False)
    if actual.warnings != expected.warnings:
        pytest.fail(f"warned {actual.warnings}\nexpected {expected.warnings}", pytrace=False)
    difference = results_differ(actual.result, expected.result)
    if difference is not None:
        pytest.fail(difference, pytrace=False)

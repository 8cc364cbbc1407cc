"""Random custom functions that both libraries apply, change in place and differentiate.

`random_functions.py` draws and compares the functions. Each run draws the same functions.
"""

import random
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from tests.parity.random_programs.random_functions import EXPLAINED, Explained, difference_of

_BLOCK = 100


@pytest.fixture(autouse=True)
def _one_thread() -> object:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 1500, _BLOCK))
def test_random_functions_agree(first: int) -> None:
    for seed in range(first, first + _BLOCK):
        found = difference_of(random.Random(seed).choice)
        if found is not None and not found[2]:
            program, difference, _ = found
            pytest.fail(f"seed {seed}:\n{program.text()}\n{difference}")


SEEDS = (1, 105, 80, 17, 915, 507, 181, 1156, 566, 1103, 278, 634)
"""For each explanation, a program that needs it."""


@pytest.mark.parametrize(("each", "seed"), [*zip(EXPLAINED, SEEDS, strict=True)], ids=map(str, SEEDS))
def test_each_explanation_is_needed(each: Explained, seed: int) -> None:
    found = difference_of(random.Random(seed).choice)
    assert found is not None, f"take the explanation off the list: {each.reason}"
    assert found[2] == [each]

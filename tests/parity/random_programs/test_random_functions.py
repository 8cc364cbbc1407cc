"""Random custom functions, applied, changed in place and differentiated by both libraries; always the same ones.

`random_functions.py` says how they are drawn, what is compared, and which differences are explained.
"""

import random
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from tests.parity.random_programs.random_functions import EXPLAINED, difference_of

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
        if found is not None:
            program, difference = found
            pytest.fail(f"seed {seed}:\n{program.text()}\n{difference}")


def test_what_is_explained_is_narrow() -> None:
    assert all(each.reason and (each.line or each.difference or each.error) for each in EXPLAINED)

"""Tracebacks of typical mistakes, compared with PyTorch's tracebacks."""

import statistics

import pytest

import adjoint
from tests.typical_mistakes import MISTAKES, outcome

torch = pytest.importorskip("torch")


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_tracebacks_are_no_longer_than_those_of_pytorch():
    lengths, kinds = {adjoint: [], torch: []}, {}
    for mistake in MISTAKES:
        for library, found in lengths.items():
            kind, trace = outcome(library, mistake)
            found.append(trace.count("\n"))
            kinds[library, mistake] = kind
    # If an argument causes an error deep in PyTorch's code, adjoint's error names the argument.
    different = [(kinds[adjoint, one], kinds[torch, one], one) for one in MISTAKES]
    different = [found for found in different if found[0] != found[1] and found[:2] != ("TypeError", "AttributeError")]
    assert not different
    assert statistics.median(lengths[adjoint]) <= statistics.median(lengths[torch])

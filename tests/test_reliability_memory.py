"""Short forms of the experiments on memory, and the errors that they have found.

`python -m tests.reliability` runs the experiments in full.
"""

import sys
from operator import attrgetter

import pytest

import adjoint as torch

if sys.platform != "linux":
    pytest.skip("the experiments run in forked processes", allow_module_level=True)

from tests.reliability import EXPERIMENTS, in_place, indices, memory

NAMES = {"strides": memory, "indices": indices, "in-place": in_place}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # the child needs no threads
@pytest.mark.parametrize("name", NAMES)
def test_everything_survives(name):
    experiment = EXPERIMENTS[name]
    outcome = experiment.run(experiment.short)
    assert not outcome.failures and outcome.survived == outcome.tried == experiment.short


@pytest.mark.parametrize("wrong", [-1, 4])
@pytest.mark.parametrize("name", ["max", "sort", "cummax", "mode"])
def test_indices_that_a_backward_needs_are_checked(name, wrong):
    x = torch.rand(4, 3, requires_grad=True)
    values, indices = getattr(x, name)(0)
    indices.numpy().reshape(-1)[0] = wrong
    with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 0 with size 4"):
        values.sum().backward()
    assert x.grad is None


def test_embedding_limits_no_norm_where_an_index_is_out_of_bounds():
    weight = torch.full((4, 3), 2.0)
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.nn.functional.embedding(torch.tensor([0, -1]), weight, max_norm=0.5)
    assert weight.tolist() == [[2.0] * 3] * 4


def test_bincount_refuses_more_than_can_be_counted():
    with pytest.raises(RuntimeError, match="maximum value of input overflowed, it should be < 9223372036854775807"):
        torch.bincount(torch.tensor([2**63 - 1]))


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "nanmean"])
def test_a_number_has_one_dimension_to_reduce(name):
    for dim in (0, -1, (0,), (-1,)):
        assert getattr(torch.tensor(2.0), name)(dim).item() == 2
    with pytest.raises(IndexError, match="Dimension out of range"):
        getattr(torch.tensor(2.0), name)((1,))


@pytest.mark.parametrize("last", [None, 3, "missing", "more", torch.int64, "grad", "expanded"])
@pytest.mark.parametrize("name", ["svd", "linalg.svd", "linalg.qr", "linalg.lu_factor", "geqrf", "linalg.slogdet"])
def test_each_of_several_outputs_is_checked_before_one_is_written(name, last):
    function, count = attrgetter(name)(torch), 3 if name.endswith("svd") else 2
    outputs = [torch.zeros(2) for _ in range(count)]
    if name == "linalg.lu_factor":
        outputs[1] = outputs[1].int()
    wrong = {"grad": torch.zeros(2, requires_grad=True), "expanded": torch.zeros(1).expand(2)}.get(last, last)
    given = [*outputs[:-1], torch.zeros(2, dtype=last) if isinstance(last, torch.dtype) else wrong]
    given = {"missing": outputs[:-1], "more": [*outputs, torch.zeros(2)]}.get(last, given)
    with pytest.raises((TypeError, RuntimeError)):
        function(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), out=tuple(given))
    for output in outputs:
        assert output.shape == (2,) and not output.any() and output._version == 0

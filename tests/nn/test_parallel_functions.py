"""`scatter`, `gather`, `replicate`, `parallel_apply`: the parts of `DataParallel`."""

import pytest

import adjoint as torch
from adjoint.nn.parallel import gather, parallel_apply, replicate, scatter
from adjoint.nn.parallel.scatter_gather import scatter_kwargs


def test_tensors_are_split_and_objects_go_everywhere():
    parts = scatter({"x": torch.arange(4), "name": "a"}, [0, 1])
    assert [part["x"].tolist() for part in parts] == [[0, 1], [2, 3]] and [part["name"] for part in parts] == ["a", "a"]
    assert scatter("a", [0, 1]) == ["a", "a"]
    inputs, named = scatter_kwargs((torch.arange(2),), {"k": torch.arange(2)}, [0, 1])
    assert [each[0].tolist() for each in inputs] == [[0], [1]] and [each["k"].tolist() for each in named] == [[0], [1]]


def test_results_are_joined():
    assert gather([torch.ones(2), torch.zeros(1)], "cpu").tolist() == [1.0, 1.0, 0.0]
    assert gather([(torch.tensor(1.0), None), (torch.tensor(2.0), None)], "cpu")[0].tolist() == [1.0, 2.0]


def test_replicas_share_parameters_and_run_at_once():
    model = torch.nn.Sequential(torch.nn.Linear(2, 1))
    replicas = replicate(model, [0, 1])
    outputs = parallel_apply(replicas, [(torch.ones(1, 2),), torch.ones(3, 2)])
    gather(outputs, "cpu").sum().backward()
    assert model[0].weight.grad.tolist() == [[4.0, 4.0]]
    assert not any(each.requires_grad for each in replicate(model, [0], detach=True)[0][0]._parameters.values())
    with pytest.raises(AssertionError, match="number of modules 2 is not equal to the number of inputs 1"):
        parallel_apply(replicas, [torch.ones(1, 2)])

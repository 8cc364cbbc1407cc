"""Every operator on its samples: pictures have all edges, and traced gradients are equal."""

import numpy
import pytest

import adjoint as torch
from adjoint.inspect import trace_backward
from adjoint.inspect.snapshot import snapshot
from tests.inspect.edges import assert_same_edges
from tests.operators.samples import SAMPLES
from tests.operators.test_every_operator import DIFFERENTIABLE, as_list, of_tensors

NAMES = sorted({case.values[0] for case in DIFFERENTIABLE})


def outcome(name, call):
    """Return the inputs and results that require grad in a call."""
    args, kwargs, tensors = call.build(call.complex_numbers == "only")
    results = as_list(of_tensors(name, call, args, kwargs)(*tensors))
    return tensors, [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]


@pytest.mark.parametrize("samples", [slice(1), pytest.param(slice(1, None), marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", NAMES)
def test_operator(name, samples):
    for call in SAMPLES[name][samples]:
        _, results = outcome(name, call)
        if not results:
            continue
        picture = snapshot(results)
        assert_same_edges(picture, results)
        assert all(node.accumulate or node.formula or node.name == "CopySlices" for node in picture.nodes)
        assert all(saved.state in ("ok", "none") for node in picture.nodes for saved in node.saved)
        expected = gradients_of(name, call, torch.autograd.backward)
        assert all(map(same, gradients_of(name, call, trace_backward), expected))


def gradients_of(name, call, backward):
    tensors, results = outcome(name, call)
    backward(results, [torch.ones_like(each) for each in results])
    return [tensor.grad for tensor in tensors]


def same(one, other):
    return one is other if other is None else numpy.array_equal(one._array, other._array, equal_nan=True)


def test_these_are_many():
    assert len(NAMES) > 350

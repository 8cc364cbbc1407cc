"""Tests for the tracker of running modules."""

import adjoint as torch
from adjoint.utils.module_tracker import ModuleTracker


def test_modules_are_tracked_in_backward_until_the_gradients_of_their_arguments_are_known():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    seen = []
    with ModuleTracker() as tracker:
        x = torch.ones(1, 2, requires_grad=True)
        inner = model[0](x)
        inner.register_hook(lambda grad: seen.append((sorted(tracker.parents), tracker.is_bw)))
        model[1](inner).sum().backward()
        assert tracker.parents == {"Global"}
        model(torch.ones(1, 2)).sum().backward()
        assert tracker.parents == {"Global"}
    assert seen == [(["Global", "Linear"], True)]

"""Profiles name the compiled kernels that ran. After a profile, kernels are called as before."""

from __future__ import annotations

import sys
import threading

import pytest

pytest.importorskip("llvmlite", reason="compiled kernels need the extra `fast`")

import adjoint as torch
from adjoint.autograd.profiler import profile
from adjoint.codegen.acceleration import LOOPS
from adjoint.codegen.observed_kernels import KERNELS


@pytest.fixture(autouse=True)
def at_every_size(monkeypatch):
    monkeypatch.setattr(LOOPS, "every_size", True)
    monkeypatch.setattr(LOOPS, "_enabled", True)


def ways():
    return [(function.call, function.quick, function.split) for function in KERNELS.functions]


def kernels(prof):
    return {event.name: event for event in prof.function_events if event.name.startswith("compiled::")}


def test_kernels_are_events_inside_those_of_operators():
    x = torch.randn(600, 600, requires_grad=True)
    for _ in range(2):  # kernels that are compiled during and before a profile
        with profile() as prof:
            torch.nn.functional.gelu(x).sum().backward()
        found = kernels(prof)
        assert found["compiled::gelu_float32"].cpu_parent.name == "aten::gelu"
        gradient = found["compiled::gelu_backward_float32"].cpu_parent
        assert gradient.name == "aten::gelu_backward"
        assert gradient.cpu_parent.name == "GeluBackward0"


def test_products_are_named_by_their_kernel():
    a = torch.randn(64, 64)
    with profile() as prof:
        a @ a
    (name,) = kernels(prof)
    assert name.startswith("compiled::multiply_")


def test_kernels_are_called_as_before_afterwards():
    x = torch.randn(600, 600)
    x.exp()
    before = ways()
    with profile():
        x.exp()
        assert ways() != before
    assert ways() == before
    with pytest.raises(RuntimeError, match="shape"), profile():
        x.exp().view(7)
    assert ways() == before


def test_other_threads_are_not_profiled():
    x = torch.randn(100)
    with profile() as prof:
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
    assert not kernels(prof)


def test_two_threads_profile_their_own_kernels():
    x = torch.randn(600, 600)  # for small tensors, the form depends on earlier calls of the operator
    with profile() as outer:
        x.exp()

        def inside():
            with profile() as inner:
                x.tanh()
            assert [name.split("_")[0] for name in kernels(inner)] == ["compiled::tanh"]
            done.append(True)

        done = []
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        x.exp()
    assert done
    assert [name.split("_")[0] for name in kernels(outer)] == ["compiled::exp"]


def test_pictures_of_recorded_graphs_name_kernels():
    x = torch.randn(600, 600, requires_grad=True)
    with torch.inspect.recording():
        y = torch.nn.functional.gelu(x).sum()
    before = ways()
    nodes = {node.name: node.values for node in torch.inspect.graph(y).snapshot.nodes}
    assert nodes["GeluBackward0"]["compiled kernel"] == "gelu_float32"
    assert nodes["SumBackward0"]["compiled kernel"].startswith("sum_f32")
    assert before == ways()


@pytest.mark.thorough
def test_profiles_that_threads_begin_and_end_at_once_all_end():
    torch.randn(600, 600).exp()

    def profiling():
        for _ in range(300):
            with profile():
                pass

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=profiling) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not KERNELS.observers

"""Profiles of the same programs: the recorded functions, the text of tables and events, and schedules."""

import itertools
import re
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

import adjoint
import adjoint.profiler


def outermost(library: ModuleType) -> list[str]:
    layer = library.nn.Linear(3, 2)
    x = library.ones(4, 3)
    with library.autograd.profiler.profile() as prof:
        with library.autograd.profiler.record_function("section"):
            library.rand(3)
        y = layer(x)
        y.sum().backward()
        x[0]
        x @ x.t()
        x**2
        x.double()
        float(x.sum())
        bool(x.sum() > 1)
        x.size(), x.numel(), x.is_contiguous(), x.dim()
        library.allclose(x, x)
        x.new_zeros(2)
        2 - x
        x // 2
        library.einsum("ij->i", x)
        library.split(x, 1)
        library.softmax(x, 0)
        library.cdist(x, x)
        x.reshape(-1)
        x.view(-1)
        library.cat([x, x])
        x.resize_([3, 2])
    names = [event.name for event in prof.function_events if event.cpu_parent is None]
    return [name for name in names if name != "aten::ones_like"]  # the initial gradient, which is not an operator here


def test_the_same_functions_are_told_of() -> None:
    assert outermost(adjoint) == outermost(torch)


def told(library: ModuleType) -> list[str]:
    util = library.autograd.profiler_util
    outer = util.FunctionEvent(1, "outer", thread=0, start_us=0, end_us=2500, cpu_memory_usage=3000, flops=0)
    inner = util.FunctionEvent(2, "inner", 0, 2, 5, input_shapes=[[2]], scope=7, sequence_nr=4, flops=0)
    outer.append_cpu_child(inner)
    average = util.FunctionEventAvg().add(outer).add(outer)
    table = util.EventList([outer, inner], profile_memory=True).table(sort_by="self_cpu_time_total", header="What ran")
    return [repr(outer), repr(inner), repr(average), str(average.cpu_time), *re.sub(" +", " ", table).splitlines()]


def test_events_and_tables_print_alike() -> None:
    assert told(adjoint) == told(torch)


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_schedules_say_the_same() -> None:
    for numbers in itertools.product((0, 1, 2), (0, 1), (1, 2), (0, 1, 2), (0, 1, 3), (0, 2)):
        names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
        chosen = dict(zip(names, numbers, strict=True))
        ours, theirs = adjoint.profiler.schedule(**chosen), torch.profiler.schedule(**chosen)
        assert [ours(step).name for step in range(14)] == [theirs(step).name for step in range(14)]

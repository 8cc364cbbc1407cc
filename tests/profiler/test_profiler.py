"""The profiler: recorded events, the content of tables and traces, and no state after a profile."""

import gzip
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import adjoint as torch
from adjoint.aten import profiled_functions as composites
from adjoint.autograd.profiler import profile, record_function
from adjoint.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from adjoint.codegen.acceleration import LOOPS
from adjoint.tape import modes


def test_operators_and_their_backwards_are_noted_and_linked() -> None:
    x = torch.randn(4, 4, requires_grad=True)
    with profile(record_shapes=True) as prof:
        y = (x @ x).sum()
        y.backward()
    events = {event.name: event for event in prof.function_events}
    assert list(events) == [
        "aten::matmul",
        "aten::mm",
        "aten::sum",
        "autograd::engine::evaluate_function: SumBackward0",
        "SumBackward0",
        "autograd::engine::evaluate_function: MmBackward0",
        "MmBackward0",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
        "torch::autograd::AccumulateGrad",
    ]
    assert events["aten::mm"].sequence_nr == events["MmBackward0"].sequence_nr >= 0
    assert events["aten::mm"].input_shapes == [[4, 4], [4, 4]]
    assert events["MmBackward0"].input_shapes == [[4, 4]]
    assert events["MmBackward0"].cpu_parent.name.endswith(": MmBackward0")
    for event in prof.function_events:
        assert 0 <= event.self_cpu_time_total <= event.cpu_time_total


def test_gradients_of_one_operator_are_events_under_its_name() -> None:
    x = torch.randn(1, 1, 4, 4, requires_grad=True)
    with profile() as prof:
        (torch.conv2d(x, torch.ones(1, 1, 2, 2)).relu().sum() + (x * x).softmax(0).sum()).backward()
    events = {
        event.name: event for event in prof.function_events if "backward" in event.name and "::eng" not in event.name
    }
    assert events["aten::convolution_backward"].cpu_parent.name == "ConvolutionBackward0"
    assert {"aten::threshold_backward", "aten::_softmax_backward_data"} < events.keys()
    assert "aten::mul_backward" not in events


def test_sections_contain_what_they_call() -> None:
    x = torch.ones(3)

    @record_function("decorated")
    def function() -> torch.Tensor:
        return x * 2

    with profile() as prof:
        with record_function("outer"), record_function("inner"):
            x.exp()
        function()
    parents = {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.function_events}
    assert parents == {
        "outer": None,
        "inner": "outer",
        "aten::exp": "inner",
        "decorated": None,
        "aten::mul": "decorated",
    }
    assert prof.function_events[0].is_user_annotation
    with record_function("nobody listens"):
        function()


def test_averages_and_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LOOPS, "_enabled", False)  # calls of compiled kernels would also be events
    x = torch.ones(100, 100)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        kept = [x.exp() for _ in range(3)]
        kept.append(x[0].exp())
        x.t()
        x.add_(1)
    averages = {average.key: average for average in prof.key_averages()}
    assert averages["aten::exp"].count == 4
    assert averages["aten::exp"].cpu_memory_usage == 3 * 40000 + 400
    assert averages["aten::t"].cpu_memory_usage == averages["aten::add_"].cpu_memory_usage == 0
    assert averages["aten::exp"].cpu_time == pytest.approx(averages["aten::exp"].cpu_time_total / 4)
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert sorted(average.count for average in by_shape if average.key == "aten::exp") == [1, 3]
    table = by_shape.table(sort_by="count", row_limit=2, header="What ran")
    lines = table.splitlines()
    assert lines[1] == "What ran"
    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "CPU Mem", "Self CPU Mem"]
    assert [title.strip() for title in lines[3].split("  ") if title.strip()] == [*titles, "# of Calls", "Input Shapes"]
    assert lines[5].split()[0] == "aten::exp"
    assert lines[-1].startswith("Self CPU time total: ")
    assert "117.19 KB" in lines[5]
    assert len(table.splitlines()) == 9
    assert "test_profiler.py" in prof.key_averages(group_by_stack_n=1).table(max_src_column_width=1000)
    assert prof.total_average().count == len(prof.function_events)
    assert torch.autograd.profiler.EventList().table() == ""


def test_trace(tmp_path: Path) -> None:
    x = torch.ones(3, requires_grad=True)
    with profile() as prof, record_function("section"):
        x.exp().sum().backward()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    whole = [event for event in trace if event["ph"] == "X"]
    assert [event["name"] for event in whole[:3]] == ["section", "aten::exp", "aten::sum"]
    assert all(event["dur"] >= 0 for event in whole)
    starts = {event["id"] for event in trace if event["ph"] == "s"}
    assert starts == {event["id"] for event in trace if event["ph"] == "f"}
    assert len(starts) == 2


def test_only_its_own_thread_is_profiled() -> None:
    x = torch.ones(3)
    with profile() as prof:
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
        x.sin()
    assert [event.name for event in prof.function_events] == ["aten::sin"]
    assert not modes.FLAGS.special


def test_errors_leave_nothing_running() -> None:
    x = torch.ones(3)
    prof = profile()
    assert prof.key_averages() == []
    assert str(prof) == "<unfinished torch.autograd.profile>"
    with pytest.raises(ZeroDivisionError), prof, record_function("fails"):
        1 / 0
    with profile() as inner, pytest.raises(RuntimeError, match="must match"):
        x + torch.ones(2)
    assert [event.name for event in inner.function_events][-1] == "aten::add"
    assert [event.name for event in prof.function_events] == ["fails"]
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with profile(), pytest.raises(RuntimeError, match="already enabled"):
        profile().__enter__()
    with profile(enabled=False) as nothing:
        x.exp()
    assert nothing is None
    assert not modes.FLAGS.special


def test_functions_made_of_operators_are_events_around_theirs() -> None:
    layer = torch.nn.Linear(3, 2)
    x = torch.ones(4, 3)
    with profile(record_shapes=True) as prof:
        layer(x)
        torch.rand(2).double()
        x.sum()
        x.view(-1)
        x**2
    found = [
        (event.name, event.cpu_parent and event.cpu_parent.name)
        for event in prof.function_events
        if not event.name.startswith("compiled::")  # `rand` calls a compiled kernel after many calls
    ]
    assert found == [
        ("aten::linear", None),
        ("aten::t", "aten::linear"),
        ("aten::addmm", "aten::linear"),
        ("aten::rand", None),
        ("aten::to", None),
        ("aten::sum", None),
        ("aten::view", None),
        ("aten::pow", None),
    ]
    assert prof.function_events[0].input_shapes == [[4, 3], [2, 3], [2]]


def test_functions_are_as_they_were_when_nobody_profiles() -> None:
    functions = [torch.conv2d, torch.nn.functional.linear, torch.Tensor.sum, torch.Tensor.double, torch.linalg.norm]

    def state() -> list[object]:
        return [(f.__code__, f.__defaults__, f.__kwdefaults__, dict(f.__dict__)) for f in functions]

    before = state()
    with profile():
        assert state() != before
        outer = threading.Thread(target=lambda: profile().__enter__().__exit__())
        outer.start()
        outer.join()
        assert state() != before
        with composites.unwatched():
            assert state() == before
    assert state() == before


def test_modes_that_take_over_are_told_once_while_a_profile_runs() -> None:
    told = []

    class Log(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            told.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with profile() as prof, Log():
        torch.matmul(x, x)
    assert told == ["matmul"]
    assert [event.name for event in prof.function_events] == ["aten::matmul", "aten::mm"]


def test_memory_that_is_let_go_of_counts_where_it_is() -> None:
    x = torch.ones(100)
    with profile(profile_memory=True) as prof:
        y = x.exp()
        z = y.view(10, 10)
        del y
        with record_function("section"):
            del z
        y = x * 2
        y.add_(1).neg_()
        x.detach()
        torch.exp(x, out=y)
        del y
        x @ torch.ones(100, 3)
    memory = [(event.name, event.cpu_memory_usage, event.self_cpu_memory_usage) for event in prof.function_events]
    assert [each for each in memory if each[1]] == [
        ("aten::exp", 400, 400),
        ("section", -400, -400),
        ("aten::mul", 400, 400),
        ("[memory]", -400, -400),
        ("aten::ones", 1200, 1200),
        ("aten::matmul", 12, 0),
        ("aten::mm", 12, 12),
        ("[memory]", -1200, -1200),
        ("[memory]", -12, -12),
    ]
    assert sum(event.self_cpu_memory_usage for event in prof.function_events) == 0
    assert not prof.recorder.held


def test_memory_of_gradients_is_that_of_the_nodes_that_made_them() -> None:
    x = torch.ones(50, requires_grad=True)
    with profile(profile_memory=True) as prof:
        y = x.exp().sum()
        y.backward(retain_graph=True)
    event = next(event for event in prof.function_events if event.name == "ExpBackward0")
    assert event.self_cpu_memory_usage == event.cpu_parent.cpu_memory_usage == 200
    with profile(profile_memory=True) as prof:
        y = x.exp().sum()
        y.backward()
    event = next(event for event in prof.function_events if event.name == "ExpBackward0")
    assert event.self_cpu_memory_usage == 0  # the allocated gradient is as large as the freed result


def test_functions_of_ones_own_and_optimizers_are_events() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            return grad * 2

    x = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.1)
    with profile() as prof:
        Twice.apply(x).sum().backward()
        optimizer.step()
    events = {event.name: event for event in prof.function_events}
    assert events["Twice"].sequence_nr == events["TwiceBackward"].sequence_nr >= 0
    assert [child.name for child in events["Twice"].cpu_children] == ["aten::mul"]
    step = events["Optimizer.step#SGD.step"]
    assert step.is_user_annotation and step.cpu_children
    x.grad = torch.ones(3)
    optimizer.step()


def test_events_of_ones_own() -> None:
    event = FunctionEvent(id=0, name="foo", thread=0, start_us=10, end_us=15, stack=["a b", "c;d"])
    average = FunctionEventAvg().add(event)
    average.add(FunctionEvent(id=1, name="foo", thread=0, start_us=20, end_us=30))
    assert (average.key, average.count, average.cpu_time_total, average.cpu_time) == ("foo", 2, 15, 7.5)
    assert EventList([event]).self_cpu_time_total == 5
    outer = FunctionEvent(2, "outer", 0, 0, 20, cpu_memory_usage=10)
    outer.append_cpu_child(event)
    assert (outer.self_cpu_time_total, outer.self_cpu_memory_usage, event.cpu_parent) == (15, 10, outer)
    assert repr(event).startswith(
        "<FunctionEvent id=0 name=foo overload_name=None device_type=DeviceType.CPU node_id=-1 "
    )


def test_stacks(tmp_path: Path) -> None:
    path = tmp_path / "stacks"
    event = FunctionEvent(id=0, name="foo", thread=0, start_us=10, end_us=15, stack=["a b", "c;d"])
    EventList([event]).export_stacks(str(path), "self_cpu_time_total")
    assert path.read_text() == "c_d;a_b 5\n"
    with pytest.raises(ValueError, match="metric should be one of"):
        EventList([event]).export_stacks(str(path), "bogus")
    x = torch.ones(300, 300)
    with profile(with_stack=True) as prof:
        x @ x
    prof.export_stacks(str(path))
    assert re.search(r"test_profiler\.py\(\d+\):_test_stacks \d+$", path.read_text().splitlines()[0])
    with profile() as prof:
        x.exp()
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks(str(path))


def test_sections_by_hand_may_outlive_the_profile() -> None:
    with profile() as prof:
        handle = torch.ops.profiler._record_function_enter("by hand", None)
        torch.ops.profiler._record_function_exit(handle)
        left = record_function("left").__enter__()
    left.__exit__(None, None, None)
    assert [event.name for event in prof.function_events] == ["by hand", "left"]


def test_other_devices_are_not_there() -> None:
    with pytest.raises(AssertionError, match="Device-only"):
        profile(use_cpu=False)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(use_device="cuda")
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        torch.profiler.profile(activities=[])


def test_schedules() -> None:
    steps = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    names = [steps(number).name for number in range(10)]
    cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert names == ["NONE", *cycle, *cycle, "NONE"]
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        torch.profiler.schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        torch.profiler.schedule(wait=1, warmup=0, active=1)


@pytest.mark.parametrize("accumulate", [False, True])
def test_profiles_of_some_steps(tmp_path: Path, accumulate: bool) -> None:
    x = torch.ones(3)
    seen = []
    steps = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=2)

    def ready(prof: torch.profiler.profile) -> None:
        seen.append((prof.step_num, [event.name for event in prof.events()]))
        prof.add_metadata("which", str(len(seen)))
        prof.add_metadata_json("numbers", "[1, 2]")
        torch.profiler.tensorboard_trace_handler(str(tmp_path), "me", use_gzip=True)(prof)

    with torch.profiler.profile(schedule=steps, on_trace_ready=ready, acc_events=accumulate) as prof:
        for _ in range(8):
            x.exp()
            prof.step()
    once = ["ProfilerStep*", "aten::exp"]
    assert seen == [(3, once), (6, once * (1 + accumulate))]
    assert prof.key_averages()[0].key == "ProfilerStep*"
    traces = [json.loads(gzip.decompress(path.read_bytes())) for path in sorted(tmp_path.iterdir())]
    assert [trace["which"] for trace in traces] == ["1", "2"]
    assert traces[0]["numbers"] == [1, 2]
    assert [event["name"] for event in traces[0]["traceEvents"]] == ["ProfilerStep#2", "aten::exp"]
    assert not modes.FLAGS.special
    with pytest.raises(AssertionError, match="must be initialized"):
        torch.profiler.profile().events()


@pytest.mark.thorough
def test_functions_that_are_first_called_within_a_profile_are_told_of_each_time() -> None:
    program = """
import adjoint as torch
w = torch.ones(2, 2)
counts = []
for _ in range(2):
    with torch.autograd.profiler.profile() as prof:
        for _ in range(3):
            torch.nn.functional.linear(w, w), torch.matmul(w, w), torch.ones(2), torch.einsum("ij,jk->ik", w, w)
    names = [event.name for event in prof.function_events]
    counts.append([names.count(f"aten::{name}") for name in ("linear", "matmul", "ones", "einsum")])
torch.matmul(w, w)
print(counts)
"""
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    once, again = eval(shown)
    assert once == again
    assert min(once) == 3


def test_optimizers_are_sections() -> None:
    parameter = torch.ones(2, requires_grad=True)
    parameter.grad = torch.ones(2)
    optimizer = torch.optim.SGD([parameter], 0.1)
    with profile() as prof:
        optimizer.step()
        optimizer.zero_grad()
    names = [event.name for event in prof.function_events if event.name.startswith("Optimizer")]
    assert names == ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"]
    assert parameter.grad is None


def test_operations_are_counted_as_pytorch_counts_them() -> None:
    a, b = torch.ones(4, 5, 6), torch.ones(4, 6, 7)
    with profile(with_flops=True) as prof:
        torch.bmm(a, b)
        torch.mm(a[0], b[0])
        torch.addmm(torch.ones(7), a[0], b[0])
        torch.baddbmm(torch.zeros(4, 5, 7), a, b)
        a + a
        a * 2
        torch.nn.functional.conv2d(torch.ones(1, 4, 9, 9), torch.ones(4, 2, 3, 3), stride=2, groups=2)
        a.exp()
    counted = {event.key: event.flops for event in prof.key_averages() if event.flops}
    assert counted == {  # the counts of PyTorch
        "aten::bmm": 1680, "aten::mm": 420, "aten::addmm": 420, "aten::baddbmm": 1680, "aten::add": 120,
        "aten::mul": 120, "aten::conv2d": 2304,
    }  # fmt: skip
    table = prof.key_averages().table()
    assert "Total FLOPs" in table
    assert re.search(r"aten::conv2d .* 2304\.000", table)
    assert re.search(r"aten::exp .* --", table)
    assert all(event.input_shapes == [] for event in prof.function_events)
    with profile() as prof:
        torch.mm(a[0], b[0])
    assert "FLOPs" not in prof.key_averages().table()

"""The profiler: what it notes, what its tables and traces say, and that it leaves nothing behind."""

import json
import threading
from pathlib import Path

import pytest

import adjoint as torch
from adjoint.autograd.profiler import profile, record_function
from adjoint.tape import modes


def test_operators_and_their_backwards_are_noted_and_linked() -> None:
    x = torch.randn(4, 4, requires_grad=True)
    with profile(record_shapes=True) as prof:
        y = (x @ x).sum()
        y.backward()
    events = {event.name: event for event in prof.function_events}
    assert list(events) == [
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


def test_averages_and_table() -> None:
    x = torch.ones(100, 100)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(3):
            x.exp()
        x[0].exp()
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
    assert "test_profiler.py" in prof.key_averages(group_by_stack_n=1).table()
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
    assert not modes.GATE.special


def test_errors_leave_nothing_running() -> None:
    x = torch.ones(3)
    prof = profile()
    with pytest.raises(RuntimeError, match="didn't finish running"):
        prof.key_averages()
    with pytest.raises(ZeroDivisionError), prof, record_function("fails"):
        1 / 0
    with profile() as inner, pytest.raises(RuntimeError, match="must match"):
        x + torch.ones(2)
    assert [event.name for event in inner.function_events] == ["aten::add"]
    assert [event.name for event in prof.function_events] == ["fails"]
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with profile(), pytest.raises(RuntimeError, match="already enabled"):
        profile().__enter__()
    with profile(enabled=False) as nothing:
        x.exp()
    assert nothing is None
    assert not modes.GATE.special
